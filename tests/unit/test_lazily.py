"""Dataclasses that are finished at their first use are what the standard library makes of them at once."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from patchlock import lazily
from patchlock.lazily import dataclass


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel."""

    name: str
    size: int = 3
    tags: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name} of {self.size}"


@dataclass(frozen=True)
class Checked:
    """Something that wants a positive number."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError("a number above 0 is wanted")


def _new() -> type[Any]:
    @dataclass(frozen=True, kw_only=True)
    class Fresh:
        """Never used before."""

        left: int
        right: list[int] = dataclasses.field(default_factory=list, hash=False)

    return Fresh


def test_methods_are_written_at_the_first_use() -> None:
    fresh = _new()
    assert not dataclasses.is_dataclass(fresh)
    assert fresh(left=1) == fresh(left=1)
    assert dataclasses.is_dataclass(fresh)
    assert repr(fresh(left=1)).endswith("Fresh(left=1, right=[])")


def test_it_is_compared_by_value_and_replaced_and_copied() -> None:
    wheel = Wheel(name="av")
    assert wheel == Wheel(name="av", size=3)
    assert wheel != Wheel(name="av", size=4)
    assert len({wheel, Wheel(name="av"), Wheel(name="torch")}) == 2
    assert dataclasses.replace(wheel, size=5).label == "av of 5"
    assert copy.deepcopy(wheel) == wheel
    assert pickle.loads(pickle.dumps(wheel)) == wheel
    assert dataclasses.asdict(wheel) == {"name": "av", "size": 3, "tags": ()}


def test_it_is_frozen_and_by_name() -> None:
    wheel = Wheel(name="av")
    with pytest.raises(dataclasses.FrozenInstanceError):
        wheel.size = 5  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        Wheel("av")  # type: ignore[misc]
    with pytest.raises(TypeError, match="name"):
        Wheel()  # type: ignore[call-arg]


def test_what_its_author_demands_is_demanded_of_the_first_too() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Checked(0)
    assert Checked(1).number == 1


def test_fields_are_known_before_the_first_use() -> None:
    assert [field.name for field in lazily.fields(_new())] == ["left", "right"]
    with pytest.raises(TypeError):
        lazily.fields(int)


def test_what_can_be_changed_is_refused() -> None:
    with pytest.raises(TypeError, match=r"dataclasses\.dataclass"):
        lazily.dataclass(frozen=False)


@pytest.mark.parametrize("use", [lambda one: one, hash, lambda one: one == one])  # noqa: PLR0124
def test_an_instance_made_without_its_initialiser_is_whole(use: Callable[[Any], object]) -> None:
    fresh = _new()
    one = object.__new__(fresh)
    one.__dict__.update(left=1, right=[])
    use(one)
    assert one == fresh(left=1)
    assert hash(one) == hash(fresh(left=1))


def test_threads_that_want_one_class_at_once_all_get_it() -> None:
    found: list[object] = []
    for _ in range(40):
        fresh = _new()
        start = threading.Barrier(8)

        def make(fresh: type[Any] = fresh, start: threading.Barrier = start) -> None:
            start.wait()
            found.append(fresh(left=1) == fresh(left=1) and hash(fresh(left=1)) == hash(fresh(left=1)))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 320
