"""The gate of an environment: while an app runs in it, nothing that installs packages does anything, politely.

It lies in the environment as `_patchlock_gate`, and a `.pth` file closes it where `PATCHLOCK_GATE` names an app and a
profile (`demo@cpu`), which only `patchlock run` and checks do. A person at his own shell is not held up.
"""

import os
import sys

_CHANGING = {
    "pip": {"install", "uninstall", "download", "wheel"},
    "conda": {"install", "create", "update", "upgrade", "remove", "uninstall"},
    "uv": {"add", "remove", "sync", "install", "uninstall", "upgrade"},
    "poetry": {"add", "install", "update", "remove", "sync"},
    "pipx": {"install", "uninstall", "upgrade", "inject", "reinstall"},
    "easy_install": set(),
    "ensurepip": set(),
}
_READING = set("list show freeze check config cache index inspect debug hash help completion".split())  # noqa: SIM905
_READING |= {"run", "venv", "version", "lock", "export", "tree", "build", "init", "self", "info", "search", "activate"}
_HELP = {"--help", "-h", "--version", "-V", "--dry-run"}
_MODULES = ("pip", "pip._internal", "pip._internal.cli", "pip._internal.cli.main", "pip._internal.main", "pip.__main__")
SHIMS = ("pip", "pip3", "uv", "conda", "mamba", "micromamba", "easy_install", "poetry", "pipx")
"""Programs that get a stand-in at the front of PATH."""


def close() -> None:
    """Refuse the command that this Python was started for, if it installs; later calls of pip's API are refused too.

    Where the profile has overlays, what loads them listens from here on; see `preload.py`.
    """
    if any(isinstance(finder, _Pip) for finder in sys.meta_path):
        return  # `site` runs the .pth files of a virtual environment twice
    program, arguments = started(sys.orig_argv)
    if installs(program, arguments):
        refuse(program, arguments)
        # This runs while Python starts, where `sys.exit` would be a fatal error.
        sys.stderr.flush()
        os._exit(0)
    sys.meta_path.insert(0, _Pip())
    if answer := os.environ.pop("PATCHLOCK_IMPORTED", ""):  # for this process alone, not for those that it starts
        import atexit

        atexit.register(_tell_imported, answer)
    if os.environ.get("PATCHLOCK_PRELOAD"):
        import _patchlock_preload  # type: ignore[import-not-found]  # under this name beside us

        _patchlock_preload.watch()


def _tell_imported(answer: str) -> None:
    """Write which modules this process has imported, for the check that has started it."""
    names = []
    for name, module in list(sys.modules.items()):
        if type(module).__name__ == "_LazyModule":  # of importlib.util: a look at it would load it
            continue
        spec = getattr(module, "__spec__", None)  # what an app has only put there has none
        if spec is not None and not getattr(spec, "_initializing", False):
            names.append(name)
    import json  # not before: the program may not have imported it

    with open(answer, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes a while to import
        json.dump(names, file)


def installs(program: str, arguments: list[str]) -> bool:
    """Tell whether a command installs, downloads or removes packages.

    Args:
        program: as in `SHIMS`, or the module of `python -m`.
        arguments: what follows it.
    """
    if program not in _CHANGING or _HELP & set(arguments):
        return False
    if not _CHANGING[program]:
        return True
    word = next((word for word in arguments if word in _CHANGING[program] or word in _READING), "")
    return word in _CHANGING[program]


def refuse(program: str, arguments: list[str]) -> None:
    """Say what was not installed, and how to have it: locked again without a new requirement, nothing changes."""
    app, _, profile = os.environ.get("PATCHLOCK_GATE", "").partition("@")
    pair = f"{app} --profile {profile}"
    command = " ".join([program, *arguments])
    sentence = (
        f"patchlock: not installed at run time: {command[:300]}: only what the lock names is installed; if {app} then "
        f"lacks something, require it in patches/{app}/app.toml, with a patch whose op is `add-requirement`, and run "
        f"`patchlock lock {pair}` and `patchlock install {pair}`\n"
    )
    if sys.stderr is not None:
        sys.stderr.write(sentence)


def started(argv: list[str]) -> tuple[str, list[str]]:
    """Read what a Python was started for: the installer behind `-m` or the script, and its arguments; "" for others."""
    rest = argv[1:]
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            return _named(word), rest
        if word.startswith("--"):
            rest = rest[1:] if word == "--check-hash-based-pycs" else rest
            continue
        for index, letter in enumerate(word[1:], start=2):
            value = word[index:]
            if letter == "c":
                return "", []
            if letter == "m":
                module = value or (rest.pop(0) if rest else "")
                return _named(module.partition(".")[0]), rest
            if letter in "WX":
                rest = rest if value else rest[1:]
                break
    return "", []


def shim() -> None:
    """Stand for the program that the first argument names: refuse what installs, hand the rest to the real one."""
    program, arguments = sys.argv[1], sys.argv[2:]
    if installs(_named(program), arguments):
        refuse(program, arguments)
        return
    real = _real(program)
    if real is None:
        sys.stderr.write(f"{program}: command not found\n")
        sys.exit(127)
    if os.name == "posix":
        os.execv(real, [real, *arguments])  # noqa: S606 - what the app asked for, by its full path
    import subprocess

    sys.exit(subprocess.call([real, *arguments]))


def _real(program: str) -> str | None:
    """Find the real program behind our stand-in."""
    import shutil

    ours = os.path.realpath(os.path.join(sys.prefix, "gate"))  # noqa: PTH118 - pathlib takes a while to import
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which(program, path=os.pathsep.join(f for f in folders if f and os.path.realpath(f) != ours))


def _named(program: str) -> str:
    """Name a program or module as the tables do: `/a/pip3.11.exe` is pip."""
    name = os.path.basename(program).lower()  # noqa: PTH119
    name = name[:-4] if name.endswith((".exe", ".cmd", ".bat")) else name
    name = "pip" if name.startswith("pip") and not name[3:].strip("0123456789.") else name
    name = "easy_install" if name.startswith("easy_install") else name
    return "conda" if name in {"mamba", "micromamba"} else name


class _Pip:
    """Gives `import pip` a pip that refuses, and a real pip the same manners; `find_spec("pip")` is told the truth."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, ARG002
        """Find the modules of pip that start it."""
        if fullname not in _MODULES:
            return None
        from importlib.machinery import ModuleSpec, PathFinder

        if PathFinder.find_spec("pip") is None:
            return None if _is_only_asked() else ModuleSpec(fullname, self, is_package=self.is_package(fullname))  # type: ignore[arg-type]
        if fullname != "pip._internal.cli.main":
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
                load(module)
                module.main = _guarded(module.main)  # type: ignore[no-untyped-call]

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def is_package(self, fullname: str) -> bool:
        """Tell packages from modules."""
        return fullname in {"pip", "pip._internal", "pip._internal.cli"}

    def get_code(self, fullname: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
        """Give the code of a module; `runpy` asks for it too."""
        text = "import _patchlock_gate\nmain = _patchlock_gate.main\n"
        text += "main()\n" if fullname == "pip.__main__" else ""
        return compile(text, f"<{fullname}>", "exec")

    def create_module(self, spec: object) -> None:
        """Leave it to the import system."""

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        """Fill a module."""
        exec(self.get_code(module.__spec__.name), vars(module))  # noqa: S102 - our own two lines


def main(arguments: list[str] | None = None) -> int:
    """Stand for `pip.main` where there is no pip.

    Raises:
        ModuleNotFoundError: something else is asked of pip than to install.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not installs("pip", words):
        raise ModuleNotFoundError("No module named 'pip'", name="pip")
    refuse("pip", words)
    return 0


def _guarded(real):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - pip's own function
    def guarded(args=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        words = sys.argv[1:] if args is None else list(args)
        return main(words) if installs("pip", words) else real(args)

    return guarded


def _is_only_asked() -> bool:
    """Tell `importlib.util.find_spec("pip")` from an import, and from `runpy`, which asks before it imports."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name == "importlib.util" and frame.f_code.co_name == "find_spec":
            return frame.f_back is None or frame.f_back.f_globals.get("__name__") != "runpy"
        frame = frame.f_back  # type: ignore[assignment]
    return False
