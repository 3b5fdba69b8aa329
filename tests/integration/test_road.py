"""The whole road on a miniature: lock, plan, install, verify, run, change, go back, remove; real git, real uv."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, lock_here

from patchlock.core import file_lock


@pytest.fixture
def installed(locked: World, patchlock: Patchlock) -> Path:
    """Install the app, and give its folder."""
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    return Path(json.loads(patchlock("install", "mini", "--json").stdout)["data"]["folder"])


def test_upstream_cannot_be_locked_without_patches(world: World, patchlock: Patchlock) -> None:
    text = world.app.read_text()
    world.app.write_text(text.replace('specifier = "==1.0"', 'specifier = "==9.0"'))
    done = patchlock(*lock_here())
    assert done.returncode == 1
    assert "error" not in done.stderr
    assert "the package index has no alpha 9.0; the newest is 2.0 (requirements.txt:2)" in done.stdout
    assert "alpha==9.0" in done.stdout


def test_upstream_does_not_start_without_patches(world: World) -> None:
    done = subprocess.run(
        [
            "python3",
            "-c",
            "import sys; sys.modules['alpha'] = sys; import runpy; runpy.run_path('app.py', run_name='__main__')",
        ],
        cwd=world.upstream,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no CUDA here" in done.stderr


def test_summary_says_what_was_done_and_how_to_go_on(locked: World, patchlock: Patchlock) -> None:
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    [head] = [line for line in lines if line.startswith("mini is installed")]
    assert re.fullmatch(
        r"mini is installed on tiny \(linux-\w+\) in \d+\.\d s; not verified: no kernel was computed", head
    )
    assert "installed and verified" not in done.stdout + done.stderr
    assert "patches   alpha-that-exists  applied in requirements.txt" in lines
    assert "on-the-cpu         applied in app.py" in lines
    assert 'computes  says-where: `python app.py` prints "computed on cpu"' in lines
    assert "run       patchlock run mini" in lines
    assert "undo      patchlock uninstall mini" in lines
    assert len(lines) < 20
    stages = [line.split()[0] for line in done.stderr.splitlines()]
    assert stages == ["profile", "preflight", "source", "environment", "patch", "verify"]


def test_an_app_that_nothing_can_compute_with_on_a_gpu_is_never_verified(locked: World, patchlock: Patchlock) -> None:
    locked.profile.write_text(locked.profile.read_text() + 'back-end = "cuda"\n')
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "present   kernels: nothing was computed on cuda; `patchlock verify` does that" in done.stdout
    assert (
        "error[verify]: mini is installed; not verified: nothing was computed on cuda, as no device was found ("
        in done.stderr
    )
    assert "installed and verified" not in done.stdout + done.stderr
    done = patchlock("verify", "mini")
    assert done.returncode == 1
    assert (
        "FAILED  computes  kernels: nothing was computed on cuda: the lock has neither torch nor an ONNX Runtime that can; "
        "let the app require one and run `patchlock lock mini --profile tiny`, or install it on the profile cpu"
    ) in done.stdout.splitlines()


def test_run_starts_the_app_in_its_environment(installed: Path, patchlock: Patchlock) -> None:
    done = patchlock("run", "mini")
    assert (done.returncode, done.stdout) == (0, "computed on cpu\n")


def test_run_hands_over_arguments_and_exit_code(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "app.py").write_text(
        "import sys\nif __name__ == '__main__':\n"
        "    print('computed on cpu', sys.argv[1:])\n    sys.exit(7 if '--profile' in sys.argv else 0)\n"
    )
    world.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    done = patchlock("run", "mini", "--", "--profile", "a b")
    assert (done.returncode, done.stdout) == (7, "computed on cpu ['--profile', 'a b']\n")


def test_the_environment_is_isolated(installed: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    (tmp_path / "leak").mkdir()
    (tmp_path / "leak" / "beta.py").write_text("raise SystemExit('leaked')\n")
    done = patchlock("verify", "mini", env={"PYTHONPATH": f"{Path.cwd() / 'installer'}:{tmp_path / 'leak'}"})
    assert done.returncode == 0, done.stdout


def test_install_again_has_nothing_to_do(installed: Path, patchlock: Patchlock) -> None:
    before = {path: path.stat().st_mtime_ns for path in installed.rglob("*") if path.is_file()}
    done = patchlock("install", "mini")
    assert (done.returncode, done.stdout) == (
        0,
        "mini is installed on tiny and up to date: nothing to do\nnote    not verified: no kernel was computed\n",
    )
    assert done.stderr == ""
    assert {path: path.stat().st_mtime_ns for path in installed.rglob("*") if path.is_file()} == before


def test_the_branch_of_the_clone_is_at_upstreams_commit(installed: Path, locked: World) -> None:
    source = installed / "source"
    git = lambda *words: subprocess.run(["git", *words], cwd=source, capture_output=True, text=True, check=True).stdout  # noqa: E731
    assert git("rev-parse", "HEAD").strip() in locked.app.read_text()
    assert git("symbolic-ref", "--short", "HEAD").strip() == "main"
    assert git("status", "--porcelain").split() == ["M", "app.py", "M", "requirements.txt"]
    assert git("diff", "refs/patchlock/applied") == ""
    assert b"alpha==1.0  # why not\r\n" in (source / "requirements.txt").read_bytes()


def test_patched_commit_has_the_same_id_everywhere(installed: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    elsewhere = {"PATCHLOCK_HOME": str(tmp_path / "other"), "PATCHLOCK_CACHE_DIR": str(tmp_path / "other-cache")}
    first = json.loads(patchlock("install", "mini", "--json").stdout)["data"]["receipt"]
    second = json.loads(patchlock("install", "mini", "--json", env=elsewhere).stdout)["data"]["receipt"]
    assert first["applied"] == second["applied"]
    assert first["id"] == second["id"]


def _new_upstream(world: World, patchlock: Patchlock, folder: Path) -> None:
    app = world.upstream / "app.py"
    app.write_bytes(app.read_bytes().replace(b'"""An app."""', b'"""An app, second edition."""'))
    (world.upstream / "new.py").write_text('WHERE = "cuda"\n')
    world.name_commit(folder)
    assert patchlock(*lock_here()).returncode == 0


def test_new_upstream_keeps_the_users_edits_and_files(
    installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    app = installed / "source" / "app.py"
    app.write_text(app.read_text() + "\n# mine\n")
    (installed / "source" / "model.bin").write_bytes(b"weights")
    _new_upstream(locked, patchlock, tmp_path)
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    assert "your edits in app.py" in done.stdout
    assert "second edition" in app.read_text()
    assert app.read_text().endswith("# mine\n")
    assert 'DEVICE = "cpu"' in app.read_text()
    assert (installed / "source" / "new.py").read_text() == 'WHERE = "cpu"\n'
    assert (installed / "source" / "model.bin").read_bytes() == b"weights"
    head = subprocess.run(
        ["git", "rev-parse", "main"], cwd=app.parent, capture_output=True, text=True, check=True
    ).stdout
    assert f'commit = "{head.strip()}"' in locked.app.read_text()


def test_conflict_with_the_users_edit_writes_nothing(
    installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    app = installed / "source" / "app.py"
    app.write_text(app.read_text().replace('"""An app."""', '"""My app."""'))
    before = {path: path.read_bytes() for path in (installed / "source").glob("*.*") if path.is_file()}
    pointer = (installed / "current").read_text()
    _new_upstream(locked, patchlock, tmp_path)
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "error[source-conflict]: your edits conflict with ours in app.py" in done.stderr
    assert {path: path.read_bytes() for path in (installed / "source").glob("*.*") if path.is_file()} == before
    assert (installed / "current").read_text() == pointer
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_failed_verification_leaves_the_old_generation(
    installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    pointer = (installed / "current").read_text()
    (locked.upstream / "app.py").write_text("raise SystemExit('broken')\n")
    locked.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "error[verify]: 3 of 5 checks of mini did not pass" in done.stderr
    assert (installed / "current").read_text() == pointer
    assert "the catalogue has a newer lock" in patchlock("status").stdout, "nothing is left to finish"
    assert patchlock("run", "mini").stdout == "computed on cpu\n"
    assert patchlock("verify", "mini").returncode == 0


def test_rollback_and_forward_again(installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    first = (installed / "current").read_text()
    _new_upstream(locked, patchlock, tmp_path)
    assert patchlock("install", "mini").returncode == 0
    second = (installed / "current").read_text()
    assert first != second
    done = patchlock("rollback", "mini")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("forward again: patchlock install mini --profile tiny\n")
    assert (installed / "current").read_text() == first
    assert "second edition" not in (installed / "source" / "app.py").read_text()
    assert not (installed / "source" / "new.py").exists()
    assert patchlock("verify", "mini").returncode == 0
    assert patchlock("install", "mini").returncode == 0
    assert (installed / "current").read_text() == second
    assert "second edition" in (installed / "source" / "app.py").read_text()


def test_prune_frees_what_is_not_in_use(installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    _new_upstream(locked, patchlock, tmp_path)
    assert patchlock("install", "mini").returncode == 0
    assert len(list((installed / "environments").iterdir())) == 2
    planned = patchlock("cache", "clean", "mini", "--dry-run").stdout
    assert planned.startswith("would free ")
    assert len(list((installed / "environments").iterdir())) == 2
    assert patchlock("cache", "clean", "mini", "--yes").stdout == planned.replace("would free", "freed")
    assert [path.name for path in (installed / "environments").iterdir()] == [
        (installed / "current").read_text().strip()
    ]
    assert patchlock("rollback", "mini").returncode == 1


def test_reinstall_builds_afresh_beside(installed: Path, patchlock: Patchlock) -> None:
    first = (installed / "current").read_text().strip()
    broken = next((installed / "environments" / first).rglob("beta.py"))
    broken.unlink()
    done = patchlock("verify", "mini")
    assert done.returncode == 1
    assert "FAILED  loads     imports: import beta: ModuleNotFoundError: No module named 'beta'" in done.stdout
    done = patchlock("install", "mini", "--reinstall")
    assert done.returncode == 0, done.stderr
    (count,) = re.findall(r"verify +(\d+) checks passed", done.stderr)
    told = patchlock("verify", "mini")
    assert told.returncode == 0
    shown = int(count) + 2
    assert told.stdout.count("ok  ") == shown
    assert re.search(rf" {shown} of {shown} checks passed.*; 2 of them look at the files on disk", told.stderr)
    assert (installed / "current").read_text().strip() == f"{first}-2"
    told = patchlock("rollback", "mini").stdout
    assert told.endswith("forward again: patchlock install mini --profile tiny --reinstall\n"), (
        "nothing else has changed"
    )


def test_what_another_install_has_proved_meanwhile_is_taken(installed: Path, patchlock: Patchlock) -> None:
    (installed / "current").rename(installed / "current.later")
    with file_lock.hold(installed / "lock", wait=0):
        waiting = subprocess.Popen(
            [*patchlock.command, "install", "mini"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=patchlock.env(),
            text=True,
        )
        assert waiting.stderr is not None
        while "waiting for another patchlock" not in (line := waiting.stderr.readline()):
            assert line
        (installed / "current.later").rename(installed / "current")
    told, _ = waiting.communicate(timeout=120)
    assert (waiting.returncode, told) == (
        0,
        "mini is installed on tiny and up to date: nothing to do\nnote    not verified: no kernel was computed\n",
    )


_MEANWHILE = """
import os, sys
from patchlock.operations import _session
lock = _session.lock
def late(installation, progress):
    os.replace(installation.pointer.with_name("current.later"), installation.pointer)
    return lock(installation, progress)
_session.lock = late
from patchlock.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""An install, and another one that ends between its first look and its lock."""


def test_what_another_install_ended_after_the_first_look_is_taken(installed: Path, patchlock: Patchlock) -> None:
    (installed / "current").rename(installed / "current.later")
    command = [sys.executable, "-P", "-c", _MEANWHILE, "install", "mini"]
    done = subprocess.run(command, capture_output=True, env=patchlock.env(), text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "mini is installed on tiny and up to date: nothing to do"


def test_verify_names_a_package_that_does_not_belong(installed: Path, patchlock: Patchlock) -> None:
    packages = next((installed / "environments").glob("*/lib/python*/site-packages"))
    (packages / "alpha-1.0.dist-info").rename(packages / "alpha-2.0.dist-info")
    (packages / "stranger-3.dist-info").mkdir()
    done = patchlock("verify", "mini")
    assert done.returncode == 1
    expected = "FAILED  present   packages: alpha is 2.0, the lock says 1.0; stranger 3 is not in the lock"
    assert expected in done.stdout


def test_uninstall_keeps_what_is_the_users(installed: Path, patchlock: Patchlock) -> None:
    (installed / "source" / "outputs").mkdir()
    (installed / "source" / "outputs" / "song.wav").write_bytes(b"music")
    (installed / "sounds").mkdir()
    (installed / "sounds" / "hums.wav").write_bytes(b"what verify heard")
    done = patchlock("uninstall", "mini")
    assert done.returncode == 0
    assert "kept your 1 file or folder (5 bytes)" in done.stdout
    assert (installed / "source" / "outputs" / "song.wav").read_bytes() == b"music"
    assert list(installed.iterdir()) == [installed / "source"]
    assert patchlock("run", "mini").returncode == 1
    assert patchlock("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert not installed.exists()


def test_uninstall_removes_everything_that_is_ours(installed: Path, patchlock: Patchlock) -> None:
    patchlock("run", "mini")
    (installed / "source" / ".git" / "info" / "exclude").write_text("outputs/\n")
    (installed / "source" / "outputs" / "of-a-day").mkdir(parents=True)
    removed, room = patchlock("uninstall", "mini").stdout.splitlines()
    assert removed == "mini is removed from tiny"
    assert room.startswith("nothing is installed now; ")
    assert room.endswith("patchlock self remove")
    assert not installed.exists()
    done = patchlock("uninstall", "mini")
    assert (done.returncode, done.stderr) == (1, "error[not-installed]: mini is not installed; nothing to remove\n")


def test_install_from_another_clone(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("plan", "mini").returncode == 0
    clone = tmp_path / "my clone"
    cached = tmp_path / "cache" / "upstreams" / "mini.git"
    subprocess.run(["git", "init", "-q", "-b", "main", str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "pull", "-q", str(cached), "refs/remotes/origin/main"], check=True)
    fresh = {"PATCHLOCK_CACHE_DIR": str(tmp_path / "fresh")}
    catalogue = str(locked.catalogue)
    done = patchlock("plan", "mini", "--source", str(clone), "--commit", "main", "--catalogue", catalogue, env=fresh)
    assert done.stdout.splitlines()[-1] == (
        f"  install   patchlock install mini --profile tiny --source '{clone}' --commit main --catalogue {catalogue}"
    )
    done = patchlock("install", "mini", "--source", str(clone), env=fresh)
    assert done.returncode == 0, done.stderr
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_another_commit_of_a_fork(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("plan", "mini").returncode == 0
    fork = tmp_path / "fork"
    subprocess.run(["git", "init", "-q", "-b", "main", str(fork)], check=True)
    cached = tmp_path / "cache" / "upstreams" / "mini.git"
    subprocess.run(["git", "-C", str(fork), "pull", "-q", str(cached), "refs/remotes/origin/main"], check=True)
    (fork / "README.md").write_text("# forked\n")
    identity = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run(["git", "-C", str(fork), *identity, "commit", "-qam", "fork"], check=True)
    done = patchlock("install", "mini", "--source", str(fork), "--commit", "HEAD")
    assert done.returncode == 0, done.stderr
    head = subprocess.run(
        ["git", "-C", str(fork), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout
    assert f"commit {head[:12]}, patched as" in done.stdout
    (fork / "requirements.txt").write_text("alpha==9.0\nbeta<1\n")
    subprocess.run(["git", "-C", str(fork), *identity, "commit", "-qam", "other needs"], check=True)
    done = patchlock("install", "mini", "--source", str(fork), "--commit", "main")
    assert done.returncode == 1
    assert "error[lock-stale]: the lock of mini on tiny is stale: upstream is at commit" in done.stderr
    assert "upstream's requirements.txt has changed since the lock was made" in done.stderr


@pytest.mark.parametrize(
    ("code", "passed", "detail"),
    [
        ("import alpha, app\nprint(alpha.__version__, app.DEVICE)", True, "1.0 cpu"),
        ("import alpha\nraise SystemExit('no kernel')", False, "no kernel"),
        ("print('1.0')", False, 'its output does not have "1.0 cpu"; its last line is: 1.0'),
    ],
    ids=["computes", "fails", "prints something else"],
)
def test_python_check_computes_with_the_app_s_own_modules(
    locked: World, patchlock: Patchlock, code: str, passed: bool, detail: str
) -> None:
    table = f'\n[[check]]\nid = "own"\nkind = "python"\ncode = {json.dumps(code)}\nprints = "1.0 cpu"\ntimeout = 60\n'
    locked.app.write_text(locked.app.read_text() + table)
    done = patchlock("install", "mini", "--json")
    assert (done.returncode == 0) is passed
    if passed:
        checks = json.loads(done.stdout)["data"]["receipt"]["checks"]
        assert {"id": "own", "level": "computes", "detail": detail} in checks
    else:
        assert json.dumps(detail)[1:-1] in done.stdout
