"""What an app's documents tell people to type: commands to start it, and files to install from; pure.

Documents are READMEs and pages, Dockerfiles, compose files, start scripts for each system, and the head of a Space.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals.findings import Files, Finding, excerpt

_PAGES = frozenset({".md", ".mdx", ".rst"})
_SCRIPTS = frozenset({".sh", ".bat", ".cmd", ".ps1"})
_DOCKERFILE = re.compile(r"(?i)(?:.*\.)?(?:dockerfile|containerfile)(?:\..*)?")
_COMPOSE = re.compile(r"(?i)(?:docker-)?compose[^/]*\.ya?ml")
_LISTS = re.compile(r"(?i)(?:packages|apt(?:-packages)?)\.txt")
_LEFT_OUT = re.compile(r"(?i)(?:^|/)(?:node_modules|third_party|\.github|tests?|changelog|history)(?:/|\.|$)")
_HEADING = re.compile(r"(?i)(#{1,6})[ \t]+(.*)|<h([1-6])\b[^>]*>(.*)")
_UNDERLINE = re.compile(r"([=\-`:'\"~^_*+#<>.])\1{2,}[ \t]*")
_LITERAL = re.compile(r"[ \t]*(?:(?P<directive>\.\. (?:code|code-block|sourcecode|prompt)::.*)|(?!\.\. ).*::[ \t]*)")
_CODE = re.compile(r"`([^`\n]+)`")
_DATA = re.compile(r"(?i)[`~]{3,}[ \t]*(?:ya?ml|toml|json)\b.*")
"""Above a block whose lines nobody types."""
_TAG = re.compile(r"</?(?:code|pre|br|p)\b[^>]*>")
_PROMPT = re.compile(r"^(?:\(?[\w.-]*\)?\s*[$#%]\s+|>>?\s+|!\s*|PS\b[^>]*>\s*|[A-Z]:\\[^>]*>\s*|-\s+|\*\s+)")
_SETTING = re.compile(r"^(?:[A-Za-z_][A-Za-z0-9_]*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+)+")
_COMMENT = re.compile(r"(?i)\s*(?:#|::|rem\s)")
_AFTER = r"\s*(?:&&|\|\||;|\||>>?(?!=)|2>&1|(?<=\s)#\s|::)\s*"
_QUOTED = r"(?<!\w)(?<![-/l][ck] )(?:\"(?:\\.|[^\"\\])*\"|'[^']*')"
"""A text that is no command line: neither what `sh -lc` or `cmd /k` is given, nor what follows an apostrophe."""
_COMMANDS = re.compile(rf"((?:{_QUOTED}|(?!{_AFTER}).)+)|{_AFTER}")
_UV_RUN = r"uv run(?:\s+(?:--(?:extra|group|with|python|env-file)\s+\S+|--\w[\w-]*(?:=\S+)?))*"
_BEFORE = re.compile(rf"^(?:(?:exec|sudo|call|start|nohup|time|poetry run|pdm run|pipenv run|env|{_UV_RUN})\s+)+")
_UV_FILE = re.compile(rf"\b{_UV_RUN}\s+(?=\S+\.py(?:\s|$))")
"""Before a file that uv gives to Python. Source: https://docs.astral.sh/uv/guides/scripts/"""
_ASSIGNED = re.compile(r"(export\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s\"']*|\$\(pwd\))")
_EXPORTED = re.compile(r"(?:export|set)\s+(.+)|\$env:(.+)")
_HERE = re.compile(r"\$\(pwd\)|\$\{?PWD\b\}?")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_ENTRY = re.compile(r"(?i)^\s*(?:CMD|ENTRYPOINT)\s+(.*)")
_LIST = re.compile(r"\[[^\]]*\]")
_COMMAND = re.compile(r"(?i)^\s*(?:command|entrypoint):\s*(\S.*)")
_SPACE = re.compile(r"(?m)^app_file:\s*(\S+)\s*$")
_SDK = re.compile(r"(?m)^sdk:\s*(\S+)\s*$")
_TOOLS = re.compile(
    r"python|pip|.*-dev$|.*-utils$|build-essential|g\+\+|gcc|clang|cmake|make|ninja|pkg-config|pkgconf|git(?:-core)?$|curl|wget|"
    r"ca-certificates|gnupg|unzip|zip|tar$|xz|vim|nano|less|locales|tzdata|sudo|ssh|openssh|software-properties|cuda|"
    r"libcudnn|nvidia|apt|lsb-release|htop|tmux|bash|procps"
)
"""Packages that say nothing about what an app needs when it runs."""
_ROOT = PurePosixPath()
_OF_REPOSITORY = re.compile(
    r"(?P<address>git\+[a-z]+://[^#]*/(?P<name>[^/@#]+?)(?:\.git)?(?:@[^#]*)?)(?:#(?:.*&)?(?:egg=(?P<egg>[\w.-]+)|.*).*)?"
)
"""Source: https://pip.pypa.io/en/stable/topics/vcs-support/"""
_FOLDER = re.compile(r"(?:cd|pushd|Set-Location|WORKDIR)\s+(?:/d\s+)?[\"']?([^\s\"'&;]+)")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a document gives an environment variable."""

    value: str
    line: int
    block: int


@dataclass(frozen=True, kw_only=True)
class Told:
    """A command line that a document has."""

    words: tuple[str, ...]
    folder: PurePosixPath
    """In which the lines before it have gone, or a container's file lies; `.` where neither is so."""
    block: int
    """Lines of one block follow each other."""
    found: Finding
    exports: Mapping[str, Setting] = field(default_factory=dict)
    """What a page or the lines of a shell script before it export, and what it gives its own command."""
    headings: tuple[str, ...] = ()
    """Below which it stands in a page, the innermost first; without the page's first, which is its title."""


def is_document(path: PurePosixPath) -> bool:
    """Tell by its name whether a file may tell people what to type."""
    if _LEFT_OUT.search(str(path)) or len(path.parts) > 4:
        return False
    named = is_container(path) or _COMPOSE.fullmatch(path.name) or _LISTS.fullmatch(path.name)
    return bool(named) or path.suffix.lower() in _PAGES | _SCRIPTS or path.name in {".gitmodules", "Procfile"}


def is_container(path: PurePosixPath) -> bool:
    """Tell by its name whether a file makes a container: what it installs of the system, the app may not use."""
    return _DOCKERFILE.fullmatch(path.name) is not None


def order(path: PurePosixPath) -> tuple[int, int, int, str]:
    """Say how early a document is believed: README, start scripts, other pages; English before others."""
    name = path.name.lower()
    if name.startswith("readme") and len(path.parts) == 1:
        rank = 0
    elif path.suffix.lower() in _PAGES:
        rank = 2
    elif path.suffix.lower() in _SCRIPTS:
        rank = 1 if len(path.parts) == 1 else 3
    else:
        rank = 1
    is_foreign = not re.search(r"(?i)(?:^|[/_.-])en(?:[/_.-]|$)", str(path)) and bool(
        re.search(r"(?i)(?:^|[/_.-])(?:zh|cn|ja|jp|ko|kr|fr|es|pt|ru|ar|tr|de|vi|tw|hk)(?:[/_.-]|$)", str(path))
    )
    return rank, int(is_foreign), len(path.parts), str(path)


def told(files: Files) -> tuple[Told, ...]:
    """List the command lines of all documents, those that are believed first before others."""
    return tuple(line for path in sorted(filter(is_document, files), key=order) for line in _of(path, files))


def apt_packages(files: Files) -> tuple[tuple[Finding, tuple[str, ...]], ...]:
    """List what Dockerfiles install with apt, without what builds or fetches: the same packages once."""
    found: dict[tuple[str, ...], Finding] = {}
    for line in told({path: data for path, data in files.items() if is_container(path)}):
        words = [word for word in line.words if not word.startswith("-")]
        if words[:2] in (["apt-get", "install"], ["apt", "install"]):
            names = [word.partition("=")[0] for word in words[2:]]
            kept = tuple(
                name for name in names if re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) and not _TOOLS.match(name)
            )
            if kept:
                found.setdefault(kept, line.found)
    return tuple((place, names) for names, place in found.items())


@dataclass(frozen=True, kw_only=True)
class PipPackage:
    """What a README installs with pip by name."""

    requirement: Requirement
    found: Finding
    is_optional: bool
    """The heading or comment above it says so."""


def pip_packages(files: Files) -> dict[NormalizedName, PipPackage]:
    """List what the README installs with pip by name or from a repository, with the first place of each."""
    found: dict[NormalizedName, PipPackage] = {}
    for line in told({path: data for path, data in files.items() if order(path)[0] == 0}):
        words = line.words[2:] if line.words[:2] in {("python", "-m"), ("python3", "-m")} else line.words
        if words[:2] in {("pip", "install"), ("pip3", "install")}:
            for word in words[2:]:
                with contextlib.suppress(InvalidRequirement):
                    wanted = Requirement(_with_name(word))
                    above = page(line.found.path, files).splitlines()[: line.found.line - 1]
                    heading = next((one for one in reversed(above) if one.lstrip().startswith("#")), "")
                    package = PipPackage(
                        requirement=wanted, found=line.found, is_optional="optional" in heading.lower()
                    )
                    found.setdefault(canonicalize_name(wanted.name), package)
    return found


def _with_name(word: str) -> str:
    """Give what pip takes from a repository the name that it says, or else that of the repository."""
    if (found := _OF_REPOSITORY.fullmatch(word)) is None:
        return word
    return f"{found['egg'] or found['name']} @ {found['address']}"


def text(data: bytes) -> str:
    """Read a document, whatever it is written in."""
    return data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8", errors="replace")


def page(path: PurePosixPath, files: Files) -> str:
    """Read a document, a page in reStructuredText as Markdown with the same lines."""
    content = text(files[path])
    return _as_markdown(content) if path.suffix.lower() == ".rst" else content


def _as_markdown(content: str) -> str:
    """Mark headings and literal blocks as Markdown does.

    Source: https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#sections and #literal-blocks
    """
    lines = content.splitlines()
    made = list(lines)
    levels: dict[tuple[str, bool], int] = {}
    for number, (line, below) in enumerate(itertools.pairwise(lines)):
        if line.strip() and _UNDERLINE.fullmatch(below) and not _UNDERLINE.fullmatch(line):
            is_over = number > 0 and lines[number - 1] == below
            level = levels.setdefault((below[0], is_over), len(levels) + 1)
            made[number : number + 2] = f"{'#' * min(level, 6)} {line.strip()}", ""
        elif code := _LITERAL.fullmatch(line):
            depth = len(line) - len(line.lstrip())
            rest = range(number + 1, len(lines))
            end = next((n for n in rest if lines[n].strip() and not lines[n].startswith(" " * (depth + 1))), len(lines))
            if code["directive"] or not below.strip():
                made[number if code["directive"] else number + 1] = "```"
                made[end - 1] = made[end - 1] or "```"
    return "\n".join(made)


def _of(path: PurePosixPath, files: Files) -> Iterator[Told]:
    content = page(path, files)
    if path.suffix.lower() in _PAGES:
        yield from _page(path, content)
    elif path.suffix.lower() in _SCRIPTS:
        lines = enumerate(content.splitlines(), start=1)
        yield from _lines(path, [(number, line) for number, line in lines if not _COMMENT.match(line)], 0)
    elif is_container(path):
        yield from _dockerfile(path, content, files)
    elif _COMPOSE.fullmatch(path.name) or path.name == "Procfile":
        for number, line in enumerate(content.splitlines(), start=1):
            found = _COMMAND.match(line) or re.match(r"web:\s*(\S.*)", line)
            if found:
                yield from _lines(path, [(number, _exec_form(found[1]))], number)


def _page(path: PurePosixPath, content: str) -> Iterator[Told]:
    """Read code of a page: its blocks line by line, and what stands between backticks; one word there is a name."""
    headings = _headings(content)
    for line in _code_of_page(path, content):
        above: dict[int, str] = {}
        for number, level, heading in headings[1:]:
            if number < line.found.line:
                above = {outer: one for outer, one in above.items() if outer < level} | {level: heading}
        yield dataclasses.replace(line, headings=tuple(reversed(above.values())))


def _headings(content: str) -> list[tuple[int, int, str]]:
    """List the headings of a page that do not stand in code: line, level, text."""
    found, fence = [], ""
    for number, line in enumerate(content.splitlines(), start=1):
        stripped = line.strip()
        mark = re.match(r"(`{3,}|~{3,})", stripped)
        if mark and (not fence or stripped.startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := _HEADING.match(stripped)):
            found.append((number, len(heading[1] or "") or int(heading[3]), heading[2] or heading[4] or ""))
    return found


def _code_of_page(path: PurePosixPath, content: str) -> Iterator[Told]:
    if content.startswith("---") and (app := _SPACE.search(content.partition("\n---")[0])):
        sdk = _SDK.search(content)
        program = "streamlit run" if sdk and sdk[1] == "streamlit" else "python"
        yield from _lines(path, [(content.count("\n", 0, app.start()) + 1, f"{program} {app[1]}")], 1)
    fence, block, kept, exports = "", 0, list[tuple[int, str]](), dict[str, Setting]()
    is_data = False
    for number, line in enumerate(content.splitlines(), start=1):
        stripped = _TAG.sub("", line).strip().removeprefix("> ").strip()
        mark = re.match(r"(`{3,}|~{3,})", stripped)
        if mark and (not fence or stripped.startswith(fence)):
            if fence and not is_data:
                yield from _lines(path, kept, block, exports=exports)
            is_data = not fence and bool(_DATA.fullmatch(stripped))
            fence, block, kept = ("" if fence else mark[1]), number, []
        elif fence:
            kept.append((number, stripped))
        elif re.match(r" {4,}\S|\t+\S", line) or "<code>" in line or "<pre>" in line:
            yield from _lines(path, [(number, stripped)], number, exports=exports)
        else:
            for code in _CODE.findall(line):
                yield from _lines(path, [(number, code)] if len(code.split()) > 1 else [], number, exports=exports)
    yield from _lines(path, kept, block, exports=exports)


def _dockerfile(path: PurePosixPath, content: str, files: Files) -> Iterator[Told]:
    """Read what a container starts, and what is installed in it; its file mostly lies in the folder that it copies."""
    entry: list[str] = []
    place, inside, copied = 0, PurePosixPath("/"), dict[PurePosixPath, PurePosixPath]()
    for number, line in _joined(list(enumerate(content.splitlines(), start=1))):
        instruction, _, rest = line.strip().partition(" ")
        if instruction.upper() == "WORKDIR":
            inside /= rest.strip().strip("\"'")
        elif instruction.upper() in {"COPY", "ADD"}:
            _copy(_words(_exec_form(rest)), inside, copied, path.parent, files)
        elif found := _ENTRY.match(line):
            is_entry = line.strip().upper().startswith("ENTRYPOINT")
            words = _exec_form(found[1])
            entry, place = [words] if is_entry else [*entry[:1], words], number
        elif instruction.upper() == "RUN":
            yield from _lines(path, [(number, rest)], number, _origin(inside, copied, path.parent, files))
    if entry:
        here = _origin(inside, copied, path.parent, files)
        yield from _lines(path, [(place, " ".join(entry))], place, here)


def _copy(
    words: Sequence[str],
    inside: PurePosixPath,
    copied: dict[PurePosixPath, PurePosixPath],
    home: PurePosixPath,
    files: Files,
) -> None:
    """Keep which folder of the repository a folder of the container is."""
    *sources, to = [word for word in words if not word.startswith("--")] or [""]
    if any(word.startswith("--from=") for word in words):
        return
    for source in (PurePosixPath(one.lstrip("/")) for one in sources):
        if "*" in source.name or home / source in files or source in files:
            copied.setdefault(inside / to, source.parent)
        else:
            copied[inside / to] = source


def _origin(
    inside: PurePosixPath, copied: Mapping[PurePosixPath, PurePosixPath], home: PurePosixPath, files: Files
) -> PurePosixPath:
    """Give the folder of the repository that a folder of a container is; where nothing says so, the Dockerfile's."""
    for to in (inside, *inside.parents):
        if to in copied:
            folder = copied[to] / inside.relative_to(to)
            return next((one for one in (home / folder, folder) if any(one in file.parents for file in files)), home)
    return home


def _exec_form(words: str) -> str:
    listed = _LIST.match(words.strip())
    if listed is None:
        return words
    quoted = re.findall(r"\"([^\"]*)\"|'([^']*)'", listed[0])
    return " ".join(shlex.quote(one or other) for one, other in quoted)


def _joined(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join lines that go on in the next one."""
    first, whole = 0, ""
    for number, line in lines:
        first = first if whole else number
        if re.search(r"(?:\s|^)[\\^`]$", line.rstrip()):
            whole += f"{line.rstrip()[:-1]} "
            continue
        yield first, whole + line
        whole = ""
    if whole:
        yield first, whole


def _lines(
    path: PurePosixPath,
    lines: Sequence[tuple[int, str]],
    block: int,
    folder: PurePosixPath = _ROOT,
    exports: dict[str, Setting] | None = None,
) -> Iterator[Told]:
    known = dict[str, str]()
    exports = exports if exports is not None else {}
    is_page = path.suffix.lower() in _PAGES
    for number, line in _joined(lines):
        if path.suffix == ".sh" and (assigned := _ASSIGNED.fullmatch(line.strip())):
            value = _VARIABLE.sub(lambda found: known.get(found[1], found[0]), _HERE.sub(".", assigned[3].strip("\"'")))
            known[assigned[2]] = value
            exports |= {assigned[2]: Setting(value=value, line=number, block=block)} if assigned[1] else {}
        for part in _COMMANDS.findall(line.strip()):
            given = dict[str, Setting]()
            bare = _UV_FILE.sub(r"\g<0>python ", _PROMPT.sub("", part.strip()))
            if is_page and (exported := _EXPORTED.fullmatch(bare)):
                exports |= _settings(re.sub(r"\s*=\s*", "=", exported[1] or exported[2], count=1), number, block)
            for pattern in (_SETTING, _BEFORE, _SETTING):
                before = found[0] if (found := pattern.match(bare)) else ""
                given |= _settings(before, number, block) if is_page and pattern is _SETTING else {}
                bare = bare[len(before) :]
            gone = _FOLDER.match(bare)
            if gone:
                folder = _gone(folder, gone[1])
            elif words := _words(bare):
                place = Finding(path=path, line=number, text=excerpt(part))
                yield Told(words=words, folder=folder, block=block, found=place, exports=exports | given)


def _settings(text: str, line: int, block: int) -> dict[str, Setting]:
    """Read `NAME=value` of a command line."""
    pairs = (word.partition("=") for word in _words(text))
    return {
        name: Setting(value=_HERE.sub(".", value), line=line, block=block)
        for name, equals, value in pairs
        if equals and name.isidentifier()
    }


def _gone(folder: PurePosixPath, to: str) -> PurePosixPath:
    plain = to.replace("\\", "/").rstrip("/")
    if plain == "..":
        return folder.parent
    is_known = bool(re.fullmatch(r"[\w./-]+", plain)) and ".." not in plain
    return folder / plain.removeprefix("./") if is_known and not plain.startswith("/") else PurePosixPath()


def _words(line: str) -> tuple[str, ...]:
    plain = line.replace("\\", "/") if ".exe" in line.lower() else line
    try:
        return tuple(shlex.split(plain))
    except ValueError:
        return tuple(plain.split())
