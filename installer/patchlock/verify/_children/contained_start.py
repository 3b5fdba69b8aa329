"""Start an app's program without a network, and say how far it comes; run with the app's folder as working folder.

Argument: JSON with `command`, `home` (an empty folder), `seconds`, `quiet` (seconds after which a program that has
asked for something and says no more is not waited for), `port`, on which it is said to listen, or 0, `with_errors`
(whether what it writes to its standard error is output too), and `names` of modules. Prints JSON: `taken` (the port is
another program's), `ended` (its exit code, or null), `served` (port, status and the beginning of the answer, or null),
`asked` (what it wanted from other hosts), `output` (its last words), `seconds`, `imported` (which of the names it had
imported when it ended by itself), `absent` (which of the names this environment and the app's folder do not have).

On Linux it is alone in a network of its own, of which there is the loopback device and nothing else. Its own requests
go to a proxy here, which writes down for whom they are and refuses them, so that a download is told by its name.
"""

import contextlib
import ctypes
import importlib.util
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_NEWUSER, _NEWNET = 0x10000000, 0x40000000
"""Of linux/sched.h."""
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
"""SIOCGIFFLAGS, SIOCSIFFLAGS and IFF_UP of linux/sockios.h and linux/if.h."""
_LISTENS = "0A"
"""TCP_LISTEN of include/net/tcp_states.h, as /proc/net/tcp writes it."""
_SAID = re.compile(r"https?://(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):(\d+)")
_TAIL = 16_000
"""Bytes of its output that are given."""
_MOST = 400
"""Bytes of an answer that are given."""


def _leave_network() -> bool:
    """Move into a network of our own in which only this machine is; tell whether the system lets us."""
    import fcntl

    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEWNET) != 0:
        if libc.unshare(_NEWUSER | _NEWNET) != 0:
            return False
        with contextlib.suppress(OSError):  # so that the user keeps his name and number
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack("16xh", fcntl.ioctl(device, _GET_FLAGS, name + bytes(2))[:18])[0]
        fcntl.ioctl(device, _SET_FLAGS, name + struct.pack("h", flags | _UP))
    return True


class _Proxy(threading.Thread):
    """Refuses what is asked of it, and remembers for which host it was."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.asked: list[str] = []

    def run(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._refuse, args=(client,), daemon=True).start()

    def _refuse(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, IndexError), client:
            client.settimeout(10)
            words = client.recv(65536).split(b"\r\n")[0].decode("latin-1").split()
            target = re.sub(r"^\w+://", "", words[1])
            host = target.partition("/")[0].removesuffix(":443").removesuffix(":80")
            rest = target.partition("/")[2] if words[0] != "CONNECT" else ""
            self.asked.append(f"{host}/{rest}" if rest else host)
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def _environment(home: str, proxy: int) -> dict[str, str]:
    """Give the program a home without models or settings, and our proxy."""
    env = dict(os.environ)
    env |= dict.fromkeys(("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TMP", "TEMP"), home)
    caches = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HF_HOME", "TORCH_HOME", "MPLCONFIGDIR")
    env |= {name: str(Path(home) / name.lower()) for name in caches}
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_HUB_OFFLINE", "DISPLAY"):
        env.pop(name, None)
    address = f"http://127.0.0.1:{proxy}"
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        env |= {name: address, name.upper(): address}
    env |= dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost,::1,0.0.0.0")
    env |= {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}
    # A browser of the user's must not open.
    return env | {"BROWSER": sys.executable + " -c pass %s", "PYTHONUNBUFFERED": "1"}


def _listening(group: int) -> Iterator[int]:
    """Give the TCP ports on which the processes of a session listen; Linux alone says that."""
    sockets: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(process.name)) == group:
                sockets |= {str(one.readlink()) for one in (process / "fd").iterdir()}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            rows = [row.split() for row in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]]
            for row in rows:
                if row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets:
                    yield int(row[1].rpartition(":")[2], 16)


def _answer(port: int) -> "dict[str, object] | None":
    """Ask for the first page; None where nothing answers, or where the server has failed."""
    import http.client  # what ends by itself is never asked

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        connection.request("GET", "/")
        answer = connection.getresponse()
        text = answer.read(_MOST).decode("utf-8", errors="replace")
        if answer.status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
            return {"port": port, "status": answer.status, "text": text}
    return None


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def _absent(names: Iterable[str]) -> Iterator[str]:
    """Name the top-level modules that are not there."""
    sys.path.insert(0, "")
    yield from (name for name in names if "." not in name and importlib.util.find_spec(name) is None)


def _tail(file: Path) -> str:
    data = file.read_bytes()
    return data[-_TAIL:].decode("utf-8", errors="replace")


def main() -> None:
    """Start it, watch it, end it."""
    wanted = json.loads(sys.argv[1])
    is_alone = sys.platform == "linux" and _leave_network()
    if wanted["port"] and _is_open(wanted["port"]):
        print(json.dumps({"taken": True}))  # noqa: T201 - the answer
        return
    proxy = _Proxy()
    proxy.start()
    output, imported = Path(wanted["home"]) / "output.txt", Path(wanted["home"]) / "imported.json"
    begun = time.monotonic()
    with output.open("wb") as log:
        child = subprocess.Popen(
            wanted["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT if wanted["with_errors"] else subprocess.DEVNULL,
            env=_environment(wanted["home"], proxy.port) | {"PATCHLOCK_IMPORTED": str(imported)},
        )
    served, heard, size, said = None, begun, 0, 0
    while served is None and time.monotonic() - begun < wanted["seconds"]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.2)
            break
        ports = {int(port) for port in _SAID.findall(_tail(output))} | ({wanted["port"]} - {0})
        if sys.platform == "linux":
            theirs = set(_listening(os.getsid(0))) - {proxy.port}
            ports = theirs if not is_alone else ports | theirs
        served = next((found for port in sorted(ports - {proxy.port}) if (found := _answer(port))), None)
        if (output.stat().st_size, len(proxy.asked)) != (size, said):
            size, said, heard = output.stat().st_size, len(proxy.asked), time.monotonic()
        elif said and time.monotonic() - heard > wanted["quiet"]:
            break
    ended = child.poll()
    if ended is None:
        child.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=5)
        child.kill()
    found = {"ended": ended, "served": served, "asked": proxy.asked, "taken": False}
    names = json.loads(imported.read_text(encoding="utf-8")) if imported.exists() else []
    found |= {"imported": sorted({*wanted["names"]} & {*names}), "absent": list(_absent(wanted["names"]))}
    print(json.dumps({**found, "output": _tail(output), "seconds": time.monotonic() - begun}))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
