"""Start an app's program without a network, and say how far it comes; run with the app's folder as working folder.

Argument: JSON with `command`, `home` and `written` (empty folders), `seconds`, `quiet` (seconds after which a program
that has asked for something, or answers elsewhere, and says no more is not waited for), `memory` (bytes that it may
have, 0: any number), `port`, on which it is said to listen, or 0, `with_errors` (whether what it writes to its standard
error is output too), and `names` of modules. Prints JSON: `taken` (the port is another program's), `ended` (its exit
code, or null), `stays` (it has left processes that go on without it), `limit` (which of its limits has ended it: "",
"time", "memory" or "output"), `served` (address and status of what has answered on the port, or anywhere where it is 0,
or null), `elsewhere` (the same, of other ports), `asked` (what it wanted from other hosts), `output` (its last words),
`seconds`, `imported` (which of the names it had imported when it ended by itself), `absent` (which of the names this
environment and the app's folder do not have).

On Linux it is alone in a network of its own, of which there is the loopback device and nothing else. Its own requests
go to a proxy here, which writes down for whom they are and refuses them; so do its questions for other hosts'
addresses. Thus a download is told by its name. What it writes into the app's folder goes to `written`, and nothing that
it has started goes on afterwards, also where it has taken a session of its own.
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
from types import FrameType
from typing import IO

_NEWNS, _NEWUSER, _NEWNET = 0x20000, 0x10000000, 0x40000000
"""Of linux/sched.h."""
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
"""MS_BIND, MS_REC and MS_PRIVATE of linux/mount.h."""
_DEATH_SIGNAL, _SUBREAPER = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of linux/prctl.h."""
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
"""SIOCGIFFLAGS, SIOCSIFFLAGS and IFF_UP of linux/sockios.h and linux/if.h."""
_LISTENS = "0A"
"""TCP_LISTEN of include/net/tcp_states.h, as /proc/net/tcp writes it."""
_ACCEPTS = "00010000"
"""__SO_ACCEPTCON of linux/net.h, as /proc/net/unix writes it."""
_NO_SUCH_NAME = 0x8183
"""Flags of a DNS answer: a response, recursion, NXDOMAIN. Source: RFC 1035, 4.1.1."""
_SAID = re.compile(rb"https?://(?:127\.0\.0\.1|0\.0\.0\.0|localhost|\[::1?\]):(\d+)")
_TAIL = 16_000
"""Bytes of its output that are given."""
_MOST_OUTPUT = 500_000_000
"""Bytes that it may print: one that prints for ever will not come to a page."""
_BREATH = 0.2
"""Seconds between two looks at it."""
_AGAIN = 1
"""Seconds until what has not answered is asked again."""
_STAYS = 1
"""Seconds for which what has answered has to go on."""
_GOODBYE = 5
"""Seconds that it has to end by itself."""


class _Names(threading.Thread):
    """Answers that no name of a host is known, and remembers which were asked for."""

    def __init__(self, asked: "list[str]") -> None:
        super().__init__(daemon=True)
        self._asked = asked
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))

    def run(self) -> None:
        while True:
            question, client = self._socket.recvfrom(4096)
            labels, at = [], 12
            while at < len(question) and question[at]:
                labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
                at += 1 + question[at]
            name = ".".join(labels)
            if len(labels) > 1 and name != socket.gethostname() and name not in self._asked:
                self._asked.append(name)
            head = question[:2] + struct.pack(">HHHHH", _NO_SUCH_NAME, 1, 0, 0, 0)
            self._socket.sendto(head + question[12 : at + 5], client)


class _Proxy(threading.Thread):
    """Refuses what is asked of it, and remembers for which host it was."""

    def __init__(self, asked: "list[str]") -> None:
        super().__init__(daemon=True)
        self._asked = asked
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

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
            self._asked.append(f"{host}/{rest}" if rest else host)
            client.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class _Output(threading.Thread):
    """Reads what the program prints; keeps the end of it, and the ports that it has named."""

    def __init__(self, stream: "IO[bytes]") -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self.size, self.tail, self.ports = 0, b"", set[int]()

    def run(self) -> None:
        while data := os.read(self._stream.fileno(), 65536):
            self.ports |= {int(port) for port in _SAID.findall(self.tail[-100:] + data)}
            self.tail = (self.tail + data)[-_TAIL:]
            self.size += len(data)


class _Memory(threading.Thread):
    """Ends all that was started where it has more memory than it may have."""

    def __init__(self, most: int) -> None:
        super().__init__(daemon=True)
        self._most = most
        self.is_too_big = False

    def run(self) -> None:
        while not self.is_too_big:
            time.sleep(_BREATH)
            if sum(_sum(Path(f"/proc/{process}/status"), _OWN) for process in _started()) <= self._most:
                continue
            # What forks share was counted for each of them; to count it once takes the kernel longer.
            if sum(_sum(Path(f"/proc/{process}/smaps_rollup"), _SHARED) for process in _started()) > self._most:
                self.is_too_big = True
                _kill_started()


_OWN = ("RssAnon:", "RssShmem:", "VmSwap:")
_SHARED = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")
"""Source: https://docs.kernel.org/filesystems/proc.html"""


def _sum(file: Path, keys: "tuple[str, ...]") -> int:
    try:
        text = file.read_text(encoding="ascii", errors="replace")
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(keys))


def _started() -> "list[int]":
    """Give the processes that come from here, by their parents; Linux alone says that."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                parents[int(folder.name)] = int(parent)
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def _kill_started() -> None:
    """Kill all that comes from here, also what is started meanwhile."""
    for _ in range(100):
        left = _started()
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.05)


def _leave(written: str) -> bool:
    """Move into a network of our own in which only this machine is; tell whether the system lets us.

    Where the system lets us, too, what is written into the working folder lies in `written` then.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SUBREAPER, 1)  # what it leaves behind becomes our child
    # There is no way back, and some systems give a user such a network, and then no power in it.
    # Source: https://ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces
    attempt = os.fork()
    if not attempt:
        code = 1
        with contextlib.suppress(OSError):
            _leave_network(libc)
            code = 0
        os._exit(code)
    if os.waitpid(attempt, 0)[1] != 0:
        return False
    is_user = _leave_network(libc)
    if libc.mount(b"none", b"/", None, _REC | _PRIVATE, None) == 0:
        _cover(libc, Path(written), is_user=is_user)
    return True


def _leave_network(libc: ctypes.CDLL) -> bool:
    """Move into a network of our own; tell whether that has made us another user.

    Raises:
        OSError: the system does not let us; where we are is not known then.
    """
    import fcntl

    user, group = os.getuid(), os.getgid()
    is_user: bool = libc.unshare(_NEWNET | _NEWNS) != 0
    if is_user:
        if libc.unshare(_NEWUSER | _NEWNET | _NEWNS) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        # So that the user keeps his name and number.
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack("16xh", fcntl.ioctl(device, _GET_FLAGS, name + bytes(2))[:18])[0]
        fcntl.ioctl(device, _SET_FLAGS, name + struct.pack("h", flags | _UP))
    return is_user


def _cover(libc: ctypes.CDLL, written: Path, *, is_user: bool) -> None:
    """Lay a layer over the working folder that takes what is written, and name ourselves as who knows hosts' names."""
    folder = Path.cwd()
    for name in ("upper", "work"):
        (written / name).mkdir()
    lower = re.sub(r"([\\:,])", r"\\\1", str(folder))
    options = f"lowerdir={lower},upperdir={written}/upper,workdir={written}/work" + (",userxattr" if is_user else "")
    if libc.mount(b"overlay", bytes(folder), b"overlay", 0, options.encode()) == 0:
        os.chdir(folder)
    names = written / "resolv.conf"
    names.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", encoding="ascii")
    with contextlib.suppress(OSError):
        libc.mount(bytes(names), bytes(Path("/etc/resolv.conf").resolve(strict=True)), None, _BIND, None)


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


def _listening() -> "Iterator[int | str]":
    """Give the TCP ports and the paths of sockets on which what was started listens; Linux alone says that."""
    sockets: set[str] = set()
    for process in _started():
        with contextlib.suppress(OSError):
            sockets |= {str(one.readlink()) for one in Path(f"/proc/{process}/fd").iterdir()}
    for table in ("tcp", "tcp6"):
        for row in _rows(table):
            if row[3] == _LISTENS and f"socket:[{row[9]}]" in sockets:
                yield int(row[1].rpartition(":")[2], 16)
    for row in _rows("unix"):
        if row[3] == _ACCEPTS and f"socket:[{row[6]}]" in sockets and len(row) > 7 and not row[7].startswith("@"):
            yield row[7]


def _rows(table: str) -> "list[list[str]]":
    with contextlib.suppress(OSError):
        return [row.split() for row in Path(f"/proc/self/net/{table}").read_text(encoding="utf-8").splitlines()[1:]]
    return []


def _answer(where: "int | str") -> "dict[str, object] | None":
    """Ask for the first page; None where nothing answers."""
    if isinstance(where, str):
        return _ask(where, where)
    for host in ("127.0.0.1", "::1"):
        with contextlib.suppress(ConnectionError, TimeoutError):
            return _ask(where, (host, where)) or _ask(where, (host, where), with_tls=True)
    return None


def _ask(where: "int | str", address: "str | tuple[str, int]", *, with_tls: bool = False) -> "dict[str, object] | None":
    """Ask once.

    Raises:
        ConnectionError: nothing listens there.
        TimeoutError: it takes the question and does not answer.
    """
    import http.client

    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    connection = http.client.HTTPConnection("localhost")
    with contextlib.closing(socket.socket(family)) as plain, contextlib.closing(connection):
        plain.settimeout(10)
        plain.connect(address)
        try:
            connection.sock = _with_tls(plain) if with_tls else plain
            connection.request("GET", "/")
            return {"port": where, "status": connection.getresponse().status}
        except http.client.RemoteDisconnected:
            return None
        except http.client.HTTPException:  # it speaks another language
            return {"port": where, "status": None} if isinstance(where, int) else None
        except TimeoutError:
            raise
        except OSError:
            return None


def _with_tls(plain: socket.socket) -> socket.socket:
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a certificate of its own making is one, too
    return context.wrap_socket(plain)


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def _absent(names: Iterable[str]) -> Iterator[str]:
    """Name the top-level modules that are not there."""
    sys.path.insert(0, "")
    yield from (name for name in names if "." not in name and importlib.util.find_spec(name) is None)


class _Watch:
    """A program that runs, and what it has shown."""

    def __init__(self, wanted: "dict[str, object]", *, is_alone: bool) -> None:
        self._port, self._is_alone = int(str(wanted["port"])), is_alone
        self.asked: list[str] = []
        proxy = _Proxy(self.asked)
        proxy.start()
        self._ours = proxy.port
        self.imported = Path(str(wanted["home"])) / "imported.json"
        if is_alone:
            with contextlib.suppress(OSError):
                _Names(self.asked).start()
        self.begun = time.monotonic()
        self.child = subprocess.Popen(
            wanted["command"],  # type: ignore[call-overload]
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if wanted["with_errors"] else subprocess.DEVNULL,
            env=_environment(str(wanted["home"]), proxy.port) | {"PATCHLOCK_IMPORTED": str(self.imported)},
            start_new_session=True,
        )
        self.output = _Output(self.child.stdout)
        self.output.start()
        self.memory = _Memory(int(str(wanted["memory"])))
        if wanted["memory"] and sys.platform == "linux":
            self.memory.start()
        self.served: dict[str, object] | None = None
        self.elsewhere: dict[int | str, dict[str, object]] = {}
        self.failed: dict[str, object] | None = None
        self._not_before: dict[int | str, float] = {}

    def run(self, seconds: float, quiet: float) -> str:
        """Wait until it answers, ends, or says no more; gives the limit that it has reached, or ""."""
        heard, said = self.begun, (0, 0, 0)
        while self._goes_on(_BREATH):
            self._ask_all()
            now = time.monotonic()
            if self.served:
                self._goes_on(_STAYS)
                return ""
            if now - self.begun > seconds:
                return "time"
            if self.output.size > _MOST_OUTPUT:
                return "output"
            if (current := (self.output.size, len(self.asked), len(self.elsewhere))) != said:
                said, heard = current, now
            elif (self.asked or self.elsewhere) and now - heard > quiet:
                return ""
        self.output.join(timeout=1)
        return "memory" if self.memory.is_too_big else ""

    def _goes_on(self, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(timeout=seconds)
        return self.child.poll() is None

    def _ask_all(self) -> None:
        """Ask all places where a page may be, but for those that have answered."""
        theirs = set(_listening()) if sys.platform == "linux" else set()
        said = self.output.ports if self._is_alone or sys.platform != "linux" else set()
        for where in sorted({*theirs, *said, self._port} - {0, self._ours, *self.elsewhere}, key=str):
            if time.monotonic() < self._not_before.get(where, 0):
                continue
            found = _answer(where)
            self._not_before[where] = time.monotonic() + _AGAIN
            if found and (found["status"] or 0) >= 500:  # type: ignore[operator]
                self.failed = found
            elif found and where == (self._port or where):
                self.served = found
                return
            elif found:
                self.elsewhere[where] = found

    def end(self) -> None:
        """End it, politely first, and all that it has started."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            self._goes_on(_GOODBYE)
            self.child.kill()
        if sys.platform == "linux":
            _kill_started()
        elif os.name == "posix":
            with contextlib.suppress(OSError):
                os.killpg(self.child.pid, signal.SIGKILL)


def _stop(number: int, _: "FrameType | None") -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Start it, watch it, end it."""
    wanted = json.loads(sys.argv[1])
    is_alone = sys.platform == "linux" and _leave(wanted["written"])
    if sys.platform == "linux":  # after the change of user, which would undo it
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGTERM)
    if wanted["port"] and _is_open(wanted["port"]):
        print(json.dumps({"taken": True}))  # noqa: T201 - the answer
        return
    signal.signal(signal.SIGTERM, _stop)
    watch = _Watch(wanted, is_alone=is_alone)
    try:
        limit = watch.run(wanted["seconds"], wanted["quiet"])
        ended = watch.child.poll()
        seconds = time.monotonic() - watch.begun
        stays = ended is not None and sys.platform == "linux" and bool(_started())
    finally:
        watch.end()
    found = {"taken": False, "ended": ended, "stays": stays, "limit": limit, "served": watch.served}
    found |= {"elsewhere": list(watch.elsewhere.values()), "failed": watch.failed, "asked": watch.asked}
    found |= {"output": watch.output.tail.decode("utf-8", errors="replace"), "seconds": seconds}
    names = json.loads(watch.imported.read_text(encoding="utf-8")) if watch.imported.exists() else []
    found |= {"imported": sorted({*wanted["names"]} & {*names}), "absent": list(_absent(wanted["names"]))}
    print(json.dumps(found))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
