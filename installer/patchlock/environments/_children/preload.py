"""Load the libraries of overlays before the modules that they are for; lies in the environment as `_patchlock_preload`.

The gate starts it, and only where `PATCHLOCK_PRELOAD` names modules, which only `patchlock run` and checks do. Who asks
for a library by its name then gets the one that is loaded, and no file of any package is touched.
"""

import os
import sys

_held: list[object] = []
"""What must stay open as long as the process."""
_looked: set[str] = set()


def watch() -> None:
    """Load the overlays when the first of their modules is imported; until then nothing is read."""
    sys.meta_path.insert(0, _Watch(os.environ["PATCHLOCK_PRELOAD"].split(",")))


class _Watch:
    """A finder that finds nothing; it only hears which module is imported next."""

    def __init__(self, modules: list[str]) -> None:
        import _thread

        self._modules = frozenset(modules)
        self._lock = _thread.RLock()
        self._is_done, self._trouble = False, ""

    def find_spec(self, fullname, path=None, target=None) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001, ARG002
        """Load what is to be loaded before this module."""
        if fullname not in self._modules:
            return
        with self._lock:
            if not self._is_done:
                self._is_done = True
                self._trouble = load(os.path.join(sys.prefix, "overlays"))  # noqa: PTH118 - pathlib takes a while
                if self._trouble and sys.stderr is not None:  # an app may swallow the error, and must not go on unheard
                    sys.stderr.write(f"patchlock: {self._trouble}\n")
            if self._trouble:
                raise ImportError(self._trouble, name=fullname)


def load(folder: str) -> str:
    """Load all libraries in their order.

    Args:
        folder: `overlays` in the environment, with its `preload.json`.

    Returns:
        Why that is not possible and what to do, a sentence; "" where all are loaded.
    """
    import json

    try:
        with open(os.path.join(folder, "preload.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            overlays = json.load(file)["overlays"]
    except (OSError, ValueError, KeyError) as error:
        return f"the list of libraries to load cannot be read ({error}); {_again()}"
    for overlay in overlays:
        trouble = _load(overlay, os.path.join(folder, overlay["id"]))  # noqa: PTH118
        if trouble:
            return trouble
    return ""


def _load(overlay, folder: str) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    sdk = overlay["sdk"]
    base = os.environ.get(sdk["variable"], "") if sdk else ""
    if sdk and not base:
        return f"{sdk['name']} is not found: {sdk['variable']} is not set; {sdk['install']}"
    _look_in(folder)
    for library in overlay["libraries"]:
        if not all(os.path.isfile(os.path.join(base, file)) for file in library["needs"]):  # noqa: PTH113, PTH118
            continue
        path = os.path.normpath(os.path.join(base if library["in_sdk"] else folder, library["name"]))  # noqa: PTH118
        trouble = _load_one(overlay, path, is_ours=not library["in_sdk"])
        if trouble:
            return trouble
    return ""


def _load_one(overlay, path: str, *, is_ours: bool) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001
    import ctypes

    sdk, name = overlay["sdk"], os.path.basename(path)  # noqa: PTH119
    needed = f"it needs {sdk['name']}: {sdk['install']}" if sdk else _again()
    if not os.path.isfile(path):  # noqa: PTH113
        remedy = f"an antivirus may have taken it; {_again()}" if is_ours else needed
        return f"{name} of the overlay {overlay['id']} is not in {os.path.dirname(path)}; {remedy}"  # noqa: PTH120
    other = _loaded(name) if is_ours else ""
    if other:
        return (
            f"{name} was loaded before that of the overlay {overlay['id']}, from {other}; "
            "the module that loads it must be among `before` of the overlay in the profile"
        )
    try:
        if os.name == "nt":
            _look_in(os.path.dirname(path))  # noqa: PTH120
            _held.append(ctypes.WinDLL(path))  # type: ignore[attr-defined, unused-ignore]
        else:
            _held.append(ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL))
    except OSError as reason:
        # Windows does not say which of the two it is.
        error = "it or a library that it needs is not there" if isinstance(reason, FileNotFoundError) else reason
        return f"{name} of the overlay {overlay['id']} cannot be loaded from {path} ({error}); {needed}"
    return ""


def _look_in(folder: str) -> None:
    """Let Windows find in a folder what its libraries ask for."""
    if os.name == "nt" and folder not in _looked and os.path.isdir(folder):  # noqa: PTH112
        _looked.add(folder)
        _held.append(os.add_dll_directory(folder))  # type: ignore[attr-defined, unused-ignore]


def _loaded(name: str) -> str:
    """Say where a library of that name was loaded from, if one is; on POSIX only that it is."""
    import ctypes

    if os.name != "nt":
        try:
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
        except OSError:
            return ""
        return "elsewhere"
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
    kernel.GetModuleHandleW.restype = ctypes.c_void_p
    kernel.GetModuleFileNameW.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32)
    handle = kernel.GetModuleHandleW(ctypes.c_wchar_p(name))
    text = ctypes.create_unicode_buffer(1024)
    return text.value if handle and kernel.GetModuleFileNameW(handle, text, 1024) else ""


def _again() -> str:
    """Name the command that builds the environment afresh."""
    app, _, profile = os.environ.get("PATCHLOCK_GATE", "").partition("@")
    return f"run `patchlock install {app} --profile {profile} --reinstall`"
