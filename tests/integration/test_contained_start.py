"""A contained start writes nowhere but into its scratch folder and reaches nobody, however hard the program tries."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from patchlock.core import command_lines
from patchlock.model.app import Launch, Listens
from patchlock.verify import checks, start
from patchlock.verify.checks import CheckContext

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or not shutil.which("setpriv"), reason="needs Linux and util-linux"),
]
PROGRAM = Path(start.__file__).with_name("_children") / "contained_start.py"
ORDINARY = 1000
"""A user's number that root tries as well."""
ATTEMPTS = """
import contextlib, ctypes, json, os, socket, stat, sys
from pathlib import Path

wanted, reached = json.loads(sys.argv[1]), []
libc = ctypes.CDLL(None)
BIND, REMOUNT, DETACH, NEW_USER_AND_MOUNTS = 0x1000, 0x20, 2, 0x10020000

def connect(family, address):
    with contextlib.suppress(OSError), socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)
        reached.append(str(address))

def write(prefix=""):
    for place in [Path(prefix + place) for place in wanted["places"]]:
        with contextlib.suppress(OSError):
            (place / "made").write_text("x")
        with contextlib.suppress(OSError):
            (place / "kept").write_text("x")
        with contextlib.suppress(OSError):
            (place / "gone").unlink()
        with contextlib.suppress(OSError):
            place.chmod(0o700)

def remount():
    for place in ("/", "/tmp", "/var/tmp", "/dev", "/dev/shm", *wanted["places"]):
        for flags in (REMOUNT, REMOUNT | BIND):
            libc.mount(None, place.encode(), None, flags, None)
        libc.umount2(place.encode(), DETACH)
    write()

write()
if not wanted["plainly"]:
    remount()
    others = [int(one) for one in os.listdir("/proc") if one.isdigit() and int(one) != os.getpid()]
    for process in others:
        write(f"/proc/{process}/root")
        write(f"/proc/{process}/cwd" + "/.." * 20)
    for file in ("mem", "ns/mnt", "ns/net"):
        for process in (1, os.getppid(), wanted["test"]):
            with contextlib.suppress(OSError), open(f"/proc/{process}/{file}", "rb"):
                reached.append(f"{file} of {process}")
    reached += [str(one) for one in Path("/dev").rglob("*") if one.exists() and one.is_block_device()]
    powers = int(Path("/proc/self/status").read_text().split("CapEff:")[1].split()[0], 16)
    reached += [f"power {number}" for number in (1 << 21, 1 << 12, 1 << 27, 1 << 7) if powers & number]
    connect(socket.AF_INET, ("127.0.0.1", wanted["port"]))
    connect(socket.AF_INET, ("192.0.2.1", 80))
    with contextlib.suppress(OSError), socket.socket(socket.AF_VSOCK):
        reached.append("the host")
    if libc.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0:
        reached.append("io_uring")
    if libc.unshare(NEW_USER_AND_MOUNTS) == 0:
        remount()
for address in wanted["sockets"]:
    connect(socket.AF_UNIX, address)
print(json.dumps(reached))
"""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A user, and what of his must stay as it is."""

    user: int
    python: str
    places: tuple[Path, ...]
    scratch: Path
    app: Path

    def command(self, *words: str) -> list[str]:
        number = str(self.user)
        change = ["setpriv", "--reuid", number, "--regid", number, "--clear-groups"]
        return [*(change if self.user != os.geteuid() else []), *words]

    def attempt(self, *, contained: bool, port: int = 0, sockets: tuple[str, ...] = ()) -> Any:
        wanted = {"places": [str(place) for place in self.places], "plainly": not contained, "test": os.getpid()}
        wanted |= {"port": port, "sockets": sockets}
        command = [self.python, "-I", "-c", ATTEMPTS, json.dumps(wanted)]
        if contained:
            answer = self.contained(command)
            assert (answer["ended"], answer["could"]) == (0, []), answer
            return json.loads(answer["output"].splitlines()[-1])
        done = subprocess.run(self.command(*command), cwd=self.app, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def contained(
        self, command: list[str], *, outer: tuple[str, ...] = (), inner: tuple[str, ...] = (), home: str = "home"
    ) -> dict[str, Any]:
        """Start it, after the words of other programs of root's (`outer`) and of the user's (`inner`)."""
        wanted = {"command": command, "seconds": 60, "quiet": 1, "memory": 0, "port": 0, "with_errors": True}
        wanted |= {"names": [], "home": str(self.scratch / home), "written": str(self.scratch / "written")}
        words = [*outer, *self.command(*inner, self.python, "-I", str(PROGRAM), json.dumps(wanted))]
        done = subprocess.run(words, cwd=self.app, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def seen(self) -> list[tuple[str, ...]]:
        return [
            (
                place.name,
                oct(place.stat().st_mode),
                *(f"{one.name}: {one.read_text()}" for one in sorted(place.iterdir())),
            )
            for place in self.places
        ]


@pytest.fixture(params=["this user", "an ordinary user"])
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    """Make folders of a user's in all places where programs write."""
    user = os.geteuid() if request.param == "this user" else ORDINARY
    if user != os.geteuid() and os.geteuid() != 0:
        pytest.skip("only root can be another user")
    # The home of the test's own Python may be root's alone.
    python = sys.executable if user == os.geteuid() else shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("an ordinary user has no Python here")
    home = "/var/lib" if os.geteuid() == 0 else pwd.getpwuid(user).pw_dir
    with contextlib.ExitStack() as kept:
        folders = [
            Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="patchlock-test-", dir=parent)))
            for parent in (home, "/tmp", "/var/tmp", "/dev/shm", "/tmp", "/tmp")
        ]
        *places, scratch = folders
        for place in places:
            (place / "kept").write_text("mine")
            (place / "gone").write_text("mine")
        for name in ("home", "written"):
            (scratch / name).mkdir()
        for path in (one for folder in folders for one in (folder, *folder.iterdir())):
            path.chmod(0o755)
            os.chown(path, user, user)
        made = Machine(user=user, python=python, places=tuple(places), scratch=scratch, app=places[-1])
        tried = subprocess.run(made.command("unshare", "-Urmn", "true"), capture_output=True, check=False)
        if tried.returncode != 0:
            pytest.skip("this system gives a user no namespaces")
        yield made


def test_nothing_outside_is_changed(machine: Machine) -> None:
    before = machine.seen()
    assert machine.attempt(contained=True) == []
    assert machine.seen() == before
    machine.attempt(contained=False)
    assert all(one != other for one, other in zip(before, machine.seen(), strict=True))


def test_nobody_outside_is_reached(machine: Machine) -> None:
    names = ("\0patchlock-test", *(str(place / "socket") for place in machine.places))
    with contextlib.ExitStack() as kept:
        port = kept.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        for name in names:
            one = kept.enter_context(socket.socket(socket.AF_UNIX))
            one.bind(name)
            one.listen()
            if name.startswith("/"):
                Path(name).chmod(0o777)
        assert machine.attempt(contained=True, port=port, sockets=names) == []
        assert machine.attempt(contained=False, port=port, sockets=names) == [*names]


VOLUME = """
import os, pathlib, socket
print(pathlib.Path("volume/kept").read_text(), os.listdir("inner"), pathlib.Path("link").readlink())
for path in ("made", "kept", "inner/made", "volume/made", "volume/kept", "/tmp/made", "/run/patchlock-made"):
    pathlib.Path(path).write_text("x")
try:
    socket.socket(socket.AF_UNIX).connect("volume/socket")
except ConnectionRefusedError:
    print("refused")
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount")
def test_folders_in_which_something_is_mounted(machine: Machine) -> None:
    for name in ("inner", "volume"):
        (machine.app / name).mkdir()
        os.chown(machine.app / name, machine.user, machine.user)
    (machine.app / "link").symlink_to("inner")
    mounts = f'mount --bind {machine.places[0]} volume && mount -t tmpfs none /run/lock && exec "$@"'
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(machine.places[0] / "socket"))
        one.listen()
        (machine.places[0] / "socket").chmod(0o777)
        command = [machine.python, "-c", VOLUME]
        answer = machine.contained(command, outer=("unshare", "-m", "sh", "-c", mounts, "sh"))
    assert (answer["ended"], answer["could"]) == (0, []), answer
    assert answer["output"].splitlines() == ["mine [] inner", "refused"]
    assert {path.name for path in machine.places[0].iterdir()} == {"gone", "kept", "socket"}
    assert {path.name for path in machine.app.rglob("*")} == {"gone", "kept", "inner", "link", "volume"}
    assert (machine.places[0] / "kept").read_text() == (machine.app / "kept").read_text() == "mine"


SIBLINGS = """
import os, pathlib
names = os.listdir()
for name in names:
    with open(f"{name}/made", "w"):
        pass
print(len(names))
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount")
def test_many_folders_beside_a_mount_take_no_disk(machine: Machine) -> None:
    """A layer on a disk takes 15 times as long as one in memory; people have thousands of folders in /tmp."""
    for name in ("gone", "kept"):
        (machine.app / name).unlink()
    for number in range(50):
        (machine.app / f"{number}").mkdir()
        os.chown(machine.app / f"{number}", machine.user, machine.user)
    mounts = 'mount -t tmpfs -o mode=777 none 0 && exec "$@"'
    command = [machine.python, "-c", SIBLINGS]
    answer = machine.contained(command, outer=("unshare", "-m", "sh", "-c", mounts, "sh"))
    assert (answer["ended"], answer["could"], answer["output"]) == (0, [], "50\n")
    assert not list(machine.app.glob("*/made"))
    assert len(list((machine.scratch / "written").iterdir())) < 50


def test_system_that_cannot_contain_says_so(machine: Machine) -> None:
    hello = [machine.python, "-c", "print('hello')"]
    writes = machine.contained(hello, home="nowhere")
    assert (writes["output"], writes["could"]) == ("hello\n", ["write outside its scratch folder"])
    without = 'for kind in user net mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"'
    connects = machine.contained(hello, inner=("unshare", "-Ur", "sh", "-c", without, "sh"))
    assert connects["output"] == "hello\n"
    assert connects["could"] == ["reach the network", "write outside its scratch folder"]


def test_loopback_that_is_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serves = "import http.server as s; s.HTTPServer(('127.0.0.1', 5997), s.SimpleHTTPRequestHandler).serve_forever()"
    (tmp_path / "app.py").write_text(serves)
    without = 'for kind in user net mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"'
    python = tmp_path / "environment" / "bin" / "python"
    python.parent.mkdir(parents=True)
    words = ("unshare", "-Urn", "sh", "-c", without, "sh", sys.executable)
    python.write_text(f'#!/bin/sh\nexec {command_lines.joined(words, windows=False)} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(start, "_SECONDS", 5)
    place = CheckContext(environment=python.parents[1], folder=tmp_path, variables={"PATH": os.environ["PATH"]})
    launch = Launch(
        command=(sys.executable, "app.py"), environment={}, listens=Listens(port=5997, environment={}, arguments=())
    )
    told = "app.py cannot be reached at 127.0.0.1 (bring the loopback interface up), and goes on after "
    assert told in start.prove(launch, place, "cpu").result.detail


def test_result_says_what_was_not_kept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"taken": False, "ended": None, "seconds": 2, "output": "", "served": {"port": 80, "status": 200}}
    place = CheckContext(environment=tmp_path, folder=tmp_path, variables={"PATH": os.environ["PATH"]})
    listens = Listens(port=80, environment={}, arguments=())
    for could, told in (
        ([], ""),
        (
            ["reach the network", "write into /a"],
            "; not contained: on this system it could reach the network and write into /a",
        ),
    ):
        monkeypatch.setattr(checks, "ask_program", lambda *_, could=could, **__: answer | {"could": could})
        found = start.prove(Launch(command=("true",), environment={}, listens=listens), place, "cuda").result
        assert found.detail == f"it answers on port 80 with status 200, after 2 s{told}"
