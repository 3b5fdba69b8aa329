"""Bounds of versions that are no Python versions: of kernels, drivers, C libraries; values, and quick to import."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

_BOUND = re.compile(r"(>=|<=|>|<)\s*([0-9]{1,9}(?:\.[0-9]{1,9})*)")
_COMPARE: Mapping[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Bounds:
    """Bounds such as `>=6.12,<7`, all of which a version must keep; none: every version does."""

    __slots__ = ("_bounds",)

    def __init__(self, text: str = "") -> None:
        """Read bounds.

        Raises:
            ValueError: they are none, in one clause.
        """
        found = [_BOUND.fullmatch(part.strip()) for part in text.split(",")] if text else []
        self._bounds = tuple((each[1], each[2]) for each in found if each is not None)
        if len(self._bounds) != len(found):
            raise ValueError(f'"{text}" is not a bound of a version such as ">=6.12" or ">=6.12,<7"')

    def __str__(self) -> str:
        """Write them as they are read."""
        return ",".join(f"{sign}{version}" for sign, version in self._bounds)

    def __repr__(self) -> str:
        return f"Bounds({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bounds) and self._bounds == other._bounds

    def __hash__(self) -> int:
        return hash(self._bounds)

    def hold(self, text: str) -> bool:
        """Compare the numbers that a version begins with; one without numbers breaks no bound."""
        version = leading(text)
        return version is None or all(_COMPARE[sign](version, _numbers(bound)) for sign, bound in self._bounds)

    def is_too_new(self, text: str) -> bool:
        """Say whether a version is above an upper bound, so that an older one is wanted."""
        upper = [(sign, bound) for sign, bound in self._bounds if sign.startswith("<")]
        version = leading(text)
        return version is not None and not all(_COMPARE[sign](version, _numbers(bound)) for sign, bound in upper)

    @property
    def words(self) -> str:
        """Write them for people: `580 or later`, `525 or later but before 590`."""
        match self._bounds:
            case ((">=", least),):
                return f"{least} or later"
            case ((">=", least), ("<", end)):
                return f"{least} or later but before {end}"
        return str(self)


def leading(text: str) -> tuple[int, ...] | None:
    """Read the numbers that a version begins with (`6.8.0-31-generic`: 6, 8), None where there are none.

    Zeros at the end make no difference and are not there: 6.12.0 is 6.12.
    """
    found = re.match(r"[0-9]{1,9}(?:\.[0-9]{1,9})*", text)
    return _numbers(found[0]) if found else None


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
