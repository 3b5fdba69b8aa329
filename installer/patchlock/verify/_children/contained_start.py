"""Start an app's program without a network, and say how far it comes; run with the app's folder as working folder.

Argument: JSON with `command`, `home` and `written` (empty folders), `seconds`, `quiet` (seconds after which a program
that has asked for something, or answers elsewhere, and says no more is not waited for), `memory` (bytes that it may
have, 0: any number), `port`, on which it is said to listen, or 0, `with_errors` (whether what it writes to its standard
error is output too), and `names` of modules. Prints JSON: `taken` (the port is another program's), `ended` (its exit
code, or null), `stays` (it has left processes that go on without it), `limit` (which of its limits has ended it: "",
"time", "memory" or "output"), `served` (address and status of what has answered on the port, or anywhere where it is 0,
or null), `elsewhere` (the same, of other ports), `asked` (what it wanted from other hosts), `output` (its last words),
`seconds`, `imported` (which of the names it had imported when it ended by itself), `absent` (which of the names this
environment and the app's folder do not have), `could` (clauses: what this system did not keep it from).

On Linux it is alone in a network of its own, of which there is the loopback device and nothing else. Its own requests
go to a proxy here, which writes down for whom they are and refuses them; so do its questions for other hosts'
addresses. Thus a download is told by its name. It can write into `home` and nowhere else: what it writes into the app's
folder, its environment, /tmp, /var/tmp and /run goes to `written`, or stays in memory, and all else is read-only. It
reaches no socket outside and no disk. Nothing that it has started goes on afterwards, also where it has taken a session
of its own.
"""

import contextlib
import ctypes
import errno
import functools
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO

_NEWNS, _NEWIPC, _NEWUSER, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x40000000
"""Of linux/sched.h."""
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
"""MS_BIND, MS_REC and MS_PRIVATE of linux/mount.h."""
_SET_ATTRIBUTES, _RECURSIVE, _READ_ONLY = 442, 0x8000, 1
"""The number of mount_setattr, on every processor, AT_RECURSIVE and MOUNT_ATTR_RDONLY of linux/mount.h."""
_DEATH_SIGNAL, _DUMPABLE, _DROP_BOUND, _SUBREAPER, _NO_NEW_POWERS = 1, 4, 24, 36, 38
"""PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS of linux/prctl.h."""
_CAPABILITIES, _POWERS = 0x20080522, (0, 1, 3, 4, 10)
"""Of linux/capability.h: _LINUX_CAPABILITY_VERSION_3; CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID and
CAP_NET_BIND_SERVICE."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "dri", "kfd", "dxg", "accel", "snd")
_NVIDIA = ("nvidia*", "nvhost*", "nvgpu", "nvmap", "nvsciipc")
"""What programs find in /dev: sources and drains, cards that compute, sound."""
_FILTER_CALLS, _HOST = 22, 40
"""PR_SET_SECCOMP of linux/prctl.h and AF_VSOCK of linux/socket.h. Source for the filter: seccomp(2)"""
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - some people keep caches or homes there
_COPIED = 1_000_000
"""Bytes up to which a file is copied that cannot have a layer; a larger one is read-only."""
_CONNECTS, _WRITES = ["reach the network"], ["write outside its scratch folder"]
"""What a program could do that is not contained."""
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


def _leave(home: Path, written: Path) -> "list[str]":
    """Close us off from the network and from all files but those in `home`; say what a program could do all the same.

    There is no way back, and some systems give a user namespaces, and then no power in them: a child tries it first.
    Source: https://ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces
    """
    _libc().prctl(_SUBREAPER, 1)  # what it leaves behind becomes our child
    if _works(lambda: _contain(home, written)):
        return [f"write into {folder}" for folder in _contain(home, written)]
    if _works(_leave_network):
        is_user = _leave_network()
        with contextlib.suppress(OSError):
            _mount("none", "/", _REC | _PRIVATE)
            here = Path.cwd()
            _Layers(written, [], is_user=is_user).overlay(str(here), here)
            os.chdir(here)
        _answer_names(written)
        return [*_WRITES]
    return [*_CONNECTS, *_WRITES]


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _works(attempt: "Callable[[], object]") -> bool:
    """Tell whether a child of ours can do it, and give up its powers then."""
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(OSError):
            attempt()
            _drop_powers()
            code = 0
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def _leave_network() -> bool:
    """Move into namespaces of our own, in which there is no network; tell whether they belong to us, or to the system.

    Raises:
        OSError: the system does not let us; where we are is not known then.
    """
    import fcntl

    is_user = _leave_user()
    if not is_user and _libc().unshare(_NEWNET | _NEWNS | _NEWIPC) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack("16xh", fcntl.ioctl(device, _GET_FLAGS, name + bytes(2))[:18])[0]
        fcntl.ioctl(device, _SET_FLAGS, name + struct.pack("h", flags | _UP))
    return is_user


def _leave_user() -> bool:
    """Move into a user namespace in which everybody keeps his name and number; tell whether the system lets us.

    Root goes there, too: it has no power then over processes outside, through whose folder in /proc it could write.
    """
    user, group, process = os.geteuid(), os.getegid(), os.getpid()
    maps = {"uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    if user == 0:
        for name in maps:
            rows = [row.split() for row in Path(f"/proc/self/{name}").read_text(encoding="ascii").splitlines()]
            maps[name] = "\n".join(f"{first} {first} {count}" for first, _, count in rows)
    # More than one number can only be written from outside.
    has_left, leaves = os.pipe()
    writer = os.fork()
    if not writer:
        code = 1
        with contextlib.suppress(OSError):
            os.close(leaves)
            if os.read(has_left, 1):
                if user:
                    Path(f"/proc/{process}/setgroups").write_text("deny", encoding="ascii")
                for name, text in maps.items():
                    Path(f"/proc/{process}/{name}").write_text(text, encoding="ascii")
                code = 0
        os._exit(code)
    is_user: bool = _libc().unshare(_NEWUSER | _NEWNET | _NEWNS | _NEWIPC) == 0
    os.write(leaves, b"x" * is_user)
    os.close(leaves)
    os.close(has_left)
    if os.waitpid(writer, 0)[1] != 0 and is_user:
        raise OSError("uid_map")
    return is_user


def _contain(home: Path, written: Path) -> "list[Path]":
    """Leave nothing but `home` that can be written, and no socket outside; name the folders for which that fails.

    What is written into folders that programs write into lies in `written` then, or in memory.

    Raises:
        OSError: the system does not let us; where we are is not known then.
    """
    here = Path.cwd()
    top = next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
    needed = [top, Path(sys.prefix), Path(sys.base_prefix), home, written]
    is_in_memory = any(_SHARED_MEMORY in path.resolve().parents for path in needed)
    asked = [*map(Path, ("/tmp", "/var/tmp", "/run")), *needed[:2]]  # noqa: S108 - where it may write
    if is_in_memory:
        asked.insert(0, _SHARED_MEMORY)
    folders = [one for one in dict.fromkeys(path.resolve() for path in asked) if one.is_dir() and one != one.parent]
    sockets = [row[7] for row in _rows("unix") if len(row) > 7 and row[7].startswith("/")]
    is_user = _leave_network()
    _mount("none", "/", _REC | _PRIVATE)
    mounted = _mount_points()
    ours = {}
    for path in (home, written):
        _mount(path, path, _BIND)
        ours[path] = os.open(path, os.O_PATH)
    _set_read_only("/", recursive=True)
    for path in ours:
        _set_read_only(path, is_set=False)
    layers = _Layers(Path(f"/proc/self/fd/{ours[written]}"), mounted, is_user=is_user)
    without = []
    for path in folders:
        lower = os.open(path, os.O_PATH)
        if not layers.lay(f"/proc/self/fd/{lower}", path):
            _set_read_only(path, is_set=False)
            without.append(path)
        os.close(lower)
    for path, file in ours.items():  # they may lie in /tmp
        _mount(f"/proc/self/fd/{file}", path, _BIND | _REC)
        os.close(file)
    os.chdir(here)
    _lay_devices(with_shared_memory=is_in_memory)
    for name in sockets:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            if Path(name).is_socket():
                _mount("/dev/null", name, _BIND)
    _answer_names(written)
    return without


def _mount_points() -> "list[Path]":
    rows = [row.split()[4] for row in Path("/proc/self/mountinfo").read_bytes().splitlines()]
    return [Path(os.fsdecode(re.sub(rb"\\(\d{3})", lambda code: bytes([int(code[1], 8)]), row))) for row in rows]


class _Layers:
    """Layers over folders that take what is written into them."""

    def __init__(self, written: Path, mounted: "list[Path]", *, is_user: bool) -> None:
        self._written, self._is_user = written, is_user
        self._above_mounts = {folder for point in mounted for folder in point.parents}
        self._numbers = itertools.count()

    def lay(self, lower: str, folder: Path, *, in_memory: bool = False) -> bool:
        """Lay a layer over a folder; where the system cannot, leave it as it is, and say so.

        Over one in which something is mounted the kernel gives no user a layer, which would show what is below that. It
        gets new files, and a layer for each of its folders: in memory, as there may be thousands, and one on a disk
        takes 15 times as long.
        """
        if folder in self._above_mounts:
            _mount("tmpfs", folder, kind="tmpfs", options=f"mode={_mode(lower):o}")
            with contextlib.suppress(OSError):  # another user's
                for entry in os.scandir(lower):
                    self._lay_entry(entry, folder / entry.name)
            return True
        if self.overlay(lower, folder, in_memory=in_memory):
            return True
        _mount(lower, folder, _BIND | _REC)
        return False

    def _lay_entry(self, entry: "os.DirEntry[str]", path: Path) -> None:
        """Leave out what is no file, such as a socket."""
        with contextlib.suppress(OSError):  # another user's, or gone by now
            if entry.is_symlink():
                path.symlink_to(Path(entry.path).readlink())
            elif entry.is_dir():
                path.mkdir()
                self.lay(entry.path, path, in_memory=True)
            elif entry.is_file() and entry.stat().st_size <= _COPIED:
                shutil.copy(entry.path, path)
            elif entry.is_file():
                path.touch()
                _mount(entry.path, path, _BIND)

    def overlay(self, lower: str, folder: Path, *, in_memory: bool = False) -> bool:
        """Lay one layer; tell whether the system can."""
        for is_disk in (False,) if in_memory else (True, False):
            with contextlib.suppress(OSError):  # some file systems cannot take it, such as another layer
                place = (self._written if is_disk else self._memory) / f"{os.getpid()}-{next(self._numbers)}"
                place.mkdir()
                for name in ("upper", "work"):
                    (place / name).mkdir()
                (place / "upper").chmod(_mode(lower))
                lowers = re.sub(r"([\\:,])", r"\\\1", lower)
                options = f"lowerdir={lowers},upperdir={place}/upper,workdir={place}/work"
                _mount("overlay", folder, kind="overlay", options=options + ",userxattr" * self._is_user)
                return True
        return False

    @functools.cached_property
    def _memory(self) -> Path:
        """Make the place for layers in memory."""
        place = self._written / f"{os.getpid()}-memory"
        place.mkdir()
        _mount("tmpfs", place, kind="tmpfs")
        return place


def _mode(path: str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def _lay_devices(*, with_shared_memory: bool) -> None:
    """Leave no device but those that compute and those that keep nothing; shared memory is empty, or as it is."""
    names = (*_DEVICES, *_NVIDIA, *[_SHARED_MEMORY.name] * with_shared_memory)
    kept = {path: os.open(path, os.O_PATH) for name in names for path in Path("/dev").glob(name)}
    _mount("tmpfs", "/dev", kind="tmpfs", options="mode=755")
    for path, file in kept.items():
        path.mkdir() if stat.S_ISDIR(os.fstat(file).st_mode) else path.touch()
        _mount(f"/proc/self/fd/{file}", path, _BIND | _REC)
        os.close(file)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path("/dev", name).symlink_to(f"/proc/self/{target}")
    if not with_shared_memory:
        _SHARED_MEMORY.mkdir()
        _SHARED_MEMORY.chmod(0o1777)
    terminals = Path("/dev", "pts")
    terminals.mkdir()
    _mount("devpts", terminals, kind="devpts", options="newinstance,ptmxmode=0666")
    Path("/dev/ptmx").symlink_to("pts/ptmx")


def _answer_names(written: Path) -> None:
    """Name ourselves as who knows hosts' names."""
    names = written / "resolv.conf"
    names.write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n", encoding="ascii")
    with contextlib.suppress(OSError):
        _mount(names, Path("/etc/resolv.conf").resolve(strict=True), _BIND)


def _drop_powers() -> None:
    """Keep of root's powers those over files and ports, for good; and let nobody look into our memory.

    Raises:
        OSError: the system does not let us.
    """
    for number in {*range(64)} - {*_POWERS}:
        _libc().prctl(_DROP_BOUND, number, 0, 0, 0)
    kept = sum(1 << number for number in _POWERS)
    header, sets = struct.pack("Ii", _CAPABILITIES, 0), struct.pack("6I", kept, kept, 0, 0, 0, 0)
    if _libc().capset(header, sets) != 0 or _libc().prctl(_NO_NEW_POWERS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    _forbid_host()
    _libc().prctl(_DUMPABLE, 0, 0, 0, 0)


def _forbid_host() -> None:
    """Forbid sockets to the machine that runs this one as a guest, which are in no namespace; and io_uring's, unseen.

    Raises:
        OSError: the system does not let us.
    """
    number_of_socket = 41 if os.uname().machine == "x86_64" else 198
    load, is_equal, give = 0x20, 0x15, 0x06
    rules = (
        (load, 0, 0, 0),  # the number of the call
        (is_equal, 4, 0, 425),  # io_uring_setup
        (is_equal, 0, 2, number_of_socket),
        (load, 0, 0, 16),  # its first argument
        (is_equal, 2, 0, _HOST),
        (give, 0, 0, 0x7FFF0000),  # it is allowed
        (give, 0, 0, 0x50000 | errno.ENOSYS),
        (give, 0, 0, 0x50000 | errno.EAFNOSUPPORT),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("HP", len(rules), ctypes.addressof(code))
    if _libc().prctl(_FILTER_CALLS, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def _mount(source: "Path | str", target: "Path | str", flags: int = 0, kind: str = "", options: str = "") -> None:
    """Mount.

    Raises:
        OSError: the system does not let us.
    """
    if _libc().mount(os.fsencode(source), os.fsencode(target), kind.encode(), flags, os.fsencode(options)) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def _set_read_only(path: "Path | str", *, is_set: bool = True, recursive: bool = False) -> None:
    """Let nobody write, or everybody again.

    Raises:
        OSError: the system does not let us, or is older than Linux 5.12.
    """
    attributes = struct.pack("4Q", _READ_ONLY * is_set, _READ_ONLY * (not is_set), 0, 0)
    place = (-1, os.fsencode(path), _RECURSIVE if recursive else 0)
    if _libc().syscall(_SET_ATTRIBUTES, *place, attributes, ctypes.c_size_t(len(attributes))) != 0:
        raise OSError(ctypes.get_errno(), f"mount_setattr {path}")


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
        with contextlib.suppress(OSError):  # a file that is gone by now, such as one of `multiprocessing`
            return _ask(where, where)
        return None
    for host in ("127.0.0.1", "::1"):
        with contextlib.suppress(OSError):  # nothing listens there, or this machine has no such address
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


def _has_loopback() -> bool:
    """Say whether this machine reaches itself, which it does not while its loopback interface is down."""
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=2).close()
    except OSError as error:
        return isinstance(error, (ConnectionError, TimeoutError))
    return True


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
        self._ours = proxy.port
        self.imported = Path(str(wanted["home"])) / "imported.json"
        answering: list[threading.Thread] = [proxy]
        if is_alone:
            with contextlib.suppress(OSError):
                answering.append(_Names(self.asked))
            _drop_powers()  # a server of names needs one
        for one in answering:
            one.start()
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
    could = [*_CONNECTS, *_WRITES]
    if sys.platform == "linux":
        could = _leave(Path(wanted["home"]), Path(wanted["written"]))
    is_alone = could[:1] != _CONNECTS
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
    found["could"] = could
    found |= {
        "has_loopback": _has_loopback(),
        "output": watch.output.tail.decode("utf-8", errors="replace"),
        "seconds": seconds,
    }
    names = json.loads(watch.imported.read_text(encoding="utf-8")) if watch.imported.exists() else []
    found |= {"imported": sorted({*wanted["names"]} & {*names}), "absent": list(_absent(wanted["names"]))}
    print(json.dumps(found))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
