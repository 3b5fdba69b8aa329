"""Import modules of a tree where heavy packages are not installed, and CUDA is not there: a child prints what fails.

Whatever is neither of the standard library nor of the tree is a stub that has every name. Of torch's, `cuda` says that
there is no card, and `device` refuses what is not a device, as the real one does.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence

ABSENT = frozenset(json.loads(sys.argv[3])) if len(sys.argv) > 3 else frozenset()
"""Top-level packages that cannot be imported at all."""
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta|privateuseone)(:\d+)?")


def _attribute(self: object, name: str) -> object:
    """Give an object of the tree what the stub that its class derives from may have."""
    return getattr(Any("object", (), {}), name)


def _begun(self: object, *_: object, **__: object) -> None:
    """Take whatever an object of the tree is begun with."""


_BODY = {"__getattr__": _attribute, "__init__": _begun}


class Any(type):
    """A class for every name of a stub: it can be called, derived from, indexed and computed with."""

    def __getattr__(cls, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Any(name, (), {"__module__": cls.__module__, **_BODY})
        setattr(cls, name, made)
        return made

    def __call__(cls, *arguments: object, **keywords: object) -> object:
        if not cls.__mro__[1:-1]:  # a name of a stub itself, no class of the tree that derives from one
            return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], types.FunctionType) else cls
        return super().__call__(*arguments, **keywords)

    def __getitem__(cls, key: object) -> object:
        return cls

    def __iter__(cls) -> Iterator[object]:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __bool__(cls) -> bool:
        return True

    def __index__(cls) -> int:
        return 1

    def __float__(cls) -> float:
        return 1.0

    def __enter__(cls) -> object:
        return cls

    def __exit__(cls, *_: object) -> None:
        return None

    def _same(cls, *_: object) -> object:
        return cls

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _same
    __pow__ = __rpow__ = __floordiv__ = __mod__ = __neg__ = __or__ = __ror__ = __and__ = __lshift__ = _same

    def _holds(cls, _: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = _holds
    __hash__ = type.__hash__


class Stub(types.ModuleType):
    __path__: Sequence[str] = ()
    __version__ = "2.7.0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Any(name, (), {"__module__": self.__name__, **_BODY})
        setattr(self, name, made)
        return made


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if path is not None and not isinstance(sys.modules.get(name.rpartition(".")[0]), Stub):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "torch":
            module.device = _device
            module.cuda = Cuda("torch.cuda")


class Cuda(Stub):
    def is_available(self) -> bool:
        return False

    def device_count(self) -> int:
        return 0

    def __getattr__(self, name: str) -> object:
        if name in {"amp", "FloatTensor", "Stream", "Event"} or name.startswith("__"):
            return super().__getattr__(name)

        def asked(*_: object, **__: object) -> None:
            if name not in {"empty_cache", "manual_seed", "manual_seed_all"}:
                raise AssertionError("Torch not compiled with CUDA enabled")

        return asked


def _device(name: object, index: object = None) -> object:
    if isinstance(name, str) and not _DEVICE.fullmatch(name):
        raise RuntimeError(f"Expected one of cpu, cuda, … device type at start of device string: {name}")
    return name


def failure(module: str) -> str:
    """Import one module in a child of this process; "" where it can be."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            try:
                importlib.import_module(module)
            except BaseException as error:  # noqa: BLE001  whatever it is, it is the answer
                said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def main() -> None:
    sys.path[:0] = json.loads(sys.argv[1])
    sys.meta_path.append(Stubs())
    sys.modules["json5"] = json  # what is read with it is plain JSON
    print(json.dumps({module: failure(module) for module in json.loads(sys.argv[2])}))


if __name__ == "__main__":
    main()
