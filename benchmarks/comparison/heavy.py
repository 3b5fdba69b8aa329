"""Small stand-ins for the heavy packages of an app, which behave where a check looks and bear everything else.

`install` puts them before whatever is installed, blocks deepspeed, and lets nothing start a process or reach a network.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

OWN = {"packaging", "_distutils_hack"}
"""Top-level modules that are no stand-ins: a package that computes and, once `install` knows the tree, those of it."""


class Record:
    """What happened in this process, for the check to look at."""

    has_cuda = False
    deepspeed = "absent"
    """`absent`, `broken` or `present`."""
    processes: list[list[str]] = []  # noqa: RUF012
    said: list[str] = []  # noqa: RUF012
    cuda_calls: list[str] = []  # noqa: RUF012
    quantized = 0
    whisper: list[tuple[str, str]] = []  # noqa: RUF012
    """Device and compute type of each model."""
    latents_on: list[str] = []  # noqa: RUF012
    initialized = 0


class _Meta(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = _Meta(name, (Anything,), {})
        setattr(cls, name, value)
        return value

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType):
            return args[0]  # a bare decorator
        return super().__call__(*args, **kwargs)

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __int__(cls) -> int:
        return 0

    __or__ = __ror__ = __add__ = __mul__ = __rmul__ = __truediv__ = __getitem__


class Anything(metaclass=_Meta):
    """Can be a base class, a decorator, an annotation, a call, an attribute."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Give back what is decorated, or anything."""
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return args[0]
        return Anything()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __getitem__(self, item: object) -> Any:
        return Anything()

    def __setitem__(self, item: object, value: object) -> None:
        pass

    def __len__(self) -> int:
        return 0

    __int__ = __len__
    __add__ = __mul__ = __truediv__ = __sub__ = __getitem__


class Tensor(Anything):
    """A tensor that knows where it is."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def to(self, device: str) -> Tensor:
        """Give it elsewhere."""
        return Tensor(device)

    def mean(self, dim: int) -> Tensor:
        """Give one of the same place."""
        return Tensor(self.device)

    def cpu(self) -> Tensor:
        """Give it on the processor."""
        return Tensor()


class Module:
    """A module that knows where it is, and nothing else."""

    device = "nowhere"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def to(self, device: str) -> Module:
        """Move it."""
        self.device = str(device)
        return self

    def parameters(self) -> Iterator[Tensor]:
        """Give one, where the module is."""
        return iter([Tensor(self.device)])

    def add_module(self, name: str, module: object) -> None:
        """Bear it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """Compute something, where the module is."""
        return Tensor(self.device)


class Xtts(Module):
    """The model of coqui-tts."""

    fails = False

    @classmethod
    def init_from_config(cls, config: object) -> Xtts:
        """Make one."""
        return cls()

    def load_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Be loaded; a checkpoint is loaded on the processor."""
        self.device = "cpu"

    def get_conditioning_latents(self, audio: object) -> tuple[Tensor, Tensor]:
        """Compute where the model is, or fail as a file that cannot be read does."""
        Record.latents_on.append(self.device)
        if self.fails:
            raise ValueError("the file cannot be read")
        return Tensor(self.device), Tensor(self.device)


class WhisperModel:
    """The model of faster-whisper: CTranslate2 has no float16 on processors."""

    def __init__(self, model: str, device: str = "auto", compute_type: str = "default") -> None:
        Record.whisper.append((device, compute_type))
        if device == "cpu" and compute_type == "float16":
            raise ValueError("Requested float16 compute type, but the target device does not support it")


class PageError(Exception):
    """What gradio shows a person on the page."""


def _quantize(model: Any, *args: Any, **kwargs: Any) -> Any:
    Record.quantized += 1
    return model


def _set_device(device: object) -> None:
    Record.cuda_calls.append("set_device")
    if not Record.has_cuda:
        raise AttributeError("module 'torch._C' has no attribute '_cuda_setDevice'")


def _initialize(*args: object) -> None:
    Record.initialized += 1


class _Two:
    """What `compute_device` lets a device add."""

    def sum(self) -> _Two:
        return self

    def item(self) -> int:
        return 2


class _Logger:
    def __getattr__(self, name: str) -> Any:
        return lambda text, *args: Record.said.append(str(text))


def _cuda() -> dict[str, Any]:
    return {"is_available": lambda: Record.has_cuda, "empty_cache": lambda: None, "set_device": _set_device}


CONTENTS = {
    "torch": lambda: {"Tensor": Tensor, "ones": lambda count, device: _Two()},
    "torch.nn": lambda: {"Module": Module},
    "torch.cuda": _cuda,
    "torch.quantization": lambda: {"quantize_dynamic": _quantize},
    "torchaudio": lambda: {"load": lambda path: (Tensor(), 44100)},
    "faster_whisper": lambda: {"WhisperModel": WhisperModel},
    "TTS.tts.models.xtts": lambda: {"Xtts": Xtts},
    "loguru": lambda: {"logger": _Logger()},
    "gradio": lambda: {"Error": PageError},
    "deepspeed": lambda: {"init_distributed": _initialize},
}


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        inner = f"{self.__name__}.{name}"
        value = importlib.import_module(inner) if inner in CONTENTS else getattr(Anything, name)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        top = fullname.partition(".")[0]
        if top in OWN or top in sys.stdlib_module_names:
            return None
        if top == "deepspeed" and Record.deepspeed != "present":
            if Record.deepspeed == "broken":
                raise OSError("libcudart.so.12: cannot open shared object file: No such file or directory")
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        made = _Module(spec.name)
        made.__dict__.update(CONTENTS.get(spec.name, dict)())
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _started(*args: Any, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    command = args[0] if args else kwargs["args"]
    Record.processes.append([command] if isinstance(command, str) else [str(word) for word in command])
    return subprocess.CompletedProcess(command, 0, "", "")


def _asked(*args: Any, **kwargs: Any) -> str | bytes:
    _started(*args, **kwargs)
    return "" if kwargs.get("text") or kwargs.get("universal_newlines") else b""


def _forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event in {"os.system", "os.exec", "os.posix_spawn", "subprocess.Popen"}:
        Record.processes.append([event, str(arguments[0])])
        raise PermissionError(event)
    if event in {"socket.connect", "socket.getaddrinfo"}:
        raise PermissionError(event)


def install(tree: Path) -> None:
    """Put the stand-ins into this process, and let nothing out of it."""
    sys.dont_write_bytecode = True
    sys.addaudithook(_forbid)
    sys.path.insert(0, str(tree))
    OWN.update(path.stem for path in tree.iterdir())
    sys.meta_path.insert(0, _Finder())
    for name in ("run", "call", "check_call"):
        setattr(subprocess, name, _started)
    subprocess.check_output = _asked  # type: ignore[assignment]
