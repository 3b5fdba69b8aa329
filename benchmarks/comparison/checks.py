"""The checks of the comparison that import and call the tree's own modules; each runs in a process of its own."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.metadata
import io
import os
import runpy
import shutil
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison import heavy
from comparison.heavy import Record

ENHANCE = "scripts.resemble_enhance"
Verdict = str
"""Why the tree fails, or ""."""


def imports_without_deepspeed() -> Verdict:
    """Enhancing is imported without deepspeed."""
    for name in (f"{ENHANCE}.enhancer.inference", "scripts.funcs"):
        importlib.import_module(name)
    return ""


def imports_with_a_broken_deepspeed() -> Verdict:
    """Enhancing is imported with a deepspeed whose import ends in an `OSError`."""
    Record.deepspeed = "broken"
    return imports_without_deepspeed()


def loaders_say_what_is_missing() -> Verdict:
    """`load_G` and `load_D` say that deepspeed is missing."""
    for part, model, loaders in (("denoiser", "Denoiser", ["load_G"]), ("enhancer", "Enhancer", ["load_G", "load_D"])):
        train = importlib.import_module(f"{ENHANCE}.{part}.train")
        setattr(train, model, heavy.Module)
        train.Discriminator = heavy.Module
        for loader in loaders:
            hparams = importlib.import_module(f"{ENHANCE}.{part}.hparams").HParams()
            if why := _names_deepspeed(functools.partial(getattr(train, loader), Path("run"), hparams)):
                return f"{part}.train.{loader}: {why}"
    return ""


def engine_says_what_is_missing() -> Verdict:
    """`Engine` is defined, and its use says that deepspeed is missing."""
    engine = importlib.import_module(f"{ENHANCE}.utils.engine").Engine
    return _names_deepspeed(lambda: engine(model=heavy.Module(), ckpt_dir=Path("run")))


def clipping_is_not_silently_off() -> Verdict:
    """Gradient clipping is not silently off."""
    engine = importlib.import_module(f"{ENHANCE}.utils.engine").Engine
    holder = types.SimpleNamespace(module=heavy.Module(), gradient_clipping=lambda: 1.0, mpu=None)
    return _names_deepspeed(lambda: engine.clip_fp32_gradients(holder))


def distributed_says_what_is_missing() -> Verdict:
    """`init_distributed()` says that deepspeed is missing."""
    return _names_deepspeed(importlib.import_module(f"{ENHANCE}.utils.distributed").init_distributed)


def card_is_chosen_only_where_there_is_one() -> Verdict:
    """`torch.cuda.set_device` is called where there is CUDA, and only there."""
    Record.deepspeed = "present"
    for Record.has_cuda in (True, False):
        Record.cuda_calls.clear()
        distributed = importlib.import_module(f"{ENHANCE}.utils.distributed")
        distributed.init_distributed.cache_clear()
        distributed.init_distributed()
        if Record.cuda_calls != ["set_device"] * Record.has_cuda:
            return f"CUDA {Record.has_cuda}: {Record.cuda_calls}"
    return "" if Record.initialized else "deepspeed was there and was not asked"


def installer_starts_nothing() -> Verdict:
    """`install_deepspeed_based_on_python_version()` starts no process."""
    _downloader().install_deepspeed_based_on_python_version()
    return _processes()


def installer_says_so() -> Verdict:
    """`install_deepspeed_based_on_python_version()` says that it installs nothing."""
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        _downloader().install_deepspeed_based_on_python_version()
    told = " ".join([*Record.said, stderr.getvalue()])
    return _processes() or ("" if "not installed" in told else "nothing is said")


def install_package_starts_nothing() -> Verdict:
    """`install_package()` starts no process."""
    _downloader().install_package("deepspeed==0.11.2")
    return _processes()


def torch_installer_starts_nothing() -> Verdict:
    """`check_and_install_torch()` starts no process."""
    importlib.metadata.distributions = list  # type: ignore[assignment] # or upstream ends in a TypeError first
    _downloader().check_and_install_torch()
    return _processes()


def old_tts_is_not_upgraded() -> Verdict:
    """An old tts is not upgraded, nor said to be."""
    return _not_upgraded("check_tts_version")


def old_stream2sentence_is_not_upgraded() -> Verdict:
    """An old stream2sentence is not upgraded, nor said to be."""
    return _not_upgraded("check_stream2sentence_version")


def downloader_as_a_script_starts_nothing() -> Verdict:
    """`python scripts/modeldownloader.py` starts no process."""
    runpy.run_path("scripts/modeldownloader.py", run_name="__main__")
    return _processes()


def start_installs_nothing() -> Verdict:
    """`python app.py` starts no process."""
    _start()
    return _processes()


def start_with_rvc_installs_nothing() -> Verdict:
    """`python app.py --rvc` starts no process, nor says that it installed."""
    _start("--rvc")
    lies = [text for text in Record.said if "installation is complete" in text]
    return _processes() or "; ".join(lies)


def rvc_script_installs_nothing() -> Verdict:
    """`python scripts/install_rvc_venv.py` starts no process."""
    runpy.run_path("scripts/install_rvc_venv.py", run_name="__main__")
    return _processes()


def started_plainly_it_takes_the_processor() -> Verdict:
    """XTTS is on the CPU, started plainly on torch that reports CUDA."""
    Record.has_cuda = True
    _start()
    wrapper = _wrapper(os.environ["DEVICE"])
    return _is("cpu", wrapper.device)


def device_of_the_command_line_counts() -> Verdict:
    """`--device cpu` gives the CPU, `--device cuda` the card."""
    Record.has_cuda = True
    for device in ("cpu", "cuda"):
        _start("--device", device)
        if why := _is(device, _wrapper(os.environ["DEVICE"]).device):
            return f"--device {device}: {why}"
    return ""


def enhancing_takes_the_chosen_device() -> Verdict:
    """`resemble_enhance_audio` takes the chosen device."""
    Record.has_cuda = True
    funcs = importlib.import_module("scripts.funcs")
    taken: list[str] = []
    funcs.enhance = lambda **arguments: (taken.append(arguments["device"]), (heavy.Anything(), 44100))[1]
    funcs.save_audio = lambda *arguments: "out.wav"
    for device in ("cpu", "cuda"):
        os.environ["DEVICE"] = device
        funcs.resemble_enhance_audio("in.wav", True)
    return _is(["cpu", "cuda"], taken)


def voice_conversion_asks_no_card() -> Verdict:
    """Voice conversion asks for no `cuda:0`."""
    for folder, name in (("bin", "python"), ("Scripts", "python.exe")):
        python = Path("venv/rvc_venv", folder, name)
        python.parent.mkdir(parents=True, exist_ok=True)
        python.touch()
    voice = importlib.import_module("scripts.voice2voice")
    voice.infer_rvc(0, 0.5, 0.3, "rmvpe", "index", "model", "in.wav", "out.wav")
    voice.infer_openvoice("in.wav", "reference.wav", "out.wav")
    Path("temp").mkdir(exist_ok=True)
    voice.infer_rvc_batch("name", 0, 0.5, 0.3, "rmvpe", "index", "model", [], "nowhere/out.wav")
    asked = [word for command in Record.processes for word in command if word.startswith("cuda")]
    return f"{len(Record.processes)} commands, {asked}" if asked or len(Record.processes) != 3 else ""


def voice_conversion_says_what_it_needs() -> Verdict:
    """Without their environment, RVC and OpenVoice say what they need, and start nothing."""
    shutil.rmtree("venv", ignore_errors=True)
    voice = importlib.import_module("scripts.voice2voice")
    for call in (
        lambda: voice.infer_rvc(0, 0.5, 0.3, "rmvpe", "index", "model", "in.wav", "out.wav"),
        lambda: voice.infer_rvc_batch("name", 0, 0.5, 0.3, "rmvpe", "index", "model", [], "nowhere/out.wav"),
        lambda: voice.infer_openvoice("in.wav", "reference.wav", "out.wav"),
    ):
        try:
            call()
        except heavy.PageError as error:
            if "venv/rvc_venv" not in str(error):
                return str(error)
        else:
            return f"nothing is said; {Record.processes} were started"
    return ""


def whisper_asks_what_knows_the_card() -> Verdict:
    """Whisper for training leaves a card alone that CTranslate2 does not know."""
    os.environ["DEVICE"] = "cuda"
    Record.has_cuda = True
    formatter = importlib.import_module("scripts.utils.formatter")
    with contextlib.suppress(TypeError, AttributeError):  # what is behind it works on data frames
        formatter.format_audio_list([], out_path="out")
    return "" if Record.whisper == [("cpu", "int8")] else str(Record.whisper)


def training_loads_whisper_on_a_processor() -> Verdict:
    """Whisper for training loads on the CPU, without float16."""
    os.environ["DEVICE"] = "cpu"
    formatter = importlib.import_module("scripts.utils.formatter")
    for Record.has_cuda in (False, True):
        Record.whisper.clear()
        with contextlib.suppress(TypeError, AttributeError):  # what is behind it works on data frames
            formatter.format_audio_list([], out_path="out")
        if [device for device, _ in Record.whisper] != ["cpu"]:
            return f"CUDA {Record.has_cuda}: {Record.whisper}"
    return ""


def page_offers_what_the_processor_can() -> Verdict:
    """The page offers what CTranslate2 can on the CPU."""
    shown: dict[str, Any] = {}
    gr = types.SimpleNamespace(Radio=lambda **arguments: shown.update(arguments))
    tree = ast.parse(Path("modules/voice2voice.py").read_bytes())
    function = next(n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "check_whisper_cpu")
    names: dict[str, Any] = {"gr": gr}
    exec(compile(ast.Module(body=[function], type_ignores=[]), "voice2voice", "exec"), names)
    names["check_whisper_cpu"]("cpu")
    is_right = shown["value"] in shown["choices"] and "float16" not in shown["choices"]
    return "" if is_right else f"{shown['value']} of {shown['choices']}"


def model_is_the_one_that_was_loaded() -> Verdict:
    """The model is not quantized unasked."""
    _loaded("cpu")
    return "it is quantized, and nobody asked" if Record.quantized else ""


def model_is_moved_to_its_device() -> Verdict:
    """The loaded model is moved to its device."""
    Record.has_cuda = True
    return _is("cuda", _loaded("cuda").model.device)


def low_memory_mode_moves_the_model() -> Verdict:
    """`--lowvram` still moves the model to the card and back."""
    Record.has_cuda = True
    wrapper = _loaded("cuda", lowvram=True)
    seen = [wrapper.model.device]
    for _ in range(2):
        wrapper.switch_model_device()
        seen.append(wrapper.model.device)
    return _is(["cpu", "cuda", "cpu"], seen)


def latents_are_computed_on_the_processor() -> Verdict:
    """Latents are computed on the CPU, started plainly on torch that reports CUDA."""
    Record.has_cuda = True
    _start()
    wrapper = _loaded(os.environ["DEVICE"])
    wrapper.get_or_create_latents("name", "name.wav")
    return _is(["cpu"], Record.latents_on)


def failing_speaker_leaves_the_model_where_it_was() -> Verdict:
    """A speaker that fails leaves the model where it was."""
    wrapper = _loaded("cpu")
    wrapper.model.to("elsewhere").fails = True
    with contextlib.suppress(ValueError):
        wrapper.get_or_create_latents("name", "name.wav")
    return _is("elsewhere", wrapper.model.device)


def _start(*arguments: str) -> None:
    sys.argv = ["app.py", *arguments]
    sys.modules.pop("app", None)
    importlib.import_module("app")


def _downloader() -> Any:
    return importlib.import_module("scripts.modeldownloader")


def _not_upgraded(check: str) -> Verdict:
    importlib.metadata.version = lambda name: "0.1.0"  # type: ignore[assignment]
    getattr(_downloader(), check)()
    lies = [text for text in Record.said if "successfully upgraded" in text]
    return _processes() or "; ".join(lies)


def _wrapper(device: str, *, lowvram: bool = False) -> Any:
    return importlib.import_module("scripts.tts_funcs").TTSWrapper(
        output_folder="out", speaker_folder="voices", device=device, lowvram=lowvram
    )


def _loaded(device: str, *, lowvram: bool = False) -> Any:
    wrapper = _wrapper(device, lowvram=lowvram)
    importlib.import_module("scripts.tts_funcs").download_model = lambda *arguments: None
    wrapper.load_local_model(Path())
    return wrapper


def _processes() -> Verdict:
    return "; ".join("starts " + " ".join(command[:6]) for command in Record.processes[:1])


def _is(wanted: object, seen: object) -> Verdict:
    return "" if wanted == seen else f"{seen} and not {wanted}"


def _names_deepspeed(use: Callable[[], object]) -> Verdict:
    try:
        use()
    except ImportError as error:
        return "" if str(error).startswith("deepspeed is not installed") else f"ImportError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "it goes on without it"
