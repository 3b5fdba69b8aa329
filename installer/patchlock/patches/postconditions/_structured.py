"""Check what stands at a key of a patched TOML, JSON or YAML file; loads it whole and knows no places."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.patches.postconditions._text import UNREADABLE, decoded

_NOT_STRUCTURED = "is not a .toml, .json, .yaml or .yml file, the only ones whose keys can be checked"


@dataclass(frozen=True, kw_only=True)
class HasKey:
    """A key has exactly this value.

    Attributes:
        key: keys from the top; in a list an index, `name=value` for every table whose `name` is `value`, or
            `=value` for every such text or number.
        value: as it is written in the file's language.
    """

    key: tuple[str, ...]
    value: str

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say what stands at the key instead."""
        content = _content(path, data)
        if isinstance(content, _Unchecked):
            return (content.why,)
        found = _at(content, self.key)
        wanted = _value(path, self.value)
        if isinstance(wanted, _Unchecked):
            return (f"`{self.value}` is not a value of this kind of file",)
        if not found:
            return (f"the key {_shown(self.key)} is missing",)
        return tuple(
            f"the key {_shown(self.key)} is {value!r}, not {wanted!r}"
            for value in found
            if _canonical(value) != _canonical(wanted)
        )


@dataclass(frozen=True, kw_only=True)
class NoKey:
    """A key is not there."""

    key: tuple[str, ...]
    """As in `HasKey`."""

    def problems(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say what still stands at the key."""
        content = _content(path, data)
        if isinstance(content, _Unchecked):
            return (content.why,)
        return tuple(f"the key {_shown(self.key)} is still there: {value!r}" for value in _at(content, self.key))


@dataclass(frozen=True, kw_only=True)
class _Unchecked:
    why: str


def _content(path: PurePosixPath, data: bytes) -> object:
    text = decoded(data)
    if text is None:
        return _Unchecked(why=UNREADABLE)
    try:
        return _loaded(path, text)
    except (ValueError, RecursionError, _yaml_error()) as error:
        return _Unchecked(why=f"it cannot be read: {str(error).splitlines()[0]}")


def _value(path: PurePosixPath, text: str) -> object:
    """Read a value inside a list of one, which is written alike in the three languages."""
    is_toml = path.suffix.lower() == ".toml"
    content = _content(path, f"list = [{text}]".encode() if is_toml else f"[{text}]".encode())
    values = content.get("list") if isinstance(content, dict) else content
    return values[0] if isinstance(values, list) and len(values) == 1 else _Unchecked(why="")


def _loaded(path: PurePosixPath, text: str) -> object:
    content: object
    match path.suffix.lower():
        case ".toml":
            content = tomllib.loads(text)
        case ".json":
            content = json.loads(text, object_pairs_hook=_once)
        case ".yaml" | ".yml":
            from ruamel.yaml import YAML

            content = YAML(typ="rt", pure=True).load(text)
            content = _plain(content)
        case _:
            content = _Unchecked(why=f"{path.name} {_NOT_STRUCTURED}")
    return content


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _canonical(value: object) -> str:
    """A text that is the same for equal values of the same types, whatever the order of keys."""
    if isinstance(value, dict):
        return f"{{{', '.join(sorted(f'{key!r}: {_canonical(inner)}' for key, inner in value.items()))}}}"
    if isinstance(value, list):
        return f"[{', '.join(_canonical(inner) for inner in value)}]"
    return repr(value)


def _plain(value: object) -> object:
    """Strip what the round-trip loader of ruamel.yaml keeps beside the values."""
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _yaml_error() -> type[Exception]:
    from ruamel.yaml.error import YAMLError

    error: type[Exception] = YAMLError
    return error


def _at(content: object, key: tuple[str, ...]) -> list[object]:
    """All values at a key: one or none, several if a selector fits several tables."""
    found = [content]
    for part in key:
        found = [inner for value in found for inner in _inside(value, part)]
    return found


def _inside(value: object, part: str) -> list[object]:
    if isinstance(value, dict):
        return [inner for key, inner in value.items() if str(key) == part]
    if not isinstance(value, list):
        return []
    name, equals, wanted = part.partition("=")
    if equals:
        return [item for item in value if _shows(item, name) == wanted]
    return [item for index, item in enumerate(value) if str(index) == part]


def _shows(item: object, name: str) -> str | None:
    if isinstance(item, dict):
        return str(item[name]) if name in item else None
    return None if name or isinstance(item, list) else str(item)


def _shown(key: tuple[str, ...]) -> str:
    return f"`{'.'.join(key)}`"
