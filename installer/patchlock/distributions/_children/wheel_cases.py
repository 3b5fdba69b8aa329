"""Run the cases of a patched distribution and print, as JSON, what became of each; contained.

Arguments: the file of the cases, the folder of the unpacked wheel, and a JSON list of packages that become stubs.
Nothing but the standard library and that folder can be imported. Sockets, programs, and writing outside the working
folder are refused. This contains mistakes, not malice: whoever patches a wheel is about to install it.
"""

import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import sys
import traceback
import types
from collections.abc import Callable

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_REFUSED = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "os.system")
_CHANGES = {
    *("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"),
    *("os.truncate", "os.utime", "shutil.rmtree", "shutil.move"),
}


class _StubType(type):
    """A class that has every attribute and can be subclassed, so that what a module does at import goes on."""

    def __getattr__(cls, name: str) -> type:
        return _made(cls, name, cls.__module__)

    def __or__(cls, other: object) -> type:  # type: ignore[override]
        return cls

    __ror__ = __or__  # type: ignore[assignment]

    def __getitem__(cls, item: object) -> type:
        return cls


class _StubModule(types.ModuleType):
    def __getattr__(self, name: str) -> type:
        return _made(self, name, self.__name__)


def _made(owner: object, name: str, module: str) -> type:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    made = _StubType(name, (), {"__module__": module})
    setattr(owner, name, made)
    return made


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages that are replaced, and all that is in them."""

    def __init__(self, names: list[str]) -> None:
        self._names = set(names)

    def find_spec(
        self,
        fullname: str,
        path: object = None,  # noqa: ARG002 - the interface
        target: object = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StubModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _contain(folder: pathlib.Path) -> None:
    allowed = os.path.realpath(folder) + os.sep

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(_REFUSED) and event not in {"socket.__new__", "socket.gethostname"}:
            raise PermissionError(f"{event} is refused while cases run")
        if event == "open":
            _, mode, flags = arguments
            writes = any(sign in str(mode or "") for sign in "wax+") or (isinstance(flags, int) and flags & _WRITES)
            if not writes:
                return
        elif event not in _CHANGES:
            return
        places = arguments[:1] if event == "open" else arguments
        for path in (os.fsdecode(place) for place in places if isinstance(place, str | bytes | os.PathLike)):
            if path != os.devnull and not os.path.realpath(path).startswith(allowed):
                raise PermissionError(f"{event} of {path} is refused while cases run")

    sys.addaudithook(look)


def _result(name: str, function: Callable[[], object]) -> dict[str, object]:
    try:
        value = function()
        json.dumps(value)
    except BaseException as error:  # noqa: BLE001 - a case may end in any way, SystemExit included
        return _failure(name, error)
    return {"id": name, "passed": True, "value": value, "why": ""}


def _failure(name: str, error: BaseException) -> dict[str, object]:
    told = str(error).strip().splitlines()
    places = traceback.extract_tb(error.__traceback__)
    line = (places[-1].line if places else "") or ""  # an `assert` without a message says nothing itself
    return {"id": name, "passed": False, "value": None, "why": f"{type(error).__name__}: {told[-1] if told else line}"}


def main() -> None:
    """Run each function whose name begins with `case_` or `control_`, in the order of the file."""
    script, folder, stubs = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what upstream prints is no answer
    sys.dont_write_bytecode = True
    sys.path[:] = [folder, *(entry for entry in sys.path if entry and "site-packages" not in entry)]
    sys.meta_path.insert(0, _Stubs(stubs))
    module = types.ModuleType("patchlock_cases")
    _contain(pathlib.Path.cwd())
    try:
        code = compile(pathlib.Path(script).read_bytes(), script, "exec")
        exec(code, vars(module))  # noqa: S102 - a file of the catalogue
    except BaseException as error:  # noqa: BLE001
        results = [_failure("import", error)]
    else:
        names = [name for name in vars(module) if name.startswith(("case_", "control_"))]
        results = [_result(name, getattr(module, name)) for name in names]
    json.dump(results, answer)
    answer.flush()


if __name__ == "__main__":
    main()
