"""What a `pyproject.toml` asks for: PEP 621 and 735, Poetry's tables, what uv adds to them, and dynamic lists; pure.

The places of the requirements are those that the ops edit (`ops.requirements._toml`); packaging resolves groups.
Nothing of the project runs: a list that only running it would tell is refused with its line.
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from packaging.dependency_groups import resolve_dependency_groups
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.app import OptionalLists
from patchlock.model.patch import Refusal
from patchlock.model.text_files import SourceText
from patchlock.patches._declared_requirements import (
    FileRequirements,
    FromIndex,
    NotCovered,
    ProjectLists,
    RequiredPython,
    doubtful,
    including,
    line_of,
    required_python,
    stated,
    unreadable,
    with_marker,
)
from patchlock.patches.ops._structured import toml_tree
from patchlock.patches.ops._structured.tree import Unparsable, line_at
from patchlock.patches.ops.requirements import _poetry, _toml
from patchlock.patches.ops.requirements._entries import PipEntry
from patchlock.patches.ops.requirements.lists import Declared
from patchlock.patches.pip_requirements import Line, RequirementLine, Unreadable

Table = Mapping[str, object]

_NAME_ANOTHER = "name the file that says it in `requirements` of app.toml, such as setup.cfg or setup.py"
_WRITE_THEM = "write the requirements into a file with a patch (add-file), and name that in `requirements`"
_UNREAD_SETTINGS = ("prerelease", "resolution", "fork-strategy", "exclude-newer", "exclude-newer-package")
_CONDITIONS = ("marker", "extra", "group", "markers", "platform", "python")
"""Keys by which a source counts in some cases only.

Source: https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources;
https://python-poetry.org/docs/dependency-specification/."""
_PDM_RULES = (
    (("tool", "pdm", "overrides"), "override"),
    (("tool", "pdm", "resolution", "overrides"), "override"),
    (("tool", "pdm", "resolution", "excludes"), "exclude"),
)
"""Tables of PDM that change what is installed, and the tables of the app's file that say the same.

Source: https://pdm-project.org/latest/usage/dependency/ and https://pdm-project.org/latest/usage/lockfile/."""
_INDEX_SETTINGS = ("index-url", "extra-index-url", "find-links", "no-index")


def read(source: SourceText, wanted: OptionalLists) -> FileRequirements:
    """Read what a project asks for, with the wanted extras and groups."""
    data = toml_tree.load(source.text)
    if isinstance(data, Unparsable):
        return FileRequirements(lines=(unreadable(data.line, data.why),))
    declared = _toml.read(source)
    if isinstance(declared, Refusal):
        return FileRequirements(lines=(unreadable(declared.line, declared.why),))
    return _Reader(source, data, declared).read(wanted)


def read_settings(source: SourceText) -> FileRequirements:
    """Read what uv takes from a `uv.toml`, or from the `pyproject.toml` of a workspace, for a project elsewhere."""
    data = toml_tree.load(source.text)
    if isinstance(data, Unparsable):
        return FileRequirements(lines=(unreadable(data.line, data.why),))
    return _Reader(source, data, Declared(lists=())).settings()


def line_of_project(source: SourceText) -> int | None:
    """Find a `[project]` that says itself what is needed, or that nothing is; None where another file does."""
    data = toml_tree.load(source.text)
    project = {} if isinstance(data, Unparsable) else _table(data, "project")
    if not project or "dependencies" in _texts(project.get("dynamic")):
        return None
    child = toml_tree.tree(source.text).children["project"]
    return line_at(source.text, (child.key or child.span).start)


def is_in_workspace(root: SourceText, member: str) -> bool:
    """Tell whether the `pyproject.toml` of a folder above has a workspace of uv's that a folder belongs to.

    Args:
        root: that file.
        member: the folder, from that one.
    """
    data = toml_tree.load(root.text)
    workspace = _table({} if isinstance(data, Unparsable) else data, "tool", "uv", "workspace")
    # Where uv lets `*` end at a folder, more are taken for members here: a refusal too many is no wrong lock.
    return any(fnmatch.fnmatchcase(member, glob) for glob in _texts(workspace.get("members"))) and not any(
        fnmatch.fnmatchcase(member, glob) for glob in _texts(workspace.get("exclude"))
    )


def claims_of_workspace(root: SourceText, names: Collection[NormalizedName]) -> tuple[Unreadable, ...]:
    """Say where the root of a workspace of uv's finds distributions of a member, which the member alone does not tell.

    Args:
        root: its `pyproject.toml`.
        names: the distributions that the member asks for and does not itself say where to find.
    """
    data = toml_tree.load(root.text)
    if isinstance(data, Unparsable):
        return ()
    return tuple(_Reader(root, data, Declared(lists=())).claims(names))


class _Reader:
    """Reads one file, which is TOML."""

    def __init__(self, source: SourceText, data: Table, declared: Declared) -> None:
        self.text = source.text
        self.root = toml_tree.tree(source.text)
        self.data = data
        self.declared = declared
        self.project = _table(data, "project")
        self.uv_place: tuple[str, ...] = () if source.path.name.lower() == "uv.toml" else ("tool", "uv")
        self.uv = _table(data, *self.uv_place)
        self.poetry = _table(data, "tool", "poetry")
        listed = self.uv.get("index")
        self.indexes = {
            one["name"]: one["url"]
            for one in (listed if isinstance(listed, list) else ())
            if isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("url"), str)
        }

    def read(self, wanted: OptionalLists) -> FileRequirements:
        name = self.project.get("name", self.poetry.get("name"))
        lists = ProjectLists(
            name=canonicalize_name(name) if isinstance(name, str) else None,
            own=tuple(self._own(wanted)),
            extras=_joined(self._extras()),
            groups=_joined(self._groups()),
        )
        chosen, left = lists.chosen(wanted)
        sourced = [replaced for line in chosen for replaced in self._from_source(line)]
        bounds = self._bounds()
        return dataclasses.replace(
            bounds,
            lines=tuple(dict.fromkeys((*sourced, *self._refused_settings(), *bounds.lines))),
            not_covered=(*left, *self._not_covered(lists)),
            from_indexes=tuple(
                self._from_indexes(
                    (*chosen, *bounds.overrides, *bounds.constraints),
                    {"extra": {*wanted.extras, *lists.asked_of_itself()}, "group": set(wanted.groups)},
                )
            ),
            python=self._python(),
            extras=frozenset(lists.extras),
            groups=frozenset(lists.groups),
        )

    def settings(self) -> FileRequirements:
        """Read the settings alone; another index is named, as a file that is not the app's own may be out of reach."""
        unread = [NotCovered(line=one.line, what=one.why) for one in self._refused_settings()]
        return dataclasses.replace(self._bounds(), not_covered=(*unread, *self._unread_settings()))

    def _bounds(self) -> FileRequirements:
        overrides, constraints = self._uv_list("override-dependencies"), self._uv_list("constraint-dependencies")
        return FileRequirements(
            lines=tuple(line for line in (*overrides, *constraints) if not isinstance(line, RequirementLine)),
            overrides=tuple(line for line in overrides if isinstance(line, RequirementLine)),
            constraints=tuple(line for line in constraints if isinstance(line, RequirementLine)),
            exclusions=tuple(map(canonicalize_name, _texts(self.uv.get("exclude-dependencies")))),
        )

    def _python(self) -> RequiredPython | None:
        written = self.project.get("requires-python")
        if isinstance(written, str):
            return required_python(self._line("project", "requires-python"), written)
        key = next(filter(_is_python, _table(self.poetry, "dependencies")), "python")
        written = _value(self.poetry, "dependencies", key)
        specifier = _poetry.constraint(written) if isinstance(written, str) else None
        line = self._line("tool", "poetry", "dependencies", key)
        return None if specifier is None else RequiredPython(line=line, specifier=specifier)

    # --- the project's own list ---------------------------------------------------------------------------------------

    def _own(self, wanted: OptionalLists) -> Iterator[Line]:
        dynamic = self._dynamic()
        if "dependencies" in self.project:
            yield from self._list("project", "dependencies")
        elif "dependencies" in dynamic:
            yield from self._elsewhere("dependencies", None)
        elif not self.project and "dependencies" in self.poetry:
            yield from self._poetry_table(("tool", "poetry", "dependencies"), wants_optional=False)
        elif not self.project and not self.poetry and not (wanted.groups and "dependency-groups" in self.data):
            yield unreadable(1, "it declares no project, neither [project] nor [tool.poetry]", remedy=_NAME_ANOTHER)

    def _dynamic(self) -> Sequence[str]:
        listed = self.project.get("dynamic", ())
        return [str(one) for one in listed] if isinstance(listed, list) else ()

    def _elsewhere(self, field: str, extra: str | None) -> Iterator[Line]:
        """Follow a dynamic list to the files, or to the table, that its build backend reads."""
        below = (extra,) if extra is not None else ()
        setuptools = ("tool", "setuptools", "dynamic", field, *below)
        hatch = ("tool", "hatch", "metadata", "hooks", "requirements_txt")
        if files := _texts(_table(self.data, *setuptools).get("file")):
            yield from (including(self._line(*setuptools), file) for file in files)
        elif extra is None and (
            files := _texts(_value(self.data, *hatch, "files") or _value(self.data, *hatch, "filename"))
        ):
            yield from (including(self._line(*hatch), file) for file in files)
        elif extra is not None and (files := _texts(_value(self.data, *hatch, "optional-dependencies", extra))):
            yield from (including(self._line(*hatch, "optional-dependencies", extra), file) for file in files)
        elif extra is None and "dependencies" in self.poetry:
            yield from self._poetry_table(("tool", "poetry", "dependencies"), wants_optional=False)
        else:
            why = f"`{field}` is dynamic, and its build backend finds it elsewhere"
            yield unreadable(self._line("project", "dynamic"), why, remedy=f"{_NAME_ANOTHER}; or {_WRITE_THEM}")

    # --- extras and groups --------------------------------------------------------------------------------------------

    def _extras(self) -> Iterator[tuple[NormalizedName, tuple[Line, ...]]]:
        for name in _table(self.project, "optional-dependencies"):
            yield self._optional(name, "project", "optional-dependencies", name)
        if "optional-dependencies" in self._dynamic():
            places = (
                ("tool", "setuptools", "dynamic", "optional-dependencies"),
                ("tool", "hatch", "metadata", "hooks", "requirements_txt", "optional-dependencies"),
            )
            for place in places:
                for name in _table(self.data, *place):
                    lines = tuple(self._elsewhere("optional-dependencies", name))
                    yield canonicalize_name(name), lines
        members = {
            canonicalize_name(key): tuple(self._poetry_member(("tool", "poetry", "dependencies"), key))
            for key in _table(self.poetry, "dependencies")
        }
        for name, listed in _table(self.poetry, "extras").items():
            line = self._line("tool", "poetry", "extras", name)
            named: list[Line] = []
            for one in _texts(listed):
                unknown = unreadable(line, f'the extra "{name}" names {one}, which is not a dependency')
                named += members.get(canonicalize_name(one.partition(" ")[0].partition("[")[0]), (unknown,))
            yield canonicalize_name(name), tuple(named)

    def _groups(self) -> Iterator[tuple[NormalizedName, tuple[Line, ...]]]:
        for name in _table(self.data, "dependency-groups"):
            yield canonicalize_name(name), tuple(self._group(name))
        if "dev-dependencies" in self.uv:
            yield self._optional("dev", "tool", "uv", "dev-dependencies")
        for name in _table(self.data, "tool", "pdm", "dev-dependencies"):
            yield self._optional(name, "tool", "pdm", "dev-dependencies", name)
        if "dev-dependencies" in self.poetry:
            lines = tuple(self._poetry_table(("tool", "poetry", "dev-dependencies"), wants_optional=True))
            yield canonicalize_name("dev"), lines
        for name in _table(self.poetry, "group"):
            yield canonicalize_name(name), tuple(self._poetry_group(name, ()))

    def _group(self, name: str) -> Iterator[Line]:
        """Give the lines of a group and of those that it includes; packaging says whether they can be resolved."""
        groups = _table(self.data, "dependency-groups")
        line = self._line("dependency-groups", name)
        try:
            resolve_dependency_groups(groups, name)  # type: ignore[arg-type]
        except ExceptionGroup as error:
            first = error.exceptions[0]
            yield unreadable(line, f'the group "{name}" cannot be resolved: {_first_line(first)}')
            return
        except (ValueError, LookupError, TypeError) as error:
            yield unreadable(line, f'the group "{name}" cannot be resolved: {_first_line(error)}')
            return
        by_name = {canonicalize_name(one): one for one in groups}
        waiting, seen = [name], set[str]()
        while waiting:
            one = waiting.pop(0)
            if one in seen:
                continue
            seen.add(one)
            yield from self._list("dependency-groups", one)
            listed = groups[one]
            included = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
            waiting += [by_name[canonicalize_name(str(item["include-group"]))] for item in included]

    def _poetry_group(self, name: str, parents: tuple[str, ...]) -> Iterator[Line]:
        place = ("tool", "poetry", "group", name)
        yield from self._poetry_table((*place, "dependencies"), wants_optional=True)
        for one in _texts(_value(self.data, *place, "include-groups")):
            if one in {*parents, name} or one not in _table(self.poetry, "group"):
                yield unreadable(self._line(*place), f'the group "{name}" cannot include "{one}"')
            else:
                yield from self._poetry_group(one, (*parents, name))

    def _optional(self, name: str, *place: str) -> tuple[NormalizedName, tuple[Line, ...]]:
        return canonicalize_name(name), tuple(self._list(*place))

    # --- lists --------------------------------------------------------------------------------------------------------

    def _list(self, *place: str) -> Iterator[Line]:
        """Give the requirements of a list of strings, each or a line that says why not."""
        value, line, name = _value(self.data, *place), self._line(*place), ".".join(place)
        found = next((one for one in self.declared.lists if one.name == name), None)
        if not isinstance(value, list) or found is None:
            yield unreadable(line, f"`{name}` is not a list of requirements")
            return
        for index, item in enumerate(value):
            if not isinstance(item, str) and not (place[0] == "dependency-groups" and isinstance(item, dict)):
                yield unreadable(self._line(*place, index), f"`{name}` has something else than a text")
        yield from (line_of(entry) for _, entry in found.entries if isinstance(entry, PipEntry))
        yield from (doubtful(doubt) for doubt in self.declared.doubts if doubt.within == name)

    def _uv_list(self, key: str) -> tuple[Line, ...]:
        lines: list[Line] = []
        listed = self.uv.get(key, [])
        if not isinstance(listed, list):
            return (unreadable(self._line(*self.uv_place, key), f"`{self._dotted(key)}` is not a list"),)
        for index, item in enumerate(listed):
            line = self._line(*self.uv_place, key, index)
            try:
                lines += self._from_source(stated(line, Requirement(str(item))))
            except InvalidRequirement as error:
                why = f"`{self._dotted(key)}` has what is not a requirement: {str(error).partition(chr(10))[0]}"
                lines.append(unreadable(line, why, str(item)))
        return tuple(lines)

    def _poetry_table(self, place: tuple[str, ...], *, wants_optional: bool) -> Iterator[Line]:
        for key, value in _table(self.data, *place).items():
            if wants_optional or not _is_optional(value):
                yield from self._poetry_member(place, key)

    def _poetry_member(self, place: tuple[str, ...], key: str) -> Iterator[Line]:
        line = self._line(*place, key)
        if _is_python(key):
            return
        value = _table(self.data, *place)[key]
        for one in _poetry.asked(key, value):
            if isinstance(one, str):
                yield unreadable(line, one, key)
            elif one.url is not None and not _is_url(one.url):
                yield self._folder(line, one.name, one.url)
            else:
                yield stated(line, one)

    # --- where distributions come from --------------------------------------------------------------------------------

    def _from_source(self, line: Line) -> Iterator[Line]:
        """Ask for a distribution where [tool.uv.sources], or Poetry beside [project], says that it is."""
        if not isinstance(line, RequirementLine):
            yield line
            return
        name = canonicalize_name(line.requirement.name)
        places = [("tool", "uv", "sources")]
        if self.project:
            places.append(("tool", "poetry", "dependencies"))
        for place in places:
            for key, value in _table(self.data, *place).items():
                is_itself = line.line == self._line(*place, key)
                if canonicalize_name(key) != name or is_itself:
                    continue
                found = tuple(self._sourced(line, (*place, key), value))
                if not found and "poetry" in place and line.requirement.url is None:
                    found = tuple(_narrowed(line, self._line(*place, key), key, value))
                if found:
                    yield from found
                    return
        yield line

    def _sourced(self, line: RequirementLine, place: tuple[str, ...], value: object) -> Iterator[Line]:
        values = value if isinstance(value, list) else [value]
        for index, one in enumerate(values):
            at = self._line(*place, index) if isinstance(value, list) else self._line(*place)
            name = line.requirement.name
            if not isinstance(one, dict):
                if "uv" in place:
                    yield unreadable(at, f"the source of `{name}` cannot be read", name)
                continue
            condition = next((key for key in _CONDITIONS if key in one), None)
            is_place = not one.keys().isdisjoint({"git", "url"})
            index_name = one.get("index", one.get("source"))
            if "index" in one and index_name in self.indexes:
                continue
            if index_name:
                why = f'`{name}` is to come from the index "{index_name}", and a lock asks the profile\'s indexes only'
                yield unreadable(at, why, name, f'drop the key with a patch (delete-key, key = "{".".join(place)}")')
            elif one.get("workspace"):
                yield self._folder(at, name, "a member of its workspace")
            elif "path" in one or "file" in one:
                yield self._folder(at, name, str(one.get("path", one.get("file"))))
            elif is_place and condition is not None:
                why = (
                    f"`{name}` is to come from {one.get('git', one.get('url'))} only where the `{condition}` of this "
                    "source holds, and from the index otherwise"
                )
                remedy = (
                    "drop the source with a patch (delete-key, "
                    f'key = "{".".join(place)}"), and write a requirement for each case where it is asked for'
                )
                yield unreadable(at, why, name, remedy)
            elif is_place:
                revision = next((f"@{one[key]}" for key in ("rev", "tag", "branch") if key in one), "")
                address = f"git+{one['git']}{revision}" if "git" in one else str(one["url"])
                if "subdirectory" in one:
                    address += f"{'&' if '#' in address else '#'}subdirectory={one['subdirectory']}"
                moved = _at(line.requirement, address)
                yield (
                    unreadable(at, f"the source of `{name}` cannot be read", name)
                    if moved is None
                    else stated(at, moved)
                )
            elif "uv" in place:
                yield unreadable(at, f"the source of `{name}` cannot be read", name)

    def _from_indexes(
        self, lines: Iterable[Line], taken: Mapping[str, Collection[NormalizedName]]
    ) -> Iterator[FromIndex]:
        """Give the sources that are indexes; one that is for an extra or a group counts where that is taken."""
        sources = _table(self.uv, "sources")
        wanted = {canonicalize_name(line.requirement.name) for line in lines if isinstance(line, RequirementLine)}
        for key, value in sources.items():
            name, place = canonicalize_name(key), (*self.uv_place, "sources", key)
            for index, one in enumerate(value) if isinstance(value, list) else ((None, value),):
                if name not in wanted or not isinstance(one, dict) or one.get("index") not in self.indexes:
                    continue
                if any(key in one and canonicalize_name(str(one[key])) not in names for key, names in taken.items()):
                    continue
                yield FromIndex(
                    line=self._line(*place) if index is None else self._line(*place, index),
                    name=name,
                    index=one["index"],
                    url=self.indexes[one["index"]],
                    key=".".join(place),
                )

    def _folder(self, line: int, name: str, where: str) -> Line:
        remedy = (
            f'drop it with a patch (drop-requirement, name = "{canonicalize_name(name)}"), and name the file that says '
            "what it requires in `requirements`"
        )
        return unreadable(line, f"`{name}` is a project of this repository ({where}), which no index has", name, remedy)

    # --- what else changes the answer ---------------------------------------------------------------------------------

    def claims(self, names: Collection[NormalizedName]) -> Iterator[Unreadable]:
        """Name what this root of a workspace says about distributions of a member."""
        for key in _table(self.uv, "sources"):
            if canonicalize_name(key) in names:
                why = f"[tool.uv.sources] of the workspace says where `{key}` comes from"
                remedy = (
                    "drop the requirement from the member with a patch (drop-requirement), and name what stands for it "
                    "in `requirements`"
                )
                yield unreadable(self._line("tool", "uv", "sources", key), why, key, remedy)

    def _refused_settings(self) -> Iterator[Unreadable]:
        listed = self.uv.get("index")
        for index, one in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(one, dict) and not one.get("explicit"):
                key = self._dotted("index")
                what = f"[[{key}]] {one.get('url', '')}".strip()
                yield self._other_index((*self.uv_place, "index", index), what, key)
        for table in (self.uv_place, (*self.uv_place, "pip")):
            for key in _INDEX_SETTINGS:
                if key in _table(self.data, *table):
                    dotted = ".".join((*table, key))
                    yield self._other_index((*table, key), dotted, dotted)
        for place, key in (
            (("tool", "poetry", "source"), "tool.poetry.source"),
            (("tool", "pdm", "source"), "tool.pdm.source"),
        ):
            listed = _value(self.data, *place)
            for index, one in enumerate(listed if isinstance(listed, list) else ()):
                if isinstance(one, dict) and one.get("priority") not in {"explicit", "supplemental"}:
                    yield self._other_index((*place, index), f"[[{key}]] {one.get('url', '')}".strip(), key)
        if "dependency-metadata" in self.uv:
            key = self._dotted("dependency-metadata")
            why = f"`{key}` says what distributions require, and that is for the catalogue to say"
            remedy = f'drop it with a patch (delete-key, key = "{key}"), and write [[metadata]] where it is needed'
            yield unreadable(self._line(*self.uv_place, "dependency-metadata"), why, remedy=remedy)
        for table, rule in _PDM_RULES:
            if _value(self.data, *table):
                why = f"`{'.'.join(table)}` is not read"
                remedy = f"write the same with [[{rule}]], and drop it with a patch (delete-key)"
                yield unreadable(self._line(*table), why, remedy=remedy)

    def _other_index(self, place: tuple[str | int, ...], what: str, key: str) -> Unreadable:
        why = f'"{what}" would let another place say what a name means, and a lock asks one index only'
        remedy = (
            f'drop it with a patch (delete-key, key = "{key}"); what only that place has is named by a recorded index '
            "of the profile"
        )
        return unreadable(self._line(*place), why, remedy=remedy)

    def _not_covered(self, lists: ProjectLists) -> Iterator[NotCovered]:
        yield from self._poetry_alone(lists)
        if "optional-dependencies" in self._dynamic() and not lists.extras:
            what = "the extras are dynamic, and the build backend finds them elsewhere"
            yield NotCovered(line=self._line("project", "dynamic"), what=what)
        yield from self._unread_settings()
        yield from self._early_releases()
        yield from self._pixi(("tool", "pixi"))
        yield from self._other_tools()

    def _unread_settings(self) -> Iterator[NotCovered]:
        keys: list[tuple[str, ...]] = [(*self.uv_place, key) for key in _UNREAD_SETTINGS if key in self.uv]
        keys += [(*self.uv_place, "pip", key) for key in _table(self.uv, "pip") if key not in _INDEX_SETTINGS]
        groups = (*self.uv_place, "dependency-groups")
        keys += [(*groups, name, "requires-python") for name in _table(self.data, *groups)]
        for key in keys:
            yield NotCovered(line=self._line(*key), what=f"the setting {'.'.join(key)} is not read")

    def _early_releases(self) -> Iterator[NotCovered]:
        """Name what Poetry takes early releases of: uv takes them where a version asks for one."""
        places: list[tuple[str, ...]] = [("dependencies",), ("dev-dependencies",)]
        places += [("group", name, "dependencies") for name in _table(self.poetry, "group")]
        for place in places:
            for key, value in _table(self.poetry, *place).items():
                values = value if isinstance(value, list) else [value]
                if any(isinstance(one, dict) and one.get("allow-prereleases") for one in values):
                    line = self._line("tool", "poetry", *place, key)
                    yield NotCovered(line=line, what=f"`allow-prereleases` of {key} is not read")

    def _poetry_alone(self, lists: ProjectLists) -> Iterator[NotCovered]:
        """Name what stands in Poetry's table and in no list that Poetry installs."""
        own = (lists.own, *lists.extras.values())
        known = {
            canonicalize_name(line.requirement.name)
            for lines in own
            for line in lines
            if isinstance(line, RequirementLine)
        }
        for key, value in _table(self.poetry, "dependencies").items():
            line = self._line("tool", "poetry", "dependencies", key)
            if _is_python(key) or canonicalize_name(key) in known:
                continue
            if _is_optional(value):
                yield NotCovered(line=line, what=f"{key} is optional, and no extra has it")
            elif self.project:
                yield NotCovered(line=line, what=f"{key} is required by Poetry only, not by [project]")

    def _pixi(self, place: tuple[str, ...]) -> Iterator[NotCovered]:
        """Name what pixi asks for, also in its features and for single platforms."""
        for key, value in sorted(_table(self.data, *place).items()):
            if key == "dependencies" or key.endswith("-dependencies"):
                for name in _table(self.data, *place, key):
                    yield NotCovered(line=self._line(*place, key, name), what=f"{name} is required by pixi only")
            elif isinstance(value, dict):
                yield from self._pixi((*place, key))

    def _other_tools(self) -> Iterator[NotCovered]:
        """Name the lists of tools that no group or extra stands for, one clause each."""
        hatch = ("tool", "hatch", "envs")
        lists = [
            (("tool", "rye", "dev-dependencies"), "the list of rye for development"),
            (("tool", "flit", "metadata", "requires"), "what flit's own table asks for"),
            *(
                ((*hatch, name, key), f'the environment "{name}" of hatch')
                for name in _table(self.data, *hatch)
                for key in ("dependencies", "extra-dependencies")
            ),
            *(
                (("tool", "flit", "metadata", "requires-extra", name), f'the extra "{name}" of flit\'s own table')
                for name in _table(self.data, "tool", "flit", "metadata", "requires-extra")
            ),
        ]
        for place, what in lists:
            if named := _texts(_value(self.data, *place)):
                yield NotCovered(line=self._line(*place), what=f"{what} ({', '.join(named)}) is not part of a lock")

    def _dotted(self, key: str) -> str:
        return ".".join((*self.uv_place, key))

    def _line(self, *steps: str | int) -> int:
        """Find the line of a key, or of the nearest one around it that has one."""
        node, line = self.root, 1
        for step in steps:
            child = node.children.get(step)
            if child is None:
                break
            line = line_at(self.text, (child.key or child.span).start if isinstance(step, str) else child.span.start)
            node = child.node
        return line


def _narrowed(line: RequirementLine, at: int, key: str, value: object) -> Iterator[Line]:
    """Bound a requirement of [project] by what Poetry's own table says of the same distribution, as Poetry does.

    Source: https://python-poetry.org/docs/dependency-specification/#projectdependencies-and-toolpoetrydependencies.
    """
    for one in _poetry.asked(key, value):
        if isinstance(one, str):
            yield unreadable(at, one, key)
            continue
        both = Requirement(str(line.requirement))
        both.specifier &= one.specifier
        yield with_marker(dataclasses.replace(line, requirement=both), one.marker)


def _joined(lists: Iterable[tuple[NormalizedName, tuple[Line, ...]]]) -> dict[NormalizedName, tuple[Line, ...]]:
    """Join the lists of one name, which several tables may have."""
    found: dict[NormalizedName, tuple[Line, ...]] = {}
    for name, one in lists:
        found[name] = (*found.get(name, ()), *one)
    return found


def _value(data: Table, *keys: str) -> object:
    """Give what stands at the end of some keys; None where nothing does."""
    value: object = data
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _table(data: Table, *keys: str) -> Table:
    value = _value(data, *keys)
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    """Give a text, or the texts of a list."""
    return (value,) if isinstance(value, str) else tuple(map(str, value)) if isinstance(value, list) else ()


def _is_optional(value: object) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(isinstance(one, dict) and bool(one.get("optional")) for one in values)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _is_python(key: str) -> bool:
    """Tell whether a key of Poetry's bounds Python, and names no distribution."""
    return key.lower() == "python"


def _is_url(text: str) -> bool:
    return "://" in text or text.startswith("git+")


def _at(requirement: Requirement, address: str) -> Requirement | None:
    """Put an address in the place of the versions; None where the two cannot stand together."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    condition = f" ; {requirement.marker}" if requirement.marker else ""
    try:
        return Requirement(f"{requirement.name}{extras} @ {address}{condition}")
    except InvalidRequirement:
        return None
