"""The language of conditions: each key of a condition, how it is read, and when it holds; pure."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue._troubles.devices import device_tests
from patchlock.catalogue._troubles.rules import RULES
from patchlock.catalogue.table_reader import Table, distribution, specifiers
from patchlock.model import host_vocabulary, printed_text
from patchlock.model.errors import nearest
from patchlock.model.hosts import Host
from patchlock.model.troubles import Condition, Observations, Test

_OS = ("linux", "windows", "macos")
_MAKERS = ("conda", "store")
_SHOWN = 160
"""Letters of a line that a program printed."""
_PASTED = 20
"""Lines that a person pastes of a message; of a log, which has more, only the message is shown."""


def condition(table: Table) -> Condition:
    """Read the keys of a condition; all of them must hold. Every other key is the caller's."""
    readers = {key: read for key, read in CONDITION_KEYS.items() if table.has(key)}
    tests = tuple(test for key, read in readers.items() for test in read(table, key))
    return Condition(tests=tests, words=tuple(word for test in tests if isinstance(test, _Says) for word in test.words))


def _os(table: Table, key: str) -> Iterator[Test]:
    names = _known(table, key, _OS)
    yield lambda facts: "" if facts.recording.host.os in names else None


def _machine(table: Table, key: str) -> Iterator[Test]:
    names = table.texts(key)
    yield lambda facts: "" if facts.recording.host.machine in names else None


def _wsl(table: Table, key: str) -> Iterator[Test]:
    wanted = table.boolean(key)
    yield lambda facts: None if facts.recording.host.is_wsl != wanted else "this is WSL" if wanted else ""


def _container(table: Table, key: str) -> Iterator[Test]:
    wanted = table.boolean(key)
    yield (
        lambda facts: (
            None if bool(kind := facts.recording.host.container) != wanted else kind and f"a container ({kind})"
        )
    )


def _jetson(table: Table, key: str) -> Iterator[Test]:
    wanted = table.boolean(key)
    yield (
        lambda facts: None if bool(tegra := facts.recording.host.tegra) != wanted else tegra and f"Jetson Linux {tegra}"
    )


def _release(table: Table, key: str) -> Iterator[Test]:
    yield _bounded("the kernel", table.parse(key, specifiers, SpecifierSet()), lambda host: host.release)


def _glibc(table: Table, key: str) -> Iterator[Test]:
    wanted = table.parse(key, specifiers, SpecifierSet())
    yield _bounded("glibc", wanted, lambda host: host.libc.removeprefix("glibc ") if host.libc[:5] == "glibc" else "")


def _libc(table: Table, key: str) -> Iterator[Test]:
    pattern = _regex(table, key, table.text(key))
    if pattern is not None:
        yield (
            lambda facts: (
                f"the C library is {libc}" if pattern.fullmatch(libc := facts.recording.host.libc) and libc else None
            )
        )


def _python(table: Table, key: str) -> Iterator[Test]:
    yield _bounded("Python", table.parse(key, specifiers, SpecifierSet()), lambda host: host.python)


def _bounded(what: str, wanted: SpecifierSet, of: Callable[[Host], str]) -> Test:
    def test(facts: Observations) -> str | None:
        text = of(facts.recording.host)
        return f"{what} is {text} ({wanted})" if _contains(wanted, text) else None

    return test


def _contains(wanted: SpecifierSet, text: str) -> bool:
    """Compare what stands at the beginning: `6.8.0-45-generic` is 6.8.0, `2.7.1+cu118` is 2.7.1 (cu118)."""
    try:
        version = Version(text)
    except ValueError:
        found = re.match(r"\d{1,18}(\.\d{1,18})*(?!\d)", text)
        if found is None:
            return False
        version = Version(found[0])
    return wanted.contains(version, prereleases=True)


def _maker(table: Table, key: str) -> Iterator[Test]:
    names = _known(table, key, _MAKERS)
    yield (
        lambda facts: f"this Python is from {maker}" if (maker := facts.recording.host.python_maker) in names else None
    )


def _versions(table: Table, key: str) -> Iterator[Test]:
    for name, wanted in _specifiers(table, key, tuple(host_vocabulary.VERSIONS)):
        yield _bounded(name, wanted, lambda host, name=name: host.versions.get(name, ""))  # type: ignore[misc]


def _no_versions(table: Table, key: str) -> Iterator[Test]:
    for name in _known(table, key, tuple(host_vocabulary.VERSIONS)):
        yield _absent(name, f"no {name} was found", lambda facts: facts.recording.host.versions)


def _libraries(table: Table, key: str) -> Iterator[Test]:
    for name in _known(table, key, tuple(host_vocabulary.LIBRARIES)):
        yield _there(name, lambda facts: facts.recording.host.libraries)


def _no_libraries(table: Table, key: str) -> Iterator[Test]:
    for name in _known(table, key, tuple(host_vocabulary.LIBRARIES)):
        yield _absent(name, f"{name} is not there", lambda facts: facts.recording.host.libraries)


def _there(name: str, of: Callable[[Observations], Mapping[str, str]]) -> Test:
    return lambda facts: f"{name} is {of(facts)[name]}" if name in of(facts) else None


def _absent(name: str, words: str, of: Callable[[Observations], Mapping[str, str]]) -> Test:
    return lambda facts: words if name not in of(facts) else None


def _settings(table: Table, key: str) -> Iterator[Test]:
    yield from _patterns(table, key, tuple(host_vocabulary.SETTINGS), lambda facts: facts.recording.host.settings)


def _no_settings(table: Table, key: str) -> Iterator[Test]:
    yield from _none_fits(table, key, tuple(host_vocabulary.SETTINGS), lambda facts: facts.recording.host.settings)


def _variables(table: Table, key: str) -> Iterator[Test]:
    yield from _patterns(table, key, tuple(host_vocabulary.VARIABLES), lambda facts: facts.recording.host.variables)


def _no_variables(table: Table, key: str) -> Iterator[Test]:
    yield from _none_fits(table, key, tuple(host_vocabulary.VARIABLES), lambda facts: facts.recording.host.variables)


def _patterns(
    table: Table, key: str, known: tuple[str, ...], of: Callable[[Observations], Mapping[str, str]]
) -> Iterator[Test]:
    for name, pattern in _regexes(table, key, known):

        def test(facts: Observations, name: str = name, pattern: re.Pattern[str] = pattern) -> str | None:
            value = of(facts).get(name)
            return f"{name}={value}" if value is not None and pattern.fullmatch(value) else None

        yield test


def _none_fits(
    table: Table, key: str, known: tuple[str, ...], of: Callable[[Observations], Mapping[str, str]]
) -> Iterator[Test]:
    for name, pattern in _regexes(table, key, known):

        def test(facts: Observations, name: str = name, pattern: re.Pattern[str] = pattern) -> str | None:
            value = of(facts).get(name)
            if value is not None and pattern.fullmatch(value):
                return None
            return f"{name} is not set" if value is None else f"{name}={value}"

        yield test


def _nodes(table: Table, key: str) -> Iterator[Test]:
    for pattern in _known(table, key, tuple(host_vocabulary.NODES)):
        yield lambda facts, at=pattern: f"{at} is there" if _paths(facts, at) else None  # type: ignore[misc]


def _no_nodes(table: Table, key: str) -> Iterator[Test]:
    for pattern in _known(table, key, tuple(host_vocabulary.NODES)):
        yield lambda facts, at=pattern: f"{at} is not there" if not _paths(facts, at) else None  # type: ignore[misc]


def _paths(facts: Observations, pattern: str) -> list[str]:
    return [node.path for node in facts.recording.host.nodes if fnmatch.fnmatchcase(node.path, pattern)]


def _denied(table: Table, key: str) -> Iterator[Test]:
    for pattern in _known(table, key, tuple(host_vocabulary.NODES)):

        def test(facts: Observations, pattern: str = pattern) -> str | None:
            for node in facts.recording.host.nodes:
                if fnmatch.fnmatchcase(node.path, pattern) and not node.is_usable:
                    return f"{node.path} may not be opened" + (f"; the group {node.group} may" if node.group else "")
            return None

        yield test


def _packages(table: Table, key: str) -> Iterator[Test]:
    for name, wanted in _specifiers(table, key, None):
        yield _version_test(name, lambda version, wanted=wanted: _contains(wanted, version))  # type: ignore[misc]


def _builds(table: Table, key: str) -> Iterator[Test]:
    for name, pattern in _regexes(table, key, None):
        yield _version_test(name, lambda version, of=pattern: of.fullmatch(version.partition("+")[2]) is not None)  # type: ignore[misc]


def _version_test(name: str, fits: Callable[[str], bool]) -> Test:
    normal = canonicalize_name(name)

    def test(facts: Observations) -> str | None:
        version = facts.version(normal)
        verb = "would be" if facts.is_planned else "is"
        return f"{name} {verb} {version}" if version and fits(version) else None

    return test


def _no_packages(table: Table, key: str) -> Iterator[Test]:
    for name in table.each(key, distribution):
        yield lambda facts, name=name: "" if not facts.version(name) else None  # type: ignore[misc]


@dataclasses.dataclass(frozen=True)
class _Says:
    """A test of what programs printed."""

    words: tuple[re.Pattern[str], ...]
    """For texts that are plain."""

    def __call__(self, facts: Observations) -> str | None:
        # One search in the whole text is many times as fast as one in each of thousands of lines.
        likely = [found for word in self.words if (found := word.search(facts.said))]
        says = facts.recording.says
        if not likely:
            return None
        for line in says:
            if any(found.re.search(printed_text.plain(line)) for found in likely):
                return _printed(line)
        # A terminal has broken it into several lines.
        return _printed("\n".join(says) if len(says) <= _PASTED else likely[0][0])


def _printed(line: str) -> str:
    words = " ".join(printed_text.unquoted(line).split())
    return f'a program printed "{words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"}"'


def _says(table: Table, key: str) -> Iterator[Test]:
    sound = tuple(text for text in table.texts(key) if _regex(table, key, text) is not None)
    yield _Says(tuple(map(printed_text.pattern, sound)))


def _rule(table: Table, key: str) -> Iterator[Test]:
    for name in _known(table, key, tuple(RULES)):
        if name in RULES:
            yield RULES[name]


def _known(table: Table, key: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = table.texts(key)
    for name in names:
        if name not in known:
            table.problem(key, f'there is no "{name}"', nearest(name, known))
    return names


def _named(table: Table, key: str, known: tuple[str, ...] | None) -> Mapping[str, str]:
    found = table.mapping(key)
    for name in found:
        if known is not None and name not in known:
            table.problem(key, f'there is no "{name}"', nearest(name, known))
    if not found:
        table.problem(key, "it is empty")
    return found


def _specifiers(table: Table, key: str, known: tuple[str, ...] | None) -> Iterator[tuple[str, SpecifierSet]]:
    for name, text in _named(table, key, known).items():
        try:
            yield name, specifiers(text)
        except ValueError as error:
            table.problem(key, str(error))


def _regexes(table: Table, key: str, known: tuple[str, ...] | None) -> Iterator[tuple[str, re.Pattern[str]]]:
    for name, text in _named(table, key, known).items():
        if (pattern := _regex(table, key, text)) is not None:
            yield name, pattern


def _regex(table: Table, key: str, text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text)
    except re.error as error:
        table.problem(key, f'"{text}" is not a regular expression: {error}')
        return None


CONDITION_KEYS: Mapping[str, Callable[[Table, str], Iterator[Test]]] = {
    "os": _os,
    "machine": _machine,
    "wsl": _wsl,
    "container": _container,
    "jetson": _jetson,
    "release": _release,
    "glibc": _glibc,
    "libc": _libc,
    "python": _python,
    "python-maker": _maker,
    "versions": _versions,
    "no-versions": _no_versions,
    "libraries": _libraries,
    "no-libraries": _no_libraries,
    "settings": _settings,
    "no-settings": _no_settings,
    "variables": _variables,
    "no-variables": _no_variables,
    "nodes": _nodes,
    "no-nodes": _no_nodes,
    "denied": _denied,
    "packages": _packages,
    "no-packages": _no_packages,
    "builds": _builds,
    "devices": lambda table, key: device_tests(table, key, is_there=True),
    "no-devices": lambda table, key: device_tests(table, key, is_there=False),
    "says": _says,
    "rule": _rule,
}
"""Key → how it is read into tests; `docs/formats/troubles.md` says what each means."""
