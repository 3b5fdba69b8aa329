"""Import one module of the app with packages blocked and without network; run with the app's folder as working folder.

Arguments: the module, a JSON list of top-level packages that must look as if they were not installed, and the file that
the answer goes to as JSON. What the module prints is its own business. Nothing of it runs on: the process ends at once.
"""

import contextlib
import ctypes
import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution
from pathlib import Path

_NEWUSER, _NEWNET = 0x10000000, 0x40000000
"""Of linux/sched.h."""
_NETWORK = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}
_NAMES = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}


class _Without:
    """A finder of modules and of distributions that does not find some packages."""

    def __init__(self, finder: object, blocked: set[str]) -> None:
        self._finder, self._blocked = finder, blocked

    def __getattr__(self, name: str) -> object:
        return getattr(self._finder, name)

    def find_spec(self, name: str, *where: object) -> ModuleSpec | None:
        """Find a module, unless it is blocked."""
        find: Callable[..., ModuleSpec | None] | None = getattr(self._finder, "find_spec", None)
        return find(name, *where) if find and name.partition(".")[0] not in self._blocked else None

    def find_distributions(self, *context: object) -> Iterable[Distribution]:
        """Find distributions, unless their name is that of a blocked package."""
        find: Callable[..., Iterable[Distribution]] | None = getattr(self._finder, "find_distributions", None)
        names = {name.lower() for name in self._blocked}
        found = find(*context) if find else ()
        return (one for one in found if re.sub(r"[-_.]+", "_", one.metadata["Name"]).lower() not in names)


def _leave_network() -> None:
    """Move into a network of our own in which there is nothing, where the system lets us."""
    if not sys.platform.startswith("linux"):
        return
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEWNET) == 0 or libc.unshare(_NEWUSER | _NEWNET) != 0:
        return
    with contextlib.suppress(OSError):  # so that the user keeps his name and number
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")


def _refuse_network(event: str, arguments: tuple[object, ...]) -> None:
    asked = arguments[0] if event in _NAMES else arguments[1] if event in _NETWORK else None
    if event in _NAMES or isinstance(asked, tuple):  # an address of a Unix socket is a text
        raise OSError(f"there is no network while a module is tried; it asked for {asked!r}")


def main() -> None:
    """Import the module and write what came of it."""
    module, blocked, answer = sys.argv[1], set(json.loads(sys.argv[2])), Path(sys.argv[3])
    _leave_network()
    sys.addaudithook(_refuse_network)
    for name in [name for name in sys.modules if name.partition(".")[0] in blocked]:
        del sys.modules[name]
    sys.meta_path[:] = [_Without(finder, blocked) for finder in sys.meta_path]
    sys.path.insert(0, "")
    sys.argv[1:] = []
    failed = ""
    try:
        importlib.import_module(module)
    except BaseException as error:  # noqa: BLE001 - a module may end in any way, SystemExit included
        failed = f"{type(error).__name__}: {error}"
    answer.write_text(json.dumps({"failed": failed}), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main()
