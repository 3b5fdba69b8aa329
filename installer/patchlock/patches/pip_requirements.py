"""Read pip requirement files and keep where everything stands; follows no `-r`, expands no variable, edits nothing."""

from __future__ import annotations

import re
import shlex
import urllib.parse
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from patchlock.model.text_files import SourceText

_CONTINUATION = re.compile(r"\\+(?:\r\n|\r|\n|\Z)")
_OTHER_BREAK = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
"""What Python's `str.splitlines`, and so pip, takes for the end of a line besides LF, CRLF and CR."""
_COMMENT = re.compile(r"(?:^|\s)#")
_FIRST_OPTION = re.compile(r"\s-")
_PLAIN_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?=[=<>!~(;,]|$)", re.ASCII)
_ONE_SPECIFIER = re.compile(r"\(?\s*(?:[=<>!~]+\s*[^\s,;()]*\s*(?:,\s*|(?=[);]|$)))*\)?\s*(?:;.*)?", re.DOTALL)
"""Clauses with nothing but commas between them, and a marker."""
_NAME_AND_EXTRAS = re.compile(r"[A-Za-z0-9._-]+(?:\s*\[[^\]]*\])?")
# pip takes a line for a path by a separator, a leading dot or the ending of an archive, before it takes it for a name.
_LOCATION = re.compile(
    r"\.|[^\s@;=<>!(]*[/\\:]|[^\s@;=<>!(\[]+\.(?:whl|zip|tar|tar\.gz|tgz|tar\.bz2|tbz|tar\.xz|txz|tlz)(?:\[|[\s;]|$)",
    re.IGNORECASE,
)
_END_OF_URL = re.compile(r"\s+;|;\s|$")
_TARGET_AND_EXTRAS = re.compile(r"(.+?)(\[[^\]]*\])?")
_EGG = re.compile(r"[#&]egg=([^&]*)")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
"""What pip puts a variable of the environment in the place of; other spellings stay as they are."""
_WHEEL = re.compile(r"([^-]+)-[^-]+(?:-\d[^-]*)?-[^-]+-[^-]+-[^-]+\.whl", re.IGNORECASE)

_LONG_NAMES = {
    "-C": "--config-settings",
    "-c": "--constraint",
    "-e": "--editable",
    "-f": "--find-links",
    "-i": "--index-url",
    "-r": "--requirement",
}
_FLAGS = frozenset({"--no-index", "--no-require-hashes", "--pre", "--prefer-binary", "--require-hashes"})
_LINE_OPTIONS = _FLAGS | frozenset(
    {"--all-releases", "--constraint", "--extra-index-url", "--find-links", "--index-url", "--no-binary"}
    | {"--only-binary", "--only-final", "--requirement", "--trusted-host", "--use-feature"}
)
_REQUIREMENT_OPTIONS = frozenset({"--config-settings", "--global-option", "--hash"})
_EDITABLE_OPTIONS = frozenset({"--config-settings", "--editable"})


@dataclass(frozen=True, kw_only=True)
class Span:
    """The characters `start` (included) to `end` (excluded) of a `SourceText.text`."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class RequirementLine:
    """A requirement that says which distribution it is for."""

    line: int
    """1-based line on which it begins."""
    span: Span
    """The whole logical line: continuation lines, comment and line ending included."""
    requirement: Requirement
    """Without `name @`, the name comes from `#egg=` or from the wheel's file name, and the URL may be a path."""
    requirement_span: Span
    """The requirement with its marker, without options and comment; for an editable one it begins at the `-e`."""
    specifier_span: Span
    """What stands between name with extras and marker: specifiers, or `@ url` with the blanks before it, or nothing.
    Where no name stands before a URL or path, it begins where the requirement begins."""
    editable: bool
    has_hash: bool


@dataclass(frozen=True, kw_only=True)
class LocationLine:
    """A URL or a path that does not say which distribution it is."""

    line: int
    span: Span
    target: str
    """As upstream wrote it, without options and marker."""
    editable: bool


@dataclass(frozen=True, kw_only=True)
class OptionLine:
    """Options for the whole file, such as `-r`, `-c` and `--index-url`."""

    line: int
    span: Span
    options: tuple[tuple[str, str], ...]
    """In file order: long name with its dashes, and value or ""."""


@dataclass(frozen=True, kw_only=True)
class EmptyLine:
    """A blank line, or nothing but a comment."""

    line: int
    span: Span


@dataclass(frozen=True, kw_only=True)
class Head:
    """What is certain of a line that cannot be read: a plain name, and where its specifier would stand."""

    name: NormalizedName
    extras: str
    """With its brackets, as written; "" where there are none."""
    requirement_span: Span
    """As in `RequirementLine`."""
    specifier_span: Span
    """As in `RequirementLine`."""
    has_hash: bool


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A line that pip would refuse, or would read in a way that cannot be told from the file alone."""

    line: int
    span: Span
    text: str
    """Without comment; blanks stand for continuations."""
    why: str
    """A clause without a full stop."""
    head: Head | None = None
    """None: not even the name is certain."""
    remedy: str = ""
    """What to do about it where more can be said than to correct the line."""


Line = RequirementLine | LocationLine | OptionLine | EmptyLine | Unreadable


def parse(source: SourceText) -> tuple[Line, ...]:
    """Read a requirement file.

    Returns:
        the logical lines in file order; their spans cover the text without gaps. Lines end at LF, CRLF or CR.

    Source: https://pip.pypa.io/en/stable/reference/requirements-file-format/; `req_file.py` of pip 26.3.
    """
    return tuple(_line(source.text, line, span) for line, span in _logical_lines(source))


def parse_one(text: str, line: int) -> Line:
    """Read one requirement that stands alone, such as a string of `pyproject.toml`; spans count from its start."""
    return _line(text, line, Span(start=0, end=len(text)))


def _logical_lines(source: SourceText) -> Iterator[tuple[int, Span]]:
    starts = source.line_starts()
    first = 0
    for index, end in enumerate((*starts[1:], len(source.text))):
        physical = source.text[starts[index] : end]
        continues = physical.rstrip("\r\n").endswith("\\") and not physical.lstrip().startswith("#")
        if continues and end < len(source.text):
            continue
        if end > starts[first]:
            yield first + 1, Span(start=starts[first], end=end)
        first = index + 1


def _line(text: str, line: int, span: Span) -> Line:
    # Blanks of the same length stand for continuations, so that every offset stays what it is in the file.
    content = _CONTINUATION.sub(lambda match: " " * len(match[0]), text[span.start : span.end])
    whole = content.strip()
    comment = _COMMENT.search(content)
    content = content[: comment.start()] if comment else content
    body = content.strip()
    at = span.start + len(content) - len(content.lstrip())
    try:
        _require_one_line(whole)
        if not body:
            return EmptyLine(line=line, span=span)
        _require_constant(body)
        if body.startswith(("-e", "--editable")):
            return _editable_line(body, at, line, span)
        if body.startswith("-"):
            return OptionLine(line=line, span=span, options=_options(body, _LINE_OPTIONS))
        return _requirement_line(body, at, line, span)
    except _WriteInsteadError as error:
        return Unreadable(line=line, span=span, text=body, why=str(error), head=_head(body, at), remedy=error.remedy)
    except ValueError as error:
        return Unreadable(line=line, span=span, text=body, why=str(error), head=_head(body, at))


class _WriteInsteadError(ValueError):
    """A mistake of which can be said what to write."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.remedy = remedy


def _require_one_line(content: str) -> None:
    found = _OTHER_BREAK.search(content)
    if found:
        raise _WriteInsteadError(
            f"pip ends a line at the character U+{ord(found[0]):04X} that stands in this one",
            "write a line feed in its place with a patch (replace-text)",
        )


def _require_constant(body: str) -> None:
    variable = _VARIABLE.search(body)
    if variable:
        raise _WriteInsteadError(
            f"pip puts the variable {variable[1]} of the machine it runs on instead of `{variable[0]}`",
            f"write what is meant by `{variable[0]}` in its place with a patch (replace-text)",
        )


def _head(body: str, at: int) -> Head | None:
    """Tell a name that is certain, whatever its specifier says; a second word may be a second requirement."""
    option = _FIRST_OPTION.search(body)
    text = body[: option.start()].rstrip() if option else body
    name = _PLAIN_NAME.match(text)
    if name is None or _LOCATION.match(text) or not _ONE_SPECIFIER.fullmatch(text, name.end()):
        return None
    return Head(
        name=canonicalize_name(name[1]),
        extras="".join(re.findall(r"\[[^\]]*\]", name[0])),
        requirement_span=Span(start=at, end=at + len(text)),
        specifier_span=_specifier_span(text, at, is_url=False),
        has_hash="--hash" in body,
    )


def _requirement_line(body: str, at: int, line: int, span: Span) -> RequirementLine | LocationLine:
    option = _FIRST_OPTION.search(body)
    text = body[: option.start()].rstrip() if option else body
    options = _options(body[len(text) :], _REQUIREMENT_OPTIONS)
    if _LOCATION.match(text):
        requirement = _at_location(text)
        specifier = Span(start=at, end=at + _end_of_url(text))
        if requirement is None:
            return LocationLine(line=line, span=span, target=text[: _end_of_url(text)], editable=False)
    else:
        requirement = _requirement(text)
        specifier = _specifier_span(text, at, is_url=requirement.url is not None)
    return RequirementLine(
        line=line,
        span=span,
        requirement=requirement,
        requirement_span=Span(start=at, end=at + len(text)),
        specifier_span=specifier,
        editable=False,
        has_hash="--hash" in dict(options),
    )


def _editable_line(body: str, at: int, line: int, span: Span) -> RequirementLine | LocationLine:
    targets = [value for name, value in _options(body, _EDITABLE_OPTIONS) if name == "--editable"]
    if len(targets) > 1:
        raise ValueError("it has more than one `-e`")
    target = targets[0]
    named = not _LOCATION.match(target) and "@" in target
    requirement = _requirement(target) if named else _at_location(target)
    if requirement is None:
        return LocationLine(line=line, span=span, target=target, editable=True)
    whole = Span(start=at, end=at + len(body))
    spans = {"span": span, "requirement_span": whole, "specifier_span": whole}
    return RequirementLine(line=line, requirement=requirement, **spans, editable=True, has_hash=False)


def _options(text: str, known: Collection[str]) -> tuple[tuple[str, str], ...]:
    try:
        words = iter(shlex.split(text))
    except ValueError as error:
        raise ValueError("its quotation marks are not closed") from error
    options: list[tuple[str, str]] = []
    for word in words:
        if not word.startswith("-"):
            raise ValueError(f"`{word}` belongs to no option")
        short, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        name = _LONG_NAMES.get(short, short)
        if name not in known or (equals and name in _FLAGS):
            raise ValueError(f"`{word}` is not an option that can stand here")
        if short in _LONG_NAMES and value.startswith("="):
            raise _WriteInsteadError(
                f"pip reads the value of `{word}` as `{value}`, with the equals sign",
                f"write `{short} {value[1:]}` with a patch (replace-text)",
            )
        given = value if equals or name in _FLAGS else next(words, None)
        if given is None:
            raise ValueError(f"`{word}` has no value")
        options.append((name, given))
    return tuple(options)


def _requirement(text: str) -> Requirement:
    end = _end_of_url(text)
    try:
        # pip also takes `name @ url; marker`, where packaging asks for a blank before the semicolon.
        return Requirement(f"{text[:end]} {text[end:]}" if "@" in text[:end] else text)
    except InvalidRequirement as error:
        raise ValueError(f"it is not a requirement that pip can read: {_reason(error)}") from error


def _reason(error: InvalidRequirement) -> str:
    """Give the parser's own reason, and the words at which it stopped."""
    said, _, shown = str(error).partition("\n")
    text, _, mark = shown.partition("\n")
    rest = text[mark.index("^") :].strip() if "^" in mark else ""
    return f"{said[:1].lower()}{said[1:]}" + (f", at `{rest}`" if rest else ", at its end")


def _end_of_url(text: str) -> int:
    match = _END_OF_URL.search(text)
    return match.start() if match else len(text)


def _specifier_span(text: str, at: int, *, is_url: bool) -> Span:
    head = _NAME_AND_EXTRAS.match(text)
    start = head.end() if head else 0
    end = _end_of_url(text) if is_url else start + len(text[start:].partition(";")[0].rstrip())
    blanks = 0 if is_url else len(text[start:end]) - len(text[start:end].lstrip())
    return Span(start=at + start + blanks, end=at + end)


def _at_location(text: str) -> Requirement | None:
    """Name what a bare URL or path installs, or None where nothing in it is a name."""
    end = _end_of_url(text)
    target, marker = text[:end], text[end:].strip()
    parts = _TARGET_AND_EXTRAS.fullmatch(target)
    if parts is None or re.search(r"\s", target):
        raise ValueError("it has blanks inside a path or URL")
    location, extras = parts[1], parts[2] or ""
    filename = re.split(r"[/\\]", urllib.parse.unquote(re.split(r"[?#]", location)[0]))[-1]
    name = _EGG.search(location) or _WHEEL.fullmatch(filename)
    return _requirement(f"{name[1]}{extras} @ {location} {marker}") if name else None
