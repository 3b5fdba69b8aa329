"""The patches of the catalogue's apps, each with a judge of its own that says what the patch is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from histories.judge_calls import Lacks, LacksImport, NoRunTimeInstall
from histories.judge_imports import ImportsWithout
from histories.judge_requirements import Dropped, Pinned
from histories.judge_statements import LacksStatement, LeavesFirst
from histories.states import Judge, Row
from patchlock.catalogue.reader import Catalogue
from patchlock.model.app import EmbeddedUpstream
from patchlock.patches import engine

_ROOT = r"requirements\.txt"
_PYTHON = r".*\.py"
_MASKGCT = r"models/(tts/maskgct|vc/vevo)/requirements\.txt"
_AMPHION = r"models/(tts/maskgct|vc/vevo|svc/vevosing)/requirements\.txt"

Judged = tuple[Judge, str]
"""A judge, and where it looks."""


def _pinned(name: str, specifier: str, scope: str = _ROOT) -> Judged:
    return Pinned(pins={name: specifier}), scope


def _added(name: str, specifier: str, scope: str) -> Judged:
    return Pinned(pins={name: specifier}, adds=True), scope


def _renamed(name: str, to: str, scope: str = _ROOT) -> Judged:
    return Dropped(names=frozenset({name}), also=frozenset({to})), scope


def _lacks(pattern: str, scope: str = _PYTHON, within: str = "") -> Judged:
    return Lacks(pattern=pattern, within=within), scope


_BOTH_PROVIDERS = r"\['CUDAExecutionProvider', 'CPUExecutionProvider'\]"
_SHARED: Mapping[str, Judged] = {
    "av-wheel-required": _pinned("av", ">=12,<19,!=14.4.0"),
    "deepspeed-optional-imports": (ImportsWithout(package="deepspeed"), _PYTHON),
    "device-helper-on-cpu": _lacks(r"'cuda:0'", r"(scripts|models/tts/(maskgct|metis))/.*\.py"),
    "no-run-time-pip-calls": (NoRunTimeInstall(), _PYTHON),
    "onnxruntime-one-provider-asks-the-processor": _lacks(_BOTH_PROVIDERS),
    "onnxruntime-one-provider-for-cpu": _renamed("onnxruntime-gpu", "onnxruntime"),
    "pydantic-gradio-required": _pinned("pydantic", ">=2,<2.11"),
    "setuptools-pkg-resources-required": _added("setuptools", "<82", _ROOT),
    "torch-load-weights-only-calls": _lacks(r"torch\.load\((?!.*weights_only).*\)"),
}
"""Of the shared sets, whichever app takes them."""
_JUDGES: Mapping[str, Mapping[str, Judged]] = {
    "xtts-webui": {
        "transformers-that-resolves": _pinned("transformers", ">=4.42,<4.43"),
        "transformers-for-new-torch": _pinned("transformers", ">=4.43,<4.47"),
        "coqui-tts-for-new-torch": _pinned("coqui-tts", "==0.25.3"),
        "torch-with-public-hashes": _pinned("torch", "==2.7.1"),
        "torchaudio-with-public-hashes": _pinned("torchaudio", "==2.7.1"),
        "faster-whisper-that-resolves": _pinned("faster-whisper", ">=1.1,<1.2"),
        "torch-for-cpu": _pinned("torch", "==2.5.1"),
        "torchaudio-for-cpu": _pinned("torchaudio", "==2.5.1"),
        "no-deepspeed-at-start": _lacks(r"install_deepspeed_based_on_python_version\(\)"),
        "no-second-environment": _lacks(r"subprocess\.\w+\(.*install_rvc_venv.*\)"),
        "whisper-computes-int8": _lacks(r"gr\.Radio\(.*value='float16'.*"),
        "whisper-offers-int8": _lacks(r"gr\.Radio\(choices=\['float16'\].*\)", r"modules/.*\.py"),
        "whisper-chooses-the-processor": _lacks(r"gr\.Radio\(.*choices=\['cuda', 'cpu'\].*\)", r"parts/.*\.py"),
        "training-whisper-as-the-machine-can": _lacks(
            r"WhisperModel\(.*compute_type='float16'\)", r"scripts/utils/.*\.py"
        ),
        "device-of-the-machine": _lacks(
            r"(self\.cuda|'cuda') if torch\.cuda\.is_available\(\) else 'cpu'", r"scripts/(tts_)?funcs\.py"
        ),
        "second-environment-says-so": _lacks(r"'RVC and OpenVoice installation is complete'", r"app\.py"),
        "rvc-is-an-app-of-its-own": _lacks(r"'venv/rvc_venv/scripts/python'", r"scripts/voice2voice\.py"),
    },
    "rvc-python": {
        "no-fairseq": (Dropped(names=frozenset({"fairseq"})), _ROOT),
        "no-omegaconf": (Dropped(names=frozenset({"omegaconf"})), _ROOT),
        "torch-with-public-hashes": _pinned("torch", "==2.7.1"),
        "torchaudio-with-public-hashes": _pinned("torchaudio", "==2.7.1"),
        "numpy-before-2": _pinned("numpy", ">=1.26,<2"),
        "faiss-with-wheels": _pinned("faiss-cpu", ">=1.8,<2"),
        "av-with-wheels": _pinned("av", ">=12,<19,!=14.4.0"),
        "tqdm-required": _added("tqdm", "", _ROOT),
        "scipy-required": _added("scipy", "", _ROOT),
        "librosa-required": _added("librosa", "", _ROOT),
        "fairseq-optional": (ImportsWithout(package="fairseq"), _PYTHON),
        "voices-hold-only-weights": _lacks(r"torch\.load\((?!.*weights_only).*\)", r"rvc_python/.*\.py"),
        "mono-by-name": _lacks(r"\w+\.add_stream\(.*channels=1.*\)", r"rvc_python/lib/audio\.py"),
        "hubert-loaded": _lacks(r".*\.load_model_ensemble_and_task\(.*\)", r"rvc_python/modules/vc/utils\.py"),
        "metal-where-it-was-chosen": _lacks(r"self\.has_mps\(\)", r".*/config\.py", "device_config"),
        "configurations-stay": _lacks(r"self\.use_fp32_config\(\)", r".*/config\.py", "device_config"),
        "a-whole-number-of-the-device": _lacks(r"True if device != 'cpu' else False", r".*/config\.py"),
    },
    "advanced-rvc-inference": {
        "torch-by-default": _pinned("torch", "==2.7.0"),
        "torchaudio-by-default": _pinned("torchaudio", "==2.7.0"),
        "torchvision-by-default": _pinned("torchvision", "==0.22.0"),
        "no-torchcodec": (Dropped(names=frozenset({"torchcodec"})), _ROOT),
        "transformers-before-5": _pinned("transformers", ">=4.49,<5"),
        "onnxconverter-common-required": _added("onnxconverter-common", "", _ROOT),
        "pywin32-required": _added("pywin32", "", _ROOT),
        "device-chosen-and-said": _lacks(r"torch\.cuda\.is_available\(\)", within="get_default_device"),
        "metal-that-starts": _lacks(r"torch\.backends\.mps\.is_available\(\)", r"[^/]+/.*\.py"),
        "cards-that-start": _lacks(r"torch\.cuda\.is_available\(\)", r"[^/]+/.*\.py"),
        "rocm-is-not-zluda": (
            LeavesFirst(
                function="_detect_zluda", condition=r"torch\.version\.cuda is None", asks="torch.version, 'hip'"
            ),
            _PYTHON,
        ),
        "separation-has-a-provider": (
            LacksStatement(pattern=r"self\.onnx_execution_provider = None"),
            r".*/separator\.py",
        ),
        "separation-knows-zluda": (
            Lacks(pattern=r"'CUDAExecutionProvider' in ort_providers", within="configure_cuda", is_test=True),
            r".*/separator\.py",
        ),
    },
    "diffrhythm2": {
        "inflect-required": _added("inflect", "", _ROOT),
        "pyopenjtalk-with-wheels": _renamed("pyopenjtalk", "pyopenjtalk-plus"),
        "times-in-the-model-s-type": _lacks(r".*\.half\(\)", within="sample_block_cache"),
        "device-of-the-helper": _lacks(r"torch\.cuda\.is_available\(\)", r"inference\.py"),
    },
    "amphion": {
        "torch-by-default": _pinned("torch", "==2.7.0", _AMPHION),
        "torchaudio-by-default": _added("torchaudio", "==2.7.0", _MASKGCT),
        "pyworld-required": _added("pyworld", "", _MASKGCT),
        "ipython-required": _added("ipython", "", _MASKGCT),
        "peft-required": _added("peft", "<0.13", _MASKGCT),
        "py3langid-required": _added("py3langid", "", _MASKGCT),
        "metis-tells-languages-as-maskgct-does": (LacksImport(module="langid"), r"models/tts/metis/.*\.py"),
        "hydra-core-required": _added("hydra-core", "", _MASKGCT),
        "descript-audiotools-required": _added("descript-audiotools", ">=0.7.2", _MASKGCT),
        "cached-path-required": _added("cached-path", "", _MASKGCT),
        "easydict-required": _added("easydict", "", _MASKGCT),
        "fairseq-optional": (ImportsWithout(package="fairseq"), _PYTHON),
        "pyopenjtalk-with-wheels": _renamed("pyopenjtalk", "pyopenjtalk-plus", _AMPHION),
        "cpu-is-a-device": _lacks(r"torch\.device\(.*'CPU'\)"),
        "monotonic-align-builds": (LacksImport(module="distutils"), r"modules/monotonic_align/setup\.py"),
    },
    "tts-service": {
        "engine-speaks-with-either": _lacks(r"self\.model\.synthesize_stream_raw\(.*\)", r"src/tts_engine\.py"),
        "engine-asks-a-session": _lacks(r"\w+\.get_available_providers\(\)", r"src/tts_engine\.py"),
        "health-asks-the-session": _lacks(r"\w+\.get_available_providers\(\)", r"src/routes\.py"),
        "health-without-a-voice": _lacks(r"HealthResponse\(status='healthy',.*\)", r"src/routes\.py"),
    },
}


UNJUDGED: Mapping[str, frozenset[str]] = {
    "amphion": frozenset({"compute-device-helper", "device-helper-in-single-precision"}),
    "diffrhythm2": frozenset({"compute-device-helper"}),
    "tts-service": frozenset(
        {"engine-knows-either", "engine-says-what-is-missing", "no-voice-is-503", "piper-stream", "piper-with-wheels"}
    ),
    "xtts-webui": frozenset(
        {
            "compute-device-helper",
            "deepspeed-installer-says-so",
            "machine-helper",
            "no-environment-beside-the-lock",
            "openvoice-says-what-it-needs",
            "rvc-batch-says-what-it-needs",
            "rvc-says-what-it-needs",
            "start-script-without-installer",
            "start-scripts-without-deepspeed",
            "stream2sentence-upgrade-says-so",
            "tts-upgrade-says-so",
        }
    ),
    "rvc-python": frozenset(
        {
            "compute-device-helper",
            "device-helper-on-cpu",
            "device-is-known",
            "device-that-starts",
            "hubert-of-torchaudio",
        }
    ),
    "advanced-rvc-inference": frozenset(
        {
            "compute-device-helper",
            "device-is-known",
            "gradio-of-the-index",
            "no-torchcodec-in-the-project",
            "zluda-is-an-overlay",
            "zluda-starts-with-patchlock",
        }
    ),
}
"""Patches that have no judge yet, or that hold only with others, so that only the table of whole sets has them."""


class Unjudged:
    """Stands for the judge that a patch has not."""

    def violations(self, path: PurePosixPath, data: bytes) -> tuple[str, ...]:
        """Say nothing."""
        return ()

    def damage(self, path: PurePosixPath, before: bytes, after: bytes) -> tuple[str, ...]:
        """Say nothing."""
        return ()

    def is_beyond_help(self, path: PurePosixPath, data: bytes) -> bool:
        """Say nothing."""
        return False


def rows(catalogue: Catalogue, *, whole: bool = False) -> Iterator[Row]:
    """Give a row for each patch that the profile `cpu` wants; a patch needs a judge, unless `UNJUDGED` has it.

    Args:
        catalogue: whose apps.
        whole: also those without a judge.
    """
    for name, judges in _JUDGES.items():
        app = catalogue.app(name)
        if isinstance(app.upstream, EmbeddedUpstream):
            continue
        repository = app.upstream.url.removeprefix("https://github.com/").removesuffix(".git")
        for patch in engine.for_profile(app.patches, "cpu"):
            if patch.id not in UNJUDGED.get(name, ()):
                judge, scope = judges.get(patch.id) or _SHARED[patch.id]
            elif whole:
                judge, scope = Unjudged(), "(?!)"
            else:
                continue
            yield Row(
                repository=repository, patch=patch, judge=judge, scope=scope, directory=str(app.directory), is_app=True
            )
