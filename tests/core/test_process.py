"""Running programs: real ones, with a list, a closed stdin and an explicit environment; failures have evidence."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from patchlock.core import process
from patchlock.model.errors import CommandFailedError, DiskFullError, PatchlockError, ProgramMissingError

PYTHON = sys.executable


def _python(code: str, *arguments: str, **options: object) -> process.Completed:
    return process.run(PYTHON, "-c", code, *arguments, env=process.environment(), **options)  # type: ignore[arg-type]


def test_output_is_given_back() -> None:
    done = _python("import sys; print('é'); sys.stderr.write('note')")
    assert (done.returncode, done.text, done.stderr) == (0, "é", "note")
    assert done.stdout == f"é{os.linesep}".encode()


def test_output_that_is_no_utf_8_is_shown_with_marks() -> None:
    assert _python("import sys; sys.stdout.buffer.write(b'a\\xff')").text == "a\ufffd"
    with pytest.raises(CommandFailedError) as caught:
        _python("import sys; sys.stderr.buffer.write(b'a\\xff'); sys.exit(1)")
    assert caught.value.evidence == ("a\ufffd",)


def test_stdin_is_closed_or_given() -> None:
    code = "import sys; print(repr(sys.stdin.read()))"
    assert _python(code).text == "''"
    assert _python(code, stdin=b"given").text == "'given'"


def test_arguments_are_no_shell_words(tmp_path: Path) -> None:
    words = ("a b", "$HOME", "*", "; exit 3", "")
    assert _python("import sys; print(sys.argv[1:])", *words, cwd=tmp_path).text == str(list(words))
    assert Path(_python("import os; print(os.getcwd())", cwd=tmp_path).text).samefile(tmp_path)


def test_allowed_exit_code_is_no_failure() -> None:
    assert _python("raise SystemExit(3)", allowed=(0, 3)).returncode == 3


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        pytest.param(
            "import sys; sys.stderr.write('one\\ntwo\\n'); print('not shown'); sys.exit(3)", ["one", "two"], id="stderr"
        ),
        pytest.param("import sys; print('said'); sys.exit(3)", ["said"], id="stdout-where-stderr-is-empty"),
        pytest.param(
            "import sys; [print(n, file=sys.stderr) for n in range(100)]; sys.exit(3)",
            [str(n) for n in range(88, 100)],
            id="last-lines",
        ),
        pytest.param("raise SystemExit(3)", [], id="silent"),
    ],
)
def test_failure_shows_its_last_lines(code: str, evidence: list[str]) -> None:
    with pytest.raises(CommandFailedError) as caught:
        _python(code)
    lines = "".join(f"\n  {line}" for line in evidence)
    where = shlex.join([PYTHON, "-c", code])
    assert str(caught.value) == f"{Path(PYTHON).name} failed with exit code 3 ({where}){lines}"


@pytest.mark.parametrize(
    "text",
    [
        "fatal: write error: No space left on device",
        "There is not enough space on the disk.",
        "failed (os error 28)",
        "failed (os error 112)",
    ],
)
def test_full_disk_is_told_from_other_failures(text: str) -> None:
    with pytest.raises(DiskFullError) as caught:
        _python(f"import sys; print('begun', file=sys.stderr); sys.exit({text!r})")
    name = Path(PYTHON).name
    remedy = "free some room and run the same command again"
    assert str(caught.value) == f"the disk is full while {name} was writing ({text}); {remedy}"


def test_full_disk_where_the_program_does_not_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As git does, where it cannot write a new `.git/config`.
    script = "import sys; sys.exit('fatal: failed to write new configuration file')"
    room = {"free": 4096}
    monkeypatch.setattr(process.shutil, "disk_usage", lambda _: SimpleNamespace(**room))
    with pytest.raises(DiskFullError, match="failed to write new configuration file"):
        process.run(sys.executable, "-c", script, env=dict(os.environ), cwd=tmp_path)
    room["free"] = 1 << 30
    with pytest.raises(CommandFailedError):
        process.run(sys.executable, "-c", script, env=dict(os.environ), cwd=tmp_path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_full_disk_of_a_real_program() -> None:
    with pytest.raises(DiskFullError):
        process.run("dd", "if=/dev/zero", "of=/dev/full", "count=1", env={"PATH": os.environ["PATH"], "LC_ALL": "C"})


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        pytest.param(
            "nonesuch-program",
            "nonesuch-program is not installed; install it and make sure that it is on PATH",
            id="unknown",
        ),
        pytest.param(
            "/nowhere/bin/python",
            "python is not installed; install it and make sure that it is on PATH",
            id="path",
        ),
    ],
)
def test_missing_program_has_a_remedy(program: str, sentence: str, tmp_path: Path) -> None:
    env = process.environment()
    for start in (
        lambda: process.run(program, env=env),
        lambda: process.exec_program(program, env=env, cwd=tmp_path),
        lambda: process.start(program, env=env, cwd=tmp_path, log=tmp_path / "log"),
        lambda: process.watch(program, env=env, cwd=tmp_path, tell=print),
    ):
        with pytest.raises(ProgramMissingError) as caught:
            start()
        assert str(caught.value) == sentence


@pytest.mark.skipif(sys.platform != "linux", reason="the command is the system's own")
def test_missing_git_can_be_installed_with_a_command(tmp_path: Path) -> None:
    with pytest.raises(ProgramMissingError) as caught:
        process.run("git", "status", env={"PATH": str(tmp_path)})
    assert str(caught.value) == "git is not installed; install it: `sudo apt-get install git`"


def test_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    code = "import time; from pathlib import Path; time.sleep(20); Path('ended').touch()"
    with pytest.raises(CommandFailedError) as caught:
        _python(code, timeout=0.3, cwd=tmp_path)
    assert not (tmp_path / "ended").exists(), "it was waited for"
    name, where = Path(PYTHON).name, shlex.join([PYTHON, "-c", code])
    assert str(caught.value) == f"{name} did not end within 0.3 seconds ({where})"


def _ask(code: str, timeout: float = 20, **options: int) -> process.Completed:
    return process.run_untrusted(sys.executable, "-c", code, env=process.environment(), timeout=timeout, **options)


def test_program_is_asked_without_its_standard_error() -> None:
    done = _ask("import sys; print('yes'); sys.stderr.write('no'); sys.exit(3)")
    assert (done.text, done.stderr, done.returncode) == ("yes", "", 3)


def test_asked_program_may_die_by_a_signal() -> None:
    assert _ask("import os; os.kill(os.getpid(), 9)").returncode == -9


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param("import time; time.sleep(60)", "did not end within 0.5 seconds", id="hangs"),
        pytest.param("while True: print('x' * 9999)", "printed 5000 bytes and more", id="prints-without-end"),
    ],
)
def test_asked_program_that_does_not_end_is_given_up(code: str, sentence: str) -> None:
    with pytest.raises(CommandFailedError, match=sentence):
        _ask(code, timeout=0.5, limit=5000)


def test_what_an_asked_program_leaves_behind_is_ended_and_not_waited_for(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    left = f"import time; from pathlib import Path; time.sleep(20); Path({str(ended)!r}).touch()"
    code = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {left!r}]).pid, flush=True)"
    child = int(_ask(code).text)
    assert not ended.exists(), "it was waited for"
    deadline = time.monotonic() + 5
    while _runs(child):
        assert time.monotonic() < deadline, "it is still there"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and ") Z " not in state.read_text()


def test_program_that_cannot_be_started_is_a_failed_command(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    with pytest.raises(CommandFailedError, match=r"^program cannot be started: Exec format error$"):
        process.run_untrusted(str(program), env=process.environment(), timeout=5)


def test_environment_lets_no_other_python_or_clone_leak_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True).stdout
    settings = {"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"}
    leaks = {"PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX"}
    leaks |= {"GIT_NAMESPACE", *local.split()} - settings
    for name in leaks | settings | {"HTTPS_PROXY"}:
        monkeypatch.setenv(name, "/x")
    env = process.environment()
    assert leaks & env.keys() == set()
    assert {name: env[name] for name in settings | {"HTTPS_PROXY"}} == dict.fromkeys(settings | {"HTTPS_PROXY"}, "/x")
    assert (env["PYTHONNOUSERSITE"], env["PYTHONUTF8"], env["HOME"]) == ("1", "1", os.environ["HOME"])


def test_variables_of_the_caller_win() -> None:
    env = process.environment({"PYTHONPATH": "/mine", "PYTHONUTF8": "0", "HOME": "/h"})
    assert (env["PYTHONPATH"], env["PYTHONUTF8"], env["HOME"]) == ("/mine", "0", "/h")


def test_child_has_the_given_environment_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    code = "import os; print('SECRET' in os.environ, os.environ.get('GIVEN'))"
    assert process.run(PYTHON, "-c", code, env={"PATH": os.environ["PATH"], "GIVEN": "2"}).text == "False 2"


def test_program_is_looked_up_on_the_given_path(tmp_path: Path) -> None:
    tool = tmp_path / "patchlock-tool"
    tool.write_text("#!/bin/sh\necho ours\n")
    tool.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert process.run("patchlock-tool", env={"PATH": path}).text == "ours"
    process.watch("patchlock-tool", env={"PATH": path}, cwd=tmp_path, tell=print)
    assert process.start("patchlock-tool", env={"PATH": path}, cwd=tmp_path, log=tmp_path / "log").wait() == 0


def test_descriptor_is_inherited_only_when_asked_for(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    code = f"import os; os.write({descriptor}, b'x')"
    try:
        with pytest.raises(CommandFailedError):
            _python(code)
        _python(code, keep_open=[descriptor])
        process.watch(
            *(PYTHON, "-c", code), env=process.environment(), cwd=tmp_path, tell=print, keep_open=[descriptor]
        )
    finally:
        os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"xx"


def test_service_writes_to_its_log_and_is_ended_by_the_caller(tmp_path: Path) -> None:
    code = "import sys, time; print('out', flush=True); print('err', file=sys.stderr, flush=True); time.sleep(60)"
    log = tmp_path / "log"
    service = process.start(PYTHON, "-c", code, env=process.environment(), cwd=tmp_path, log=log)
    try:
        deadline = time.monotonic() + 20
        while log.read_text().split() != ["out", "err"] and time.monotonic() < deadline:
            time.sleep(0.02)
        assert log.read_text().split() == ["out", "err"]
        assert service.poll() is None
        assert os.getsid(service.pid) != os.getsid(0)
    finally:
        service.kill()
        service.wait()


@pytest.mark.skipif(os.name != "posix", reason="Windows cannot replace a process")
def test_replace_becomes_the_program(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from patchlock.core import process; print('before', flush=False);"
        "process.exec_program(sys.executable, '-c', 'import os; print(os.getpid(), os.getcwd(), os.environ[\"A\"])',"
        f"env={{'A': '1', 'PATH': ''}}, cwd=Path({str(tmp_path)!r})); print('never')"
    )
    child = subprocess.Popen(
        [PYTHON, "-c", code],
        env={**os.environ, "PYTHONUNBUFFERED": "", "PYTHONPATH": str(Path(process.__file__).parents[2])},
        stdout=subprocess.PIPE,
    )
    output, _ = child.communicate(timeout=30)
    assert output.decode().splitlines() == ["before", f"{child.pid} {tmp_path} 1"]


def test_failure_of_a_command_is_one_error() -> None:
    error: PatchlockError = process.failure(
        ["/usr/bin/x", "a b"], process.Completed(returncode=7, stdout=b"", stderr=" \n")
    )
    assert str(error) == "x failed with exit code 7 (/usr/bin/x 'a b')"


@pytest.mark.parametrize(("code", "end"), [(-11, "SIGSEGV"), (-9, "SIGKILL"), (-99, "signal 99")])
def test_failure_of_a_command_that_a_signal_ended_names_it(code: int, end: str) -> None:
    error: PatchlockError = process.failure(["x"], process.Completed(returncode=code, stdout=b"", stderr=""))
    assert str(error) == f"x was ended by {end} (x)"


def _watch(code: str, tell: Callable[[str], None], folder: Path) -> None:
    process.watch(PYTHON, "-c", code, env=process.environment(), cwd=folder, tell=tell)


def test_watched_program_is_heard_line_by_line_while_it_runs(tmp_path: Path) -> None:
    heard: list[str] = []

    def tell(line: str) -> None:
        heard.append(line)
        (tmp_path / "heard").touch()

    code = (
        "import sys, time; from pathlib import Path; print('one', file=sys.stderr, flush=True); print('not shown')\n"
        "while not Path('heard').exists(): time.sleep(0.01)\n"
        "print('two', file=sys.stderr)"
    )
    _watch(code, tell, tmp_path)
    assert heard == ["one", "two"]


def test_watched_program_that_fails_shows_its_last_lines(tmp_path: Path) -> None:
    code = "import sys; print('one', file=sys.stderr); sys.exit('two')"
    with pytest.raises(CommandFailedError) as caught:
        _watch(code, lambda _: None, tmp_path)
    where = shlex.join([PYTHON, "-c", code])
    assert str(caught.value) == f"{Path(PYTHON).name} failed with exit code 1 ({where})\n  one\n  two"


def test_watched_program_ends_with_its_listener(tmp_path: Path) -> None:
    def tell(line: str) -> None:
        raise KeyboardInterrupt(line)

    code = (
        "import sys, time; from pathlib import Path; print('one', file=sys.stderr, flush=True)\n"
        "time.sleep(20); Path('ended').touch()"
    )
    with pytest.raises(KeyboardInterrupt):
        _watch(code, tell, tmp_path)
    assert not (tmp_path / "ended").exists(), "it was waited for"


def test_dialogue_answers_each_line_until_the_program_ends(tmp_path: Path) -> None:
    code = (
        "import sys\nfor line in sys.stdin:\n    print(line.strip().upper(), flush=True)\n    if 'end' in line: break"
    )
    asked = process.Dialogue(sys.executable, "-c", code, env=process.environment(), cwd=tmp_path)
    assert [asked.ask(line, 60) for line in (b"one", b"two", b"end", b"more")] == [b"ONE\n", b"TWO\n", b"END\n", b""]
    assert asked.ask(b"again", 60) == b""
    assert asked.ending == process.Ending(how="ended without an answer", lines=())


def test_dialogue_says_how_the_program_ended(tmp_path: Path) -> None:
    code = "import sys\nsys.stdin.readline()\nprint('first\\nlast', file=sys.stderr)\nsys.exit(3)"
    asked = process.Dialogue(sys.executable, "-c", code, env=process.environment(), cwd=tmp_path)
    assert asked.ask(b"one", 60) == b""
    assert asked.ending == process.Ending(how="failed with exit code 3", lines=("first", "last"))


def test_dialogue_without_an_answer_in_time_is_ended(tmp_path: Path) -> None:
    code = "import time; time.sleep(600)"
    asked = process.Dialogue(sys.executable, "-c", code, env=process.environment(), cwd=tmp_path)
    assert asked.ask(b"one", 0.1) == b""
    assert asked.ask(b"two", 60) == b""
    assert asked.ending is None
