"""What a requirement file asks for, whatever its format: every line of it, or why no lock can be made from it; pure.

No requirement is passed over in silence: it is a line, it is named as not covered, or it is refused with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.app import OptionalLists
from patchlock.model.patch import Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches._declared_requirements import (
    FileRequirements,
    NotCovered,
    ProjectLists,
    RequiredPython,
    doubtful,
    including,
    line_of,
    required_python,
    unreadable,
    with_marker,
)
from patchlock.patches.ops.requirements import formats
from patchlock.patches.ops.requirements.lists import Computed, Declared
from patchlock.patches.pip_requirements import Line, parse

CONDA_ON_INDEX: Mapping[NormalizedName, NormalizedName] = {
    canonicalize_name(name): canonicalize_name(on_index)
    for name, on_index in {
        "pytorch": "torch",
        "pytorch-gpu": "torch",
        "pytorch-cpu": "torch",
        "py-opencv": "opencv-python",
    }.items()
}
"""conda's name → the index's, where they differ. Source: https://anaconda.org/pytorch/pytorch"""
INCLUDES = frozenset({"--requirement", "--constraint"})
"""The options that name another file."""
_OWN = OptionalLists()
_PIP_ENDINGS = frozenset({".txt", ".in", ".pip", ""})
_LOCKS = frozenset({"uv.lock", "poetry.lock", "pdm.lock", "pixi.lock", "pipfile.lock", "conda-lock.yml"})
_PROJECT_NAME = {
    "setup.cfg": re.compile(r"^\[metadata\](?:\n(?!\[).*)*?\nname[ \t]*[=:][ \t]*(\S+)", re.MULTILINE),
    "setup.py": re.compile(r"""\bname\s*=\s*["']([^"']+)["']"""),
}
_PYTHON = {
    "setup.cfg": re.compile(r"^\[options\](?:\n(?!\[).*)*?\npython[-_]requires[ \t]*[=:][ \t]*(\S.*)", re.MULTILINE),
    "setup.py": re.compile(r"""\bpython_requires\s*=\s*["']([^"']+)["']"""),
}
_FORMATS = "pip's requirement files, pyproject.toml, setup.cfg, setup.py and conda's environment.yml"
_NAME_ANOTHER = "name the file that says it in `requirements` of app.toml"
_WRITE_ONE = "write one with a patch (add-file)"
OF_PIPFILE = "`pipenv requirements > requirements.txt` beside it writes what it asks for to a file that is"


def is_pip(path: PurePosixPath) -> bool:
    """Tell whether pip's own format is meant, by the name."""
    return path.suffix.lower() in _PIP_ENDINGS and path.name.lower() != "pipfile"


def own_marker(one: Requirement, beside: Iterable[Requirement]) -> str:
    """Give the marker that tells a requirement from others of its name; "" where all of these have the same."""
    name = canonicalize_name(one.name)
    markers = {str(other.marker or "") for other in beside if canonicalize_name(other.name) == name}
    return str(one.marker or "") if len(markers) > 1 else ""


def lines(source: SourceText, wanted: OptionalLists = _OWN) -> tuple[Line, ...]:
    """Read the lines of a file, as `read` does."""
    return read(source, wanted).lines


def read(source: SourceText, wanted: OptionalLists = _OWN) -> FileRequirements:
    """Read what a file asks for: what the app itself needs, and the wanted extras and groups.

    Lines of another format than pip's have empty spans.
    """
    name = source.path.name.lower()
    if is_pip(source.path):
        return FileRequirements(lines=parse(source))
    if name == "pyproject.toml":
        from patchlock.patches import _project_requirements  # TOML, groups and Poetry, which most apps do without

        return _project_requirements.read(source, wanted)
    if name in _LOCKS or re.fullmatch(r"pylock\.(?:.+\.)?toml", name):
        remedy = "name the file that it was made from in `requirements` of app.toml, such as pyproject.toml"
        return FileRequirements(
            lines=(unreadable(1, f"{source.path.name} is the lock of another tool", remedy=remedy),)
        )
    if name not in _PROJECT_NAME and source.path.suffix.lower() not in {".yml", ".yaml"}:
        why = f"{source.path.name} is none of the files that requirements are read from: {_FORMATS}"
        more = f"; {OF_PIPFILE}" if name == "pipfile" else ""
        return FileRequirements(lines=(unreadable(1, why, remedy=f"{_NAME_ANOTHER}, or {_WRITE_ONE}{more}"),))
    declared = formats.read(source)
    if isinstance(declared, Refusal):
        return FileRequirements(lines=(unreadable(declared.line, declared.why),))
    return _conda(declared) if name not in _PROJECT_NAME else _setuptools(source, declared, wanted)


def line_of_setup_list(source: SourceText) -> int | None:
    """Find where a `setup.py` gives `install_requires`, with which setuptools passes over that of `setup.cfg`."""
    declared = formats.read(source)
    if isinstance(declared, Refusal):
        return None
    name = "install_requires"
    lines = [entry.line for one in declared.lists if one.name == name for _, entry in one.entries]
    lines += [doubt.line for doubt in declared.doubts if doubt.within == name]
    lines += [computed.refusal.line for computed in declared.computed if computed.within == name]
    return min(lines, default=None)


def _conda(declared: Declared) -> FileRequirements:
    """Read what is pip's of an environment; what is conda's alone has no counterpart on an index to be relied on."""
    by_pip = [entry for one in declared.lists if one.name == declared.default for _, entry in one.entries]
    names = {entry.name for entry in by_pip}
    found = [line_of(entry) for entry in by_pip]
    found += [doubtful(doubt) for doubt in declared.doubts if doubt.within == declared.default]
    conda = [
        NotCovered(line=entry.line, what=f"{entry.text} is a package of conda's")
        for one in declared.lists
        if one.name != declared.default
        for _, entry in one.entries
        if CONDA_ON_INDEX.get(entry.name, entry.name) not in names
    ]
    conda += [
        NotCovered(line=doubt.line, what=f"{doubt.text} is a package of conda's")
        for doubt in declared.doubts
        if doubt.within != declared.default
    ]
    return FileRequirements(lines=_sorted((*found, *declared.options)), not_covered=tuple(conda))


def _setuptools(source: SourceText, declared: Declared, wanted: OptionalLists) -> FileRequirements:
    extras_key = declared.default.replace("install_requires", "extras_require")
    if source.path.name.lower() == "setup.py" and len(declared.calls) != 1:
        line, *others = declared.calls or (1,)
        why = "it has no call of setup()"
        if others:
            also = " and ".join(str(other) for other in others)
            why = f"it calls setup() here and on line {also}, and which of them counts is known only when it runs"
        return FileRequirements(lines=(unreadable(line, why, remedy=f"{_NAME_ANOTHER}, or {_WRITE_ONE}"),))
    by_list: dict[str, list[Line]] = {one.name: [] for one in declared.lists}
    places = {one.name: 0 for one in declared.lists}
    for one in declared.lists:
        by_list[one.name] += [line_of(entry) for _, entry in one.entries]
    for doubt in declared.doubts:
        by_list.setdefault(doubt.within, []).append(doubtful(doubt))
    for computed in declared.computed:
        by_list.setdefault(computed.within, []).extend(_computed(computed))
    own = [*by_list.pop(declared.default, ()), *by_list.pop("setup(**)", ())]
    unknown = by_list.pop(extras_key, [])
    extras: dict[NormalizedName, tuple[Line, ...]] = {}
    for key in [key for key in by_list if key.startswith(f"{extras_key}.")]:
        found = by_list.pop(key)
        # An extra without a name is what the project itself needs where its marker holds.
        extra, _, condition = key.removeprefix(f"{extras_key}.").partition(":")
        first = min((line.line for line in found), default=1)
        conditional = _where(condition, found, first)
        if not extra:
            own += conditional
            continue
        extras[canonicalize_name(extra)] = (*extras.get(canonicalize_name(extra), ()), *conditional)
    if declared.default not in places and not own and not wanted.extras:
        own = [unreadable(1, f"it has no `{declared.default}`", remedy=_NAME_ANOTHER)]
    named = _PROJECT_NAME[source.path.name.lower()].search(source.text)
    chosen, left = ProjectLists(
        name=canonicalize_name(named[1]) if named else None, own=tuple(own), extras=extras, groups={}
    ).chosen(wanted)
    tests = [line for key, found in by_list.items() if key.endswith("tests_require") for line in found]
    return FileRequirements(
        lines=(*chosen, *(unknown if wanted.extras else ())),
        not_covered=(
            *left,
            *(
                NotCovered(line=line.line, what="what its extras ask for is computed")
                for line in unknown[:1]
                if not wanted.extras
            ),
            *(NotCovered(line=line.line, what="what its tests ask for is not a part of a lock") for line in tests[:1]),
        ),
        extras=frozenset(extras) | (frozenset(wanted.extras) if unknown else frozenset()),
        python=_python(source),
    )


def _python(source: SourceText) -> RequiredPython | None:
    text = source.text.replace("\r\n", "\n")
    written = _PYTHON[source.path.name.lower()].search(text)
    if named := re.search(r"\bpython_requires\s*=\s*([A-Za-z_]\w*)", text) if written is None else None:
        written = re.search(rf"""^{named[1]}\s*=\s*["']([^"']+)["']""", text, re.MULTILINE)
    return None if written is None else required_python(text.count("\n", 0, written.start(1)) + 1, written[1])


def _where(condition: str, lines: list[Line], first: int) -> list[Line]:
    """Let lines count where a condition holds, too."""
    if not condition.strip():
        return lines
    try:
        marker = Marker(condition)
    except InvalidMarker:
        return [unreadable(first, f"`{condition}` is not a marker")]
    return [with_marker(line, marker) for line in lines]


def _computed(computed: Computed) -> Iterator[Line]:
    refusal = computed.refusal
    if not computed.files:
        yield unreadable(refusal.line, refusal.why)
    yield from (including(refusal.line, file) for file in computed.files)


def _sorted(found: tuple[Line, ...]) -> tuple[Line, ...]:
    return tuple(sorted(found, key=lambda line: line.line))
