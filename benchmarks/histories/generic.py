"""Patches of the kinds P1, P2 and P5 over repositories that have no app in the catalogue: do the ops generalise?"""

from __future__ import annotations

import dataclasses

from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName

from histories.judge_calls import NoDeviceLiteral, NoRunTimeInstall
from histories.judge_imports import ImportsWithout
from histories.judge_requirements import Dropped, Pinned
from histories.states import Row
from patchlock.model.origins import Origin
from patchlock.model.patch import Ensure, Expect, Op, Patch
from patchlock.patches.ops import OPS
from patchlock.patches.postconditions import ENSURES

_REQUIREMENTS = r"(.*/)?[^/]*requirements[^/]*\.txt"
_DROPPED = (
    ("erew123/alltalk_tts", "faster-whisper"),
    ("erew123/alltalk_tts", "av"),
    ("erew123/alltalk_tts", "deepspeed"),
    ("RVC-Boss/GPT-SoVITS", "faster-whisper"),
    ("RVC-Boss/GPT-SoVITS", "av"),
    ("RVC-Boss/GPT-SoVITS", "onnxruntime-gpu"),
    ("rsxdalv/TTS-WebUI", "av"),
    ("rsxdalv/TTS-WebUI", "deepspeed"),
    ("rsxdalv/TTS-WebUI", "fairseq"),
    ("coqui-ai/TTS", "faster-whisper"),
    ("coqui-ai/TTS", "fairseq"),
    ("resemble-ai/resemble-enhance", "deepspeed"),
    ("EleutherAI/gpt-neox", "deepspeed"),
    ("microsoft/DeepSpeedExamples", "deepspeed"),
)
"""Of faster-whisper, whisperx, av, deepspeed, fairseq and onnxruntime-gpu, those that a history ever required."""


def rows() -> tuple[Row, ...]:
    """Give the rows, in the order of the table."""
    pinned = (
        "daswer123/xtts-api-server", "erew123/alltalk_tts", "RVC-Boss/GPT-SoVITS", "rsxdalv/TTS-WebUI",
        "coqui-ai/TTS", "resemble-ai/resemble-enhance", "EleutherAI/gpt-neox", "huggingface/accelerate",
        "RVC-Project/Retrieval-based-Voice-Conversion-WebUI", "microsoft/DeepSpeedExamples",
    )  # fmt: skip
    pins = [_pin(name, "torch", "==2.7.0") for name in pinned]
    audio = [_pin(name, "torchaudio", "==2.7.0") for name in pinned[:5]]
    dropped = [_drop(name, unwanted) for name, unwanted in _DROPPED]
    installs = [_install(name) for name in _INSTALLING]
    devices = [_device(name) for name in _DEVICES]
    return (
        *installs,
        *devices,
        *pins,
        *audio,
        *dropped,
        *(_optional(*where) for where in _IMPORTING),
        *map(_each_file, _FILES),
    )


def _pin(repository: str, name: str, specifier: str) -> Row:
    keys = {"name": NormalizedName(name), "specifier": SpecifierSet(specifier)}
    patch = _patch(f"P1-{name}", "set-requirement", keys, "requirement", keys, _TEXTS)
    return Row(repository=repository, patch=patch, judge=Pinned(pins={name: specifier}), scope=_REQUIREMENTS)


def _drop(repository: str, name: str) -> Row:
    keys = {"name": NormalizedName(name)}
    patch = _patch(f"P5-{name}", "drop-requirement", keys, "no-requirement", keys, _TEXTS)
    return Row(repository=repository, patch=patch, judge=Dropped(names=frozenset({name})), scope=_REQUIREMENTS)


def _optional(repository: str, glob: str, scope: str) -> Row:
    keys = {"package": "deepspeed"}
    patch = _patch("P2-deepspeed", "optional-import", keys, "imports-without", keys, (glob,), ("deepspeed",))
    judge = ImportsWithout(package="deepspeed")
    return Row(repository=repository, patch=patch, judge=judge, scope=scope, every=_SPARSELY.get(repository, 1))


def _install(repository: str) -> Row:
    ensured = {"callee": "os.system", "mentions": ("pip install",)}
    patch = _patch("P3-run-time-pip", "run-time-pip", {}, "no-call", ensured, ("**/*.py",), ("pip", "conda"))
    return Row(repository=repository, patch=patch, judge=NoRunTimeInstall(), scope=r".*\.py")


def _device(repository: str) -> Row:
    paths, literal = ("**/*.py",), ("cuda",)
    patch = _patch("P6-cpu, file by file", "device-literals", {"always": True}, "lacks", {"text": "\0"}, paths, literal)
    return Row(repository=repository, patch=patch, judge=NoDeviceLiteral(), scope=r".*\.py", by_file=True)


def _each_file(repository: str) -> Row:
    row = _optional(repository, "**/*.py", r".*\.py")
    patch = dataclasses.replace(row.patch, id="P2-deepspeed, file by file")
    return dataclasses.replace(row, patch=patch, by_file=True)


_IMPORTING = (
    ("resemble-ai/resemble-enhance", "**/*.py", r".*\.py"),
    ("EleutherAI/gpt-neox", "megatron/**/*.py", r"megatron/.*\.py"),
)
"""Repositories, and the folders where their libraries are: scripts that call DeepSpeed at once are none."""
_SPARSELY = {"EleutherAI/gpt-neox": 8, "huggingface/accelerate": 8, "microsoft/Megatron-DeepSpeed": 4}
"""Long histories of which only some commits are tried for `optional-import`."""
_INSTALLING = ("daswer123/xtts-api-server", "rsxdalv/TTS-WebUI", "erew123/alltalk_tts", "open-mmlab/Amphion")
_DEVICES = (
    "daswer123/xtts-webui",
    "daswer123/xtts-api-server",
    "open-mmlab/Amphion",
    "ArkanDash/Advanced-RVC-Inference",
    "RVC-Boss/GPT-SoVITS",
)
_FILES = (
    "EleutherAI/gpt-neox",
    "huggingface/accelerate",
    "microsoft/DeepSpeedExamples",
    "microsoft/Megatron-DeepSpeed",
)
_TEXTS = ("**/*requirements*.txt",)


def _patch(
    id_: str,
    op: str,
    keys: dict[str, object],
    ensure: str,
    ensured: dict[str, object],
    paths: tuple[str, ...],
    literal: tuple[str, ...] = (),
) -> Patch:
    made: Op = OPS[op](**keys)
    ensures: tuple[Ensure, ...] = (ENSURES[ensure](**ensured),)
    return Patch(
        id=id_,
        why="",
        source="",
        paths=paths,
        literal=literal,
        profiles=(),
        op_name=op,
        op=made,
        ensures=ensures,
        expect=Expect(),
        after=(),
        origin=Origin(file="", line=0),
    )
