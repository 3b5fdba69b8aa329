"""install.sh as a person runs it: arguments, variables, an environment that is kept, and runs that were cut off."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
import uv
from bootstraps import PREPARING, Checkout, checkout, posix

__all__ = ["checkout"]


@posix
@pytest.mark.parametrize("shell", ["sh", "dash", "busybox sh", "bash", "bash --posix"])
def test_hands_over_every_argument_as_it_is(checkout: Checkout, shell: str) -> None:
    program = shutil.which(shell.split(maxsplit=1)[0])
    if program is None:
        pytest.skip(f"no {shell} on this machine")
    arguments = ["demo", "--profile", "c p u", "", "*", "$HOME", "--", "-x", "ü\n"]
    shell = " ".join([program, *shell.split()[1:]])

    code, seen, err = checkout.run(*arguments, shell=shell)

    assert (code, err) == (0, PREPARING)
    assert seen["arguments"] == ["install", *arguments]
    assert seen["cwd"] == str(checkout.elsewhere)
    assert seen["stdin"] == ""
    assert seen["variables"] == {"PYTHONPATH": str(checkout.folder / "installer")}


@posix
def test_second_run_is_quiet_and_reuses_the_environment(checkout: Checkout) -> None:
    _, first, _ = checkout.run()
    for name in ("uv", "python3", "mkdir", "mktemp"):
        (checkout.programs / name).unlink()

    code, second, err = checkout.run()

    assert (code, err) == (0, "")
    assert second["prefix"] == first["prefix"] == str(checkout.environments()[0])


@posix
def test_exit_code_is_the_one_of_the_tool(checkout: Checkout) -> None:
    assert checkout.run(env={"STAND_IN_EXIT": "3"})[0] == 3


@posix
def test_another_lock_and_another_module(checkout: Checkout) -> None:
    checkout.run()
    other = checkout.folder / "other lock.txt"
    other.write_text("# another\n", encoding="utf-8")

    code, seen, err = checkout.run("b c", env={"PATCHLOCK_LOCK": str(other), "PATCHLOCK_MODULE": "another -n 2"})

    assert (code, err) == (0, PREPARING)
    assert seen["arguments"] == ["-n", "2", "b c"]
    assert seen["variables"] == {"PYTHONPATH": str(checkout.folder / "installer")}
    assert len(checkout.environments()) == 2


@posix
@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHOME": "/nonexistent"},
        {"PYTHONPATH": "shadows"},
        {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONOPTIMIZE": "2"},
        {"VIRTUAL_ENV": "/nonexistent", "CONDA_PREFIX": "/nonexistent"},
        {"UV_PYTHON": "2.7", "UV_SYSTEM_PYTHON": "1"},
        {"UV_OFFLINE": ""},
        {"UV_CONSTRAINT": "/nonexistent", "UV_BUILD_CONSTRAINT": "/nonexistent", "UV_OVERRIDE": "/nonexistent"},
        {"UV_EXCLUDE_NEWER": "2001-01-01", "UV_PROJECT": "/nonexistent", "UV_NO_BINARY": "1"},
        {"PATCHLOCK_CACHE_DIR": "relative cache"},
        {"CDPATH": "/"},
    ],
    ids=lambda env: next(iter(env)),
)
def test_variables_of_the_user_do_not_break_it(checkout: Checkout, env: dict[str, str]) -> None:
    (checkout.elsewhere / "shadows").mkdir()
    for module in ("json.py", "shadows/os.py", "shadows/encodings.py"):
        (checkout.elsewhere / module).write_text(
            "raise SystemExit('a module of the user was imported')\n", encoding="utf-8"
        )
    if "PATCHLOCK_CACHE_DIR" not in env:
        (checkout.elsewhere / "uv.toml").write_text("broken", encoding="utf-8")

    code, seen, err = checkout.run("a", env=env)

    assert (code, err) == (0, PREPARING)
    assert seen["arguments"] == ["install", "a"]


@posix
@pytest.mark.parametrize("trouble", ["half built", "its Python is gone", "empty folder"])
def test_incomplete_environment_is_made_again(checkout: Checkout, trouble: str) -> None:
    _, first, _ = checkout.run()
    (environment,) = checkout.environments()
    (environment / "complete").unlink()
    match trouble:
        case "half built":
            (environment / "bin/python").unlink()
        case "its Python is gone":
            (environment / "complete").symlink_to("/nonexistent/python3.11")
        case _:
            shutil.rmtree(environment)
            environment.mkdir()

    code, seen, err = checkout.run()

    assert (code, err) == (0, PREPARING)
    assert seen == first
    assert checkout.environments() == [environment]
    assert (environment / "complete").resolve().samefile(Path(sys.executable).resolve())


@posix
def test_several_at_once(checkout: Checkout) -> None:
    processes = [checkout.start(str(number)) for number in range(6)]

    results = [(process.communicate(timeout=300), process.returncode) for process in processes]

    assert [code for _, code in results] == [0] * 6, results
    assert [json.loads(out)["arguments"] for (out, _), _ in results] == [["install", str(n)] for n in range(6)]
    assert len(checkout.environments()) == 1


@posix
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda sent: sent.name)
def test_killed_half_way(checkout: Checkout, sent: signal.Signals) -> None:
    reached = checkout.elsewhere / "reached"
    checkout.program("uv", f'[ "$1" != pip ] || {{ : >"{reached}"; exec sleep 60; }}\nexec "{uv.find_uv_bin()}" "$@"')
    process = checkout.start()
    deadline = time.monotonic() + 60
    while not reached.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, sent)
    _, said = process.communicate(timeout=60)
    if sent is signal.SIGINT:
        assert said.decode() == f"{PREPARING}patchlock: interrupted; nothing is lost: run this again\n"
        assert process.returncode == 130
    (checkout.programs / "uv").unlink()
    (checkout.programs / "uv").symlink_to(uv.find_uv_bin())
    left = checkout.environments()
    assert len(left) == (1 if sent is signal.SIGKILL else 0)
    for path in left:
        os.utime(path, (0, 0))

    code, _, err = checkout.run()

    assert (code, err) == (0, PREPARING)
    assert [path.name.count(".") for path in checkout.environments()] == [0], "what was left over is removed"
