"""Which programs and libraries an app seems to need, by its imports, requirements and README; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from packaging.utils import NormalizedName

from patchlock.catalogue.proposals import documents, module_names
from patchlock.catalogue.proposals.findings import Files, Finding, SystemNeed, excerpt
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement


@dataclass(frozen=True, kw_only=True)
class _Sign:
    name: str
    modules: tuple[str, ...]
    words: str
    """Pattern for a line of the README."""
    why: str


_INSTALLS = re.compile(r"(?i)\b(?:apt|apt-get|brew|dnf|yum|pacman|choco|winget|conda)\b.*\b(?:install|-S)\b")
"""In other documents than the README, a line that installs it."""
_SIGNS = (
    _Sign(
        name="espeak-ng",
        modules=("phonemizer", "espeakng", "py_espeak_ng", "piper_phonemize"),
        words=r"\be?speak(?:-ng)?\b",
        why="text becomes phonemes through it",
    ),
    _Sign(
        name="ffmpeg",
        modules=("pydub", "ffmpeg", "audioread", "torchcodec", "moviepy"),
        words=r"\bffmpeg\b",
        why="audio that is no WAV is read and written through it",
    ),
    _Sign(
        name="sox",
        modules=("sox",),
        words=r"\b(?:apt|apt-get|brew|conda|dnf)\b.*\bsox\b",
        why="audio effects are done by it",
    ),
    _Sign(
        name="portaudio",
        modules=("pyaudio", "sounddevice"),
        words=r"\bportaudio",
        # PyAudio 0.2.14 has wheels for Windows alone.
        why="sound is recorded and played through it; the wheels of sounddevice bring it on Windows and macOS, "
        "those of PyAudio on Windows; elsewhere its build asks for the headers too (portaudio19-dev, portaudio-devel)",
    ),
    _Sign(
        name="libsndfile",
        modules=(),
        words=r"\blibsndfile",
        why="soundfile reads audio through it, where its wheel does not bring it",
    ),
    _Sign(name="git-lfs", modules=(), words=r"\bgit[- ]lfs\b", why="model files of the repository are fetched by it"),
)


def read(
    files: Files,
    imports: Imports,
    asked: Mapping[NormalizedName, tuple[LocatedRequirement, ...]],
    known: Collection[str],
) -> tuple[SystemNeed, ...]:
    """Name what is needed of the machine, with the place that says so.

    Args:
        files: the code and the documents.
        imports: of these.
        asked: the requirements, by name.
        known: names of `profiles/needs/`.
    """
    return tuple(
        SystemNeed(name=sign.name, why=sign.why, found=place)
        for sign in _SIGNS
        if sign.name in known and (place := next(_places(sign, files, imports, asked), None)) is not None
    )


def _places(
    sign: _Sign, files: Files, imports: Imports, asked: Mapping[NormalizedName, tuple[LocatedRequirement, ...]]
) -> Iterator[Finding]:
    yield from (one.found for one in imports.of(sign.modules))
    for name in map(module_names.distribution_of, sign.modules):
        yield from (one.found for one in asked.get(name, ()))
    pattern = re.compile(sign.words, re.IGNORECASE)
    for path in sorted(filter(documents.is_document, files), key=documents.order):
        is_readme = len(path.parts) == 1 and path.name.lower().startswith("readme")
        for number, line in enumerate(documents.text(files[path]).splitlines(), start=1):
            if pattern.search(line) and (is_readme or _INSTALLS.search(line)):
                yield Finding(path=path, line=number, text=excerpt(line))
