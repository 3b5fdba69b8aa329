"""Read named values of Windows' registry: the only place that opens it for an observed machine; writes nothing."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping

from patchlock.hardware._windows.records import Value
from patchlock.model.hosts import Failure

_MOST_KEYS = 1000
"""Below one key: a display class of thousands is broken, and no answer is worth that much time."""
_MOST_BYTES = 65536


def read(
    wanted: Mapping[str, tuple[str, ...]], *, under: str = ""
) -> tuple[dict[str, dict[str, Value]], tuple[Failure, ...]]:
    r"""Read values of keys; what is not there is not in the answer.

    Args:
        wanted: key, beginning with `HKLM\` or `HKCU\` → names of its values. A key that ends in `\*` stands for each
            key of four digits below it.
        under: a key below HKCU in which `HKLM` and `HKCU` are looked for instead (a recorded machine).

    Returns:
        Key → name → value, for keys that are there; and what could not be read, and why.

    Source: https://learn.microsoft.com/windows/win32/sysinfo/structure-of-the-registry
    """
    found: dict[str, dict[str, Value]] = {}
    failures: list[Failure] = []
    for pattern, names in wanted.items():
        try:
            keys = list(itertools.islice(_keys(pattern, under), _MOST_KEYS + 1))
        except OSError as error:
            failures.append(Failure(probe="registry", why=f"reading {pattern} failed: {_why(error)}"))
            continue
        if len(keys) > _MOST_KEYS:
            failures.append(Failure(probe="registry", why=f"{pattern} has more than {_MOST_KEYS} keys"))
        for key in keys[:_MOST_KEYS]:
            try:
                values = _values(key, names, under)
            except OSError as error:
                failures.append(Failure(probe="registry", why=f"reading {key} failed: {_why(error)}"))
            else:
                found |= {} if values is None else {key: values}
    return found, tuple(failures)


def _why(error: OSError) -> str:
    """Say why Windows refused, by its number: the words are in the language of the system."""
    return f"Windows error {getattr(error, 'winerror', None) or error.errno}"


def _keys(key: str, under: str) -> Iterator[str]:
    """Give the keys that a name stands for."""
    if not key.endswith("\\*"):
        yield key
        return
    above = key[:-2]
    for name in _subkeys(above, under):
        if len(name) == 4 and name.isdigit():
            yield f"{above}\\{name}"


if sys.platform == "win32":
    import winreg

    _HIVES = {"HKLM": winreg.HKEY_LOCAL_MACHINE, "HKCU": winreg.HKEY_CURRENT_USER}

    def _open(key: str, under: str) -> winreg.HKEYType | None:
        hive, _, path = key.partition("\\")
        top, path = (winreg.HKEY_CURRENT_USER, f"{under}\\{key}") if under else (_HIVES[hive], path)
        try:
            # A 32-bit Python sees the 64-bit keys, too.
            return winreg.OpenKey(top, path, access=winreg.KEY_READ | winreg.KEY_WOW64_64KEY)
        except FileNotFoundError:
            return None

    def _subkeys(key: str, under: str) -> Iterator[str]:
        handle = _open(key, under)
        if handle is None:
            return
        with handle:
            for number in range(winreg.QueryInfoKey(handle)[0]):
                yield winreg.EnumKey(handle, number)

    def _values(key: str, names: tuple[str, ...], under: str) -> dict[str, Value] | None:
        handle = _open(key, under)
        if handle is None:
            return None
        found: dict[str, Value] = {}
        with handle:
            for name in names:
                try:
                    value, kind = winreg.QueryValueEx(handle, name)
                except FileNotFoundError:
                    continue
                match value:
                    case str() | int():
                        found[name] = value
                    case bytes() if kind != winreg.REG_NONE and len(value) <= _MOST_BYTES:
                        found[name] = value
                    case list():
                        found[name] = tuple(map(str, value))
        return found

else:

    def _subkeys(key: str, under: str) -> Iterator[str]:  # noqa: ARG001 - as on Windows
        yield from ()

    def _values(key: str, names: tuple[str, ...], under: str) -> dict[str, Value] | None:  # noqa: ARG001
        return None
