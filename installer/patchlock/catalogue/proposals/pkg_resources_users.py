"""Which distributions import pkg_resources, which setuptools 82 removed, and up to which version they do; pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

SET = "setuptools-pkg-resources"
"""The shared set that brings it."""
_REMOVED = Version("82")
_FIRST_WITHOUT: Mapping[str, Version | None] = {
    "clip-anytorch": None,
    "librosa": Version("0.10.2"),
    "openai-clip": None,
    "phonemizer": Version("3.3.0"),
    "pyworld": Version("0.3.5"),
    "resampy": Version("0.4.3"),
    "resemble-perth": None,
    "webrtcvad": None,
}
"""Distribution → its first version that does not import it; None: no version is known that does without.

Source: the files on PyPI of clip-anytorch 2.6.0, librosa 0.9.2, 0.10.1 and 0.10.2, openai-clip 1.0.1, phonemizer 3.0.1,
3.2.1 and 3.3.0, pyworld 0.3.4 and 0.3.5, resampy 0.4.2 and 0.4.3, resemble-perth 1.0.1 and webrtcvad 2.0.10, read
2026-11-27. None of them requires setuptools. jieba imports it in a `try`, and g2p-en and pyannote-audio do not.
"""


def imports_it(name: NormalizedName, version: Version) -> bool:
    """Tell whether a version of a distribution imports it."""
    first = _FIRST_WITHOUT.get(name)
    return name in _FIRST_WITHOUT and (first is None or version < first)


def all_import_it(requirement: Requirement, name: NormalizedName) -> bool:
    """Tell whether every version that a requirement allows imports it; what the lock takes shows it of the others."""
    if name not in _FIRST_WITHOUT:
        return False
    first = _FIRST_WITHOUT[name]
    bounds = [(one.operator, Version(one.version.removesuffix(".*"))) for one in requirement.specifier]
    return first is None or any(
        bound < first or (sign, bound) == ("<", first) for sign, bound in bounds if sign in {"==", "<", "<=", "~="}
    )


def users(versions: Mapping[NormalizedName, Version]) -> tuple[str, ...]:
    """Name what imports it of a lock's packages, with the version; none where the lock has a setuptools that has it."""
    setuptools = next((version for name, version in versions.items() if name == "setuptools"), None)
    if setuptools is not None and setuptools < _REMOVED:
        return ()
    return tuple(f"{name} {version}" for name, version in sorted(versions.items()) if imports_it(name, version))


def reason(users: Collection[str]) -> str:
    """Say what happens to what imports it; a clause."""
    verbs = ("imports", "requires") if len(users) == 1 else ("import", "require")
    return f"{', '.join(users)} {verbs[0]} pkg_resources, which setuptools 82 removed, and {verbs[1]} no older one"
