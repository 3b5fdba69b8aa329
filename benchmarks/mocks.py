"""Capable mocks for every module that a skeleton imports; only modules that compute are real, and nothing does I/O."""

from __future__ import annotations

import abc
import builtins
import dis
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

REAL = frozenset(
    [
        *("__future__", "abc", "collections", "contextlib", "copy", "dataclasses", "datetime", "enum", "functools"),
        *("itertools", "math", "numbers", "operator", "re", "string", "types", "typing"),
    ]
)
"""Modules that may be executed: they compute and do nothing else."""
_EXCEPTIONS = ("Error", "Exception", "Warning", "Interrupt", "Exit", "Empty", "Full", "Expired", "Timeout")
_FUNCTIONS = (types.FunctionType, type, staticmethod, classmethod, property)


class _Meta(abc.ABCMeta):
    def __getattr__(cls, name: str) -> Any:
        return _attribute(name)


def _attribute(name: str) -> Any:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    if name.endswith(_EXCEPTIONS):
        return type(name, (Exception,), {})
    return Mock(name)


class _Ability:
    """What both a mock and an instance of a class that derives from one can do."""

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], _FUNCTIONS):
            return args[0]  # a decorator, bare or with arguments
        return Mock("called")

    def __iter__(self) -> Iterator[Any]:
        code = sys._getframe(1).f_code
        at = sys._getframe(1).f_lasti
        operation = next((i for i in dis.get_instructions(code) if i.offset == at), None)
        count = 1
        if operation is not None and operation.opname == "UNPACK_SEQUENCE":
            count = int(operation.arg or 0)
        elif operation is not None and operation.opname == "UNPACK_EX":
            count = (int(operation.arg or 0) & 255) + (int(operation.arg or 0) >> 8)
        return iter([Mock("item") for _ in range(count)])

    def __next__(self) -> Any:
        return Mock("item")

    def keys(self) -> list[str]:
        return []

    def __await__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return True

    __len__ = __int__ = __index__ = lambda self: 1
    __float__ = lambda self: 1.0
    __str__ = __fspath__ = __repr__ = lambda self: "mock"
    __format__ = lambda self, specification: "mock"
    __enter__ = lambda self: self
    __exit__ = lambda self, *error: None
    __setitem__ = __delitem__ = lambda self, *item: None
    __contains__ = lambda self, item: True
    __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: Mock("compared")
    __getitem__ = lambda self, key: Mock("item")


def _computes(*values: Any) -> Any:
    return Mock("computed")


_ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
)
for _operator in _ARITHMETIC:
    for _prefix in ("", "r", "i"):
        setattr(_Ability, f"__{_prefix}{_operator}__", _computes)
for _operator in ("neg", "pos", "abs", "invert"):
    setattr(_Ability, f"__{_operator}__", _computes)


class Mock(_Ability):
    """Stands for a module, or for anything in one; truthy, and capable of whatever code does while it is imported."""

    __version__ = "2.0.0"
    __file__ = "mock.py"
    __all__ = ()
    __path__ = ()

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = name

    def __instancecheck__(self, instance: object) -> bool:
        return False

    __subclasscheck__ = __instancecheck__

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        is_plain = all(type(base) in {type, abc.ABCMeta, Mock, _Meta} for base in bases if not _is_generic(base))
        return (
            (_Meta if is_plain else type)(
                "MockBase", (_Ability,), {"__init__": _nothing, "__init_subclass__": _nothing}
            ),
        )


def _is_generic(base: Any) -> bool:
    return hasattr(base, "__origin__")


def _nothing(*args: Any, **kwargs: Any) -> None:
    return None


def _leave(*args: Any) -> NoReturn:
    raise SystemExit(*args)


class _Environment(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return "1"


class Names(dict[str, Any]):
    """The built-in names of a skeleton; a name that it took from what was left out is a mock.

    A subclass of `dict`, so that CPython looks names up here and calls `__missing__`.
    """

    def __init__(
        self, package: str, present: Callable[[str], Any] | None, bound: set[str], run: Callable[..., None]
    ) -> None:
        """Make the names.

        Args:
            package: the one that is blocked, or present.
            present: gives what stands for the package; None: it is blocked.
            bound: names that only an import of the package binds, which are no mocks.
            run: executes the source that `exec` is given.
        """
        super().__init__(vars(builtins))
        self._package, self._present, self._bound = package, present, bound
        self |= {"__import__": self._import, "exit": _leave, "quit": _leave, "exec": run}
        self |= {name: Mock(name) for name in ("open", "print", "input", "eval", "breakpoint", "compile")}
        self._modules = {
            "os": self._os(),
            "sys": self._sys(),
            "importlib": self._importlib(),
            "pkgutil": self._importlib(),
        }
        self._modules |= {"typing_extensions": importlib.import_module("typing"), "pkg_resources": self._importlib()}

    def __missing__(self, name: str) -> Any:
        if name in self._bound:
            raise KeyError(name)
        if name in {f"is_{self._package}_available", f"_is_{self._package}_available"}:
            return self._is_there
        return _attribute(name)

    def _is_ours(self, name: object) -> bool:
        return isinstance(name, str) and name.partition(".")[0] == self._package

    def _is_there(self, *args: Any) -> bool:
        return self._present is not None

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        top = name.partition(".")[0]
        if level:
            return self._module(name)
        if top == self._package:
            if self._present is None:
                return importlib.__import__(name)  # a finder on the meta path blocks it
            return self._present(name if fromlist else top)
        if top in REAL or top == "packaging":
            return importlib.__import__(name, None, None, fromlist, 0) if top in REAL else self._module(name)
        found = self._modules.get(top)
        if found is None:
            return self._module(name)
        for part in name.split(".")[1:] if fromlist else ():
            found = getattr(found, part)
        return found

    def _module(self, name: str) -> Mock:
        module = Mock(name)
        for helper in (f"is_{self._package}_available", f"_is_{self._package}_available"):
            module.__dict__[helper] = self._is_there
        return module

    def _os(self) -> Mock:
        made = Mock("os")
        made.__dict__.update(environ=_Environment(), name="posix", sep="/", getenv=lambda name, default=None: default)
        return made

    def _sys(self) -> Mock:
        made = Mock("sys")
        made.__dict__.update(version_info=sys.version_info, platform="linux", argv=["mock"], path=[], modules={})
        made.__dict__.update(exit=_leave, maxsize=sys.maxsize, version=sys.version)
        return made

    def _importlib(self) -> Mock:
        """Give an importlib that answers truly for the package, as pkg_resources and pkgutil do."""
        made, util, metadata = Mock("importlib"), Mock("util"), Mock("metadata")
        util.__dict__["find_spec"] = self._find
        missing = importlib.import_module("importlib.metadata").PackageNotFoundError
        metadata.__dict__.update(PackageNotFoundError=missing, version=self._version, distribution=self._version)
        made.__dict__.update(util=util, metadata=metadata, import_module=self._import_module, find_loader=self._find)
        made.__dict__.update(get_distribution=self._version, DistributionNotFound=missing, reload=lambda module: module)
        return made

    def _import_module(self, name: Any, package: Any = None) -> Any:
        return self._import(name, fromlist=("x",)) if isinstance(name, str) else Mock("module")

    def _find(self, name: Any, package: Any = None) -> Any:
        return None if self._is_ours(name) and self._present is None else Mock("spec")

    def _version(self, name: Any) -> Any:
        if self._is_ours(str(name).replace("-", "_")) and self._present is None:
            raise importlib.import_module("importlib.metadata").PackageNotFoundError(name)
        return "2.0.0"
