"""Which programs and libraries an app seems to need, by its calls, imports, requirements and documents; pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import _program_calls, documents, importers, module_names
from patchlock.catalogue.proposals.findings import Files, Finding, SystemNeed, excerpt
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.shared_sets import Asked


@dataclass(frozen=True, kw_only=True)
class _Sign:
    name: str
    modules: tuple[str, ...]
    words: str
    """Pattern for a line of the README; "" where what it says is for people to type."""
    why: str
    carried: str = ""
    """Pattern for a file of a wheel that brings it."""
    is_for_modules: bool = False
    """Only its modules use it: where a lock has none of them, a document that names it speaks of another use."""
    programs: tuple[str, ...] = ()
    """What code calls of it."""
    beside: tuple[str, ...] = ()
    """Modules below those, which do without it."""
    clones: str = ""
    """What it is for instead where the document clones models from a hub, a clause."""
    libraries: tuple[str, ...] = ()
    """Distributions that never do without it, whoever requires them."""
    codec: str = ""
    """A distribution that opens no file without it."""


_INSTALLS = re.compile(r"(?i)\b(?:apt|apt-get|brew|dnf|yum|pacman|choco|winget|conda)\b.*\b(?:install|-S)\b")
"""In other documents than the README, a line that installs it."""
_ASKS = re.compile(r"(?i)\b(?:(?:un)?install|requir|need|depend|prerequisit|must\b|make sure)")
_CLONES = re.compile(r"\bgit clone\b.*\bhttps://(?:huggingface\.co|hf\.co|(?:www\.)?modelscope\.(?:cn|com))/")
_ITEM = 6
"""Words of a line of the README that is no more than an item of a list; a longer one has to ask for it."""
_SIGNS = (
    _Sign(
        name="espeak-ng",
        modules=("phonemizer", "espeakng", "py_espeak_ng", "piper_phonemize"),
        words=r"\bespeak(?:-ng)?\b",
        why="text becomes phonemes through it",
        carried=r"(?:^|/)(?:lib)?espeak-ng[^/]*\.(?:so|dll|dylib)",
        programs=("espeak-ng", "espeak"),
        libraries=("phonemizer", "phonemizer-fork"),
    ),
    _Sign(
        name="ffmpeg",
        # openai-whisper reads audio with the program: https://github.com/openai/whisper/blob/v20250625/whisper/audio.py
        modules=("pydub", "ffmpeg", "audioread", "torchcodec", "moviepy", "whisper"),
        words=r"\bffmpeg\b",
        why="video, and audio that is no WAV, is read and written through it",
        programs=("ffmpeg", "ffprobe"),
        beside=("whisper.tokenizer", "whisper.normalizers"),
        codec="torchcodec",
    ),
    _Sign(
        name="sox",
        modules=("sox",),
        words=r"\b(?:apt|apt-get|brew|conda|dnf)\b.*\bsox\b",
        why="audio effects are done by it",
        programs=("sox",),
    ),
    _Sign(
        name="portaudio",
        modules=("pyaudio", "sounddevice"),
        words=r"\bportaudio",
        # PyAudio 0.2.14 has wheels for Windows alone.
        why="sound is recorded and played through it; the wheels of sounddevice bring it on Windows and macOS, "
        "those of PyAudio on Windows; elsewhere its build asks for the headers too (portaudio19-dev, portaudio-devel)",
        carried=r"(?:^|/)(?:lib|_)portaudio[^/]*\.(?:dll|dylib|pyd)$",
        is_for_modules=True,
    ),
    _Sign(
        name="libsndfile",
        modules=(),
        words=r"\blibsndfile",
        why="soundfile reads audio through it, where its wheel does not bring it",
        carried=r"(?:^|/)libsndfile[^/]*\.(?:so|dll|dylib)",
    ),
    _Sign(name="wget", modules=(), words="", why="files are downloaded by it", programs=("wget",)),
    _Sign(
        name="git-lfs",
        modules=(),
        words=r"\bgit[- ]lfs\b",
        why="files that git keeps elsewhere are fetched by it",
        clones="git fetches the files of a model by it where you clone that by hand; the program does not need it",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Locked:
    """What a lock says of needs."""

    names: Mapping[NormalizedName, Version]
    paths: Collection[str]
    """Of all files of its wheels, as far as they are known."""
    tools: Mapping[NormalizedName, Mapping[str, bool]]
    """Of what is built: the needs of its build, and whether it certainly has each."""
    platforms: Mapping[NormalizedName, tuple[str, ...]]
    """Of what is built: where, if not everywhere."""


_DOUBT = "no wheel fits, and its setup.py decides as it runs whether to compile"
_TOOLS = {"c-compiler": "no wheel fits, and it is compiled", "cmake": "no wheel fits, and CMake builds it"}


def read(
    files: Files,
    imports: Imports,
    asked: Asked,
    known: Collection[str],
    locked: Locked | None = None,
    started: Collection[PurePosixPath] = (),
) -> tuple[SystemNeed, ...]:
    """Name what is needed of the machine, with the place that says so.

    Args:
        files: the code and the documents.
        imports: of these.
        asked: the requirements, by name.
        known: names of `profiles/needs/`.
        locked: the app's lock, where there is one: what it brings is no need, and what it lacks needs nothing.
        started: files that its program comes to as it starts: it cannot do without what one of them ends without.
    """
    found = [
        one
        for sign in _SIGNS
        if not (locked is not None and sign.carried and any(re.search(sign.carried, path) for path in locked.paths))
        and (one := _of_sign(sign, files, imports, asked, locked, started)) is not None
    ]
    built = [_of_builds(tool, why, asked, locked) for tool, why in _TOOLS.items()] if locked is not None else []
    return tuple(one for one in (*found, *filter(None, built)) if one.name in known)


def _of_sign(
    sign: _Sign,
    files: Files,
    imports: Imports,
    asked: Asked,
    locked: Locked | None,
    started: Collection[PurePosixPath],
) -> SystemNeed | None:
    calls = [one for one in _program_calls.find(imports.trees, sign.programs) if not importers.is_aside(one.found.path)]
    for one in calls:
        if one.ends_without and one.found.path in started:
            why = f"the program asks for it, and ends without it; {sign.why}"
            return SystemNeed(name=sign.name, why=why, found=one.found, is_required=True)
    through = _through_codec(sign.codec, imports, locked) if locked is not None and sign.codec else []
    for opened in sorted(through, key=lambda opened: opened.path not in started):
        why = f"files are read and written through {sign.codec}, which opens none without the libraries of {sign.name}"
        return SystemNeed(name=sign.name, why=why, found=opened, is_required=opened.path in started)
    why = f"the code calls it; {sign.why}" if calls else sign.why
    places = [one.found for one in calls] or _places(sign, files, imports, asked, locked)
    place = next(iter(places), None)
    is_of_requirement = place is None
    if place is not None and sign.clones and (line := _CLONES.search(documents.text(files[place.path]))):
        why = f"{place.path}:{line.string.count(chr(10), 0, line.start()) + 1}: {sign.clones}"
    if place is None and locked is not None and asked:
        name = next((one for one in map(canonicalize_name, sign.libraries) if one in locked.names), None)
        if name is not None:
            why, place = f"{name} is locked: {why}", next(one.found for all_of in asked.values() for one in all_of)
    if place is None:
        return None
    return SystemNeed(name=sign.name, why=why, found=place, is_of_requirement=is_of_requirement)


def _through_codec(codec: str, imports: Imports, locked: Locked) -> list[Finding]:
    """List what imports a codec that is locked, or calls the torchaudio that works through it.

    Source: https://docs.pytorch.org/audio/2.9.0/generated/torchaudio.load.html
    """
    if canonicalize_name(codec) not in locked.names:
        return []
    found = [one.found for one in imports.of([codec]) if not one.is_optional]
    if locked.names.get(canonicalize_name("torchaudio"), Version("0")) >= Version("2.9"):
        for path in dict.fromkeys(one.found.path for one in imports.of(["torchaudio"])):
            for node in ast.walk(imports.trees.of(path) or ast.Module(body=[], type_ignores=[])):
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="torchaudio"), attr="load" | "save")):
                        found.append(Finding(path=path, line=node.lineno, text=excerpt(ast.unparse(node))))
    return [one for one in found if not importers.is_aside(one.path)]


def _of_builds(tool: str, why: str, asked: Asked, locked: Locked) -> SystemNeed | None:
    names = sorted((name for name, tools in locked.tools.items() if tool in tools), key=lambda name: name not in asked)
    if not names:
        return None
    first = next(iter(asked.get(names[0], ())), None)
    place = first.found if first is not None else next(one.found for all_of in asked.values() for one in all_of)
    everywhere = any(not locked.platforms.get(name) for name in names)
    platforms = () if everywhere else tuple(sorted({one for name in names for one in locked.platforms[name]}))
    is_certain = any(locked.tools[name][tool] for name in names)
    why = f"to build {', '.join(names)}: {why if is_certain else _DOUBT}"
    return SystemNeed(
        name=tool, why=why, found=place, is_required=is_certain, platforms=platforms, is_of_requirement=first is None
    )


def _places(sign: _Sign, files: Files, imports: Imports, asked: Asked, locked: Locked | None) -> Iterator[Finding]:
    every = [one for one in imports.of(sign.modules) if not importers.is_aside(one.found.path)]
    found = [one for one in every if not one.module.startswith(sign.beside)] if sign.beside else every
    found = sorted(found, key=lambda one: one.is_optional)
    optional = {one.top for one in every} - {one.top for one in found if not one.is_optional}
    # What is imported in a `try` and brought nevertheless works only with its need.
    optional -= {one.top for one in found if locked is not None or module_names.distribution_of(one.top) in asked}
    is_there = {
        module: locked is None or any(module_names.brings(name, module) for name in locked.names)
        for module in sign.modules
    }
    yield from (one.found for one in found if is_there[one.top] and one.top not in optional)
    for module in sign.modules:
        if is_there[module] and module not in optional:
            yield from (one.found for one in asked.get(module_names.distribution_of(module), ()))
    if locked is not None and sign.is_for_modules and not any(is_there[m] and m not in optional for m in sign.modules):
        return
    if not sign.words:
        return
    pattern = re.compile(sign.words, re.IGNORECASE)
    pages = (path for path in files if documents.is_document(path) and not documents.is_container(path))
    for path in sorted(pages, key=documents.order):
        is_readme = len(path.parts) == 1 and path.name.lower().startswith("readme")
        for number, line in enumerate(documents.text(files[path]).splitlines(), start=1):
            is_asked = is_readme and (len(line.split()) <= _ITEM or _ASKS.search(line))
            if pattern.search(line) and (is_asked or _INSTALLS.search(line)):
                yield Finding(path=path, line=number, text=excerpt(line))
