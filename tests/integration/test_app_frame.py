"""The frame of an app's own checks: what hangs, crashes or eats memory is named as that, and ends with all it started."""

from __future__ import annotations

import errno
import os
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from patchlock.core import memory
from patchlock.model.checks import CommandCheck, OwnCheck, PythonCheck, ServesCheck
from patchlock.verify import _supervisor, checks
from patchlock.verify.checks import CheckContext, CheckResult

NAME = Path(sys.executable).name
GROW = "import time\nkept = []\nwhile True:\n    kept.append(b'x' * 50_000_000)\n    time.sleep(0.02)"
IN_CHILD = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {GROW!r}])"
FORKED = "import os, time\nkept = b'x' * 300_000_000\nfor _ in range(5):\n    if not os.fork():\n        time.sleep(2); os._exit(0)\ntime.sleep(1.5); print('done')"
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is watched on Linux only")


def _run(check: OwnCheck, folder: Path) -> CheckResult:
    environment = folder / "environment"
    (environment / "bin").mkdir(parents=True, exist_ok=True)
    python = environment / "bin" / "python"
    if not python.exists():
        python.symlink_to(sys.executable)
    return checks.run([check], CheckContext(environment=environment, folder=folder, variables=dict(os.environ)), str)[0]


def _command(code: str, *, prints: str = "", timeout: int = 60, memory_gb: int = 0) -> CommandCheck:
    command = (sys.executable, "-c", code)
    return CommandCheck(id="own", command=command, prints=prints, timeout=timeout, memory_gb=memory_gb)


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        pytest.param(
            "import sys; print('out'); sys.exit('why')",
            f"raises: {NAME} failed with exit code 1; its last line is: why",
            id="raises",
        ),
        pytest.param(
            "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
            f"crashes: SIGSEGV while {NAME} ran",
            id="crashes",
        ),
        pytest.param(
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            f"out of memory: killed by SIGKILL, as the kernel does where memory is out, while {NAME} ran",
            id="killed by the kernel",
        ),
        pytest.param(
            "raise MemoryError('no room')", "out of memory: MemoryError: no room", id="says that memory is out"
        ),
        pytest.param(
            "raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')",
            "out of memory: RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
            id="says that the card's memory is out",
        ),
    ],
)
def test_end_of_an_apps_command_is_named(code: str, detail: str, tmp_path: Path) -> None:
    result = _run(_command(code), tmp_path)
    assert (result.detail, result.passed) == (detail, False)


@pytest.mark.parametrize(("prints", "told"), [("a", 'prints "a"'), ("", "succeeds")])
def test_command_that_passes_is_named_with_what_it_had_to_print(prints: str, told: str, tmp_path: Path) -> None:
    result = _run(_command("print('a'); print('b')", prints=prints), tmp_path)
    assert (result.passed, result.detail) == (True, f"`{sys.executable} -c print('a'); print('b')` {told}")


def test_lines_of_python_that_pass_say_what_they_printed_last(tmp_path: Path) -> None:
    check = PythonCheck(id="own", code="print('a'); print('b')", prints="a", timeout=60)
    assert _run(check, tmp_path).detail == "b"


def test_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    code = (
        "import subprocess, time; from pathlib import Path\n"
        "print(subprocess.Popen(['sleep', '600']).pid, flush=True)\n"
        f"time.sleep(60); Path({str(ended)!r}).touch()"
    )
    result = _run(_command(code, timeout=1), tmp_path)
    assert result.detail.startswith("hangs: no end within 1 seconds; its last line is: ")
    assert not ended.exists(), "it was waited for"
    assert _is_gone(int(result.detail.split()[-1]))


def _is_gone(number: int) -> bool:
    for _ in range(100):
        state = Path(f"/proc/{number}/stat")
        if not state.exists() or state.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


@linux
@pytest.mark.parametrize("code", [pytest.param(GROW, id="itself"), pytest.param(IN_CHILD, id="what it has started")])
def test_command_that_eats_memory_is_ended_at_its_limit(code: str, tmp_path: Path) -> None:
    result = _run(_command(code, memory_gb=1), tmp_path)
    assert result.detail == "out of memory: killed when it had more than 953.7 MiB of memory"
    assert not result.passed


@linux
def test_memory_that_forks_share_is_counted_once(tmp_path: Path) -> None:
    assert _run(_command(FORKED, prints="done", memory_gb=1), tmp_path).passed


@linux
def test_lines_of_python_and_services_have_the_same_limits(tmp_path: Path) -> None:
    lines = PythonCheck(id="own", code=GROW, prints="", timeout=60, memory_gb=1)
    assert _run(lines, tmp_path).detail == "out of memory: killed when it had more than 953.7 MiB of memory"
    command = (sys.executable, "-c", GROW)
    service = ServesCheck(id="own", command=command, path="/", prints="", timeout=60, memory_gb=1)
    wanted = "GET / was not answered: out of memory: killed when it had more than 953.7 MiB of memory"
    assert _run(service, tmp_path).detail == wanted


def test_json_that_a_service_answers_can_be_broken_between_words(tmp_path: Path) -> None:
    (tmp_path / "health").write_text('{"status":"no voice is loaded","voices":[]}\n')
    command = (sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1")
    service = ServesCheck(id="own", command=command, path="/health", prints="status", timeout=60)
    assert _run(service, tmp_path).detail.endswith('answers {"status": "no voice is loaded", "voices": []}')


def test_loopback_that_is_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_: HTTPConnection) -> None:
        raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))  # as in `unshare -n`

    monkeypatch.setattr(HTTPConnection, "connect", connect)
    command = (sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1")
    service = ServesCheck(id="own", command=command, path="/", prints="", timeout=20)
    told = "GET / cannot reach 127.0.0.1 (network is unreachable): bring the loopback interface up"
    assert _run(service, tmp_path).detail.startswith(told)


def test_service_that_crashes_is_named(tmp_path: Path) -> None:
    command = (
        sys.executable,
        "-c",
        "import os, signal; print('began', flush=True); os.kill(os.getpid(), signal.SIGABRT)",
    )
    service = ServesCheck(id="own", command=command, path="/", prints="", timeout=60)
    wanted = f"GET / was not answered: crashes: SIGABRT while {NAME} ran; its last lines: began"
    assert _run(service, tmp_path).detail == wanted


@linux
def test_limit_that_no_check_names_is_a_share_of_this_machines_memory() -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < _supervisor.memory_limit() <= total * 0.8
    assert _supervisor.memory_limit(3) == 3_000_000_000


@linux
def test_memory_of_a_process_that_has_ended_is_none() -> None:
    assert memory.of_process(None) == 0
    assert memory.of_process(2**22) == 0
    assert memory.of_process(os.getpid()) > 1_000_000
