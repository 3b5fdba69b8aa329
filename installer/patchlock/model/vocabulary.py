"""The words of a catalogue and the classes that they name, each imported when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class Vocabulary(Mapping[str, type[T]], Generic[T]):
    """Name in the catalogue → dataclass whose fields are the table's keys; most commands need few of many."""

    def __init__(self, package: str, places: Mapping[str, Mapping[str, str]]) -> None:
        """Know where the classes are.

        Args:
            package: that the modules are in.
            places: module → name in the catalogue → class.
        """
        self._places = {
            word: (f"{package}.{module}", name) for module, words in places.items() for word, name in words.items()
        }

    def __getitem__(self, word: str) -> type[T]:
        """Import the class that a word names.

        Raises:
            KeyError: there is no such word.
        """
        module, name = self._places[word]
        found: type[T] = getattr(importlib.import_module(module), name)
        return found

    def __iter__(self) -> Iterator[str]:
        """List the words, without importing anything."""
        return iter(self._places)

    def __len__(self) -> int:
        """Count the words."""
        return len(self._places)

    def __contains__(self, word: object) -> bool:
        """Say whether there is such a word, without importing anything."""
        return word in self._places

    def word_of(self, named: type[object]) -> str | None:
        """Give the word that names a class; None if none does."""
        place = (named.__module__, named.__qualname__)
        return next((word for word, one in self._places.items() if one == place), None)
