"""Dataclasses that are finished when they are first used.

`dataclasses` writes and compiles the methods of a class where the class is defined: half a millisecond on a desktop,
ten times that under emulation. A command meets some 300 such classes and uses a third of them; writing the methods of
the others took a quarter of the time in which `lock` or `install` got ready. For whoever reads types, `dataclass` is
the decorator of the standard library.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import Field, dataclass

__all__ = ["dataclass", "fields"]

_OF_INSTANCES = ("__dict__", "__weakref__")
"""What a class has for its instances, and what a class made of it gets anew."""
_LOCK = threading.RLock()
_unfinished: dict[type, dict[str, bool]] = {}
"""Class → what `dataclasses.dataclass` will be told of it."""


class _Unfinished:
    """Finishes a class at the first call of a method that will then be its own, and calls that."""

    __slots__ = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        _finish(type(self))
        type(self).__init__(self, *values, **named)

    def __eq__(self, other: object) -> bool:
        _finish(type(self))
        return type(self).__eq__(self, other)

    def __hash__(self) -> int:
        _finish(type(self))
        return type(self).__hash__(self)


def _begin(*, frozen: bool, kw_only: bool = False) -> Callable[[type], type]:
    """Make a dataclass of a class without bases; its instances are compared by value and cannot be changed.

    Args:
        frozen: as for `dataclasses.dataclass`; nothing but True will do.
        kw_only: as for `dataclasses.dataclass`.
    """
    if not frozen:
        raise TypeError("what changes needs dataclasses.dataclass")

    def begin(cls: type) -> type:
        own = {name: value for name, value in vars(cls).items() if name not in _OF_INSTANCES}
        begun = type(cls.__name__, (_Unfinished,), own)
        _unfinished[begun] = {"frozen": frozen, "kw_only": kw_only}
        return begun

    return begin


def _finish(cls: type) -> None:
    with _LOCK:
        if told := _unfinished.get(cls):
            import dataclasses  # it brings `inspect` along

            dataclasses.dataclass(eq=False, **told)(cls)  # what compares would be written and compiled for each class
            _by_value(cls, dataclasses.fields(cls))
            del _unfinished[cls]


def _by_value(cls: type, declared: tuple[Field[Any], ...]) -> None:
    """Let instances of a class be equal where the values of their fields are; what the class has itself stays."""
    compared = _values([field.name for field in declared if field.compare])
    hashed = _values([field.name for field in declared if (field.compare if field.hash is None else field.hash)])

    def equal(self: object, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def digest(self: object) -> int:
        return hash(hashed(self))

    for name, method in (("__eq__", equal), ("__hash__", digest)):
        if name not in vars(cls):
            setattr(cls, name, method)


def _values(names: list[str]) -> Callable[[object], object]:
    return operator.attrgetter(*names) if names else lambda _: ()


def fields(cls: type[Any]) -> tuple[Field[Any], ...]:
    """As `dataclasses.fields`, also for a class that was not used yet.

    Raises:
        TypeError: it is no dataclass.
    """
    import dataclasses

    _finish(cls)
    return dataclasses.fields(cls)


if not TYPE_CHECKING:
    dataclass = _begin
