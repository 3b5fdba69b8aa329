"""What is the user's: his edits, files, commits and settings survive, and what he broke is noticed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, lock_here

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@localhost")


def git(folder: Path, *words: str) -> str:
    """Run git as the user."""
    done = subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def installed(locked: World, patchlock: Patchlock) -> Path:
    """Install the app, and give its folder."""
    done = patchlock("install", "mini", "--json")
    assert done.returncode == 0, done.stdout
    return Path(json.loads(done.stdout)["data"]["folder"])


def test_attributes_of_upstream_and_user_do_not_change_its_bytes(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    (locked.upstream / ".gitattributes").write_text("*.py text eol=crlf\n*.md ident\n")
    (locked.upstream / "README.md").write_text("$Id$\n")
    (tmp_path / "attributes").write_text("* text=auto eol=crlf\n")
    (tmp_path / "home" / ".gitconfig").write_text(
        f"[core]\n\tattributesFile = {tmp_path / 'attributes'}\n\tautocrlf = true\n"
    )
    locked.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    source = tmp_path / "installed" / "mini@tiny" / "source"
    assert b"\r" not in (source / "app.py").read_bytes()
    assert (source / "README.md").read_bytes() == b"$Id$\n"
    assert git(source, "diff", "refs/patchlock/applied") == ""


def test_deleted_patched_file_comes_back(installed: Path, patchlock: Patchlock) -> None:
    (installed / "source" / "app.py").unlink()
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_reinstall_brings_every_missing_file_back(installed: Path, patchlock: Patchlock) -> None:
    (installed / "source" / "README.md").unlink()
    assert patchlock("install", "mini").returncode == 0
    assert not (installed / "source" / "README.md").exists()
    assert patchlock("install", "mini", "--reinstall").returncode == 0
    assert (installed / "source" / "README.md").exists()


def test_broken_edit_is_not_called_verified(installed: Path, patchlock: Patchlock) -> None:
    app = installed / "source" / "app.py"
    app.write_text(app.read_text() + "\nthis is not Python\n")
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "error[verify]: " in done.stderr
    assert app.read_text().endswith("this is not Python\n")


def test_edit_is_verified_once_and_then_there_is_nothing_to_do(installed: Path, patchlock: Patchlock) -> None:
    app = installed / "source" / "app.py"
    app.write_text(app.read_text() + "\n# mine\n")
    assert "mini is installed on" in patchlock("install", "mini").stdout
    assert "nothing to do" in patchlock("install", "mini").stdout
    assert app.read_text().endswith("# mine\n")


@pytest.mark.parametrize("kind", ["branch", "stash"])
def test_uninstall_keeps_commits(installed: Path, patchlock: Patchlock, kind: str) -> None:
    source = installed / "source"
    if kind == "branch":
        git(source, "stash", "-q")
        git(source, "checkout", "-q", "-b", "mine")
        git(source, "commit", "-q", "--allow-empty", "-m", "my work")
        git(source, "checkout", "-q", "main")
        git(source, "stash", "pop", "-q")
    else:
        (source / "README.md").write_text("my work\n")
        git(source, "stash", "push", "-q", "-m", "my work", "README.md")
    done = patchlock("uninstall", "mini")
    assert done.returncode == 0
    assert "my work" in done.stdout
    assert (source / ".git").is_dir()
    assert patchlock("uninstall", "mini", "--purge", "--yes").returncode == 0
    assert not installed.exists()


def test_uninstall_keeps_an_edit_beside_a_patched_line(installed: Path, patchlock: Patchlock) -> None:
    app = installed / "source" / "app.py"
    lines = app.read_text().splitlines(keepends=True)
    patched = next(number for number, line in enumerate(lines) if '"cpu"' in line)
    mine = "".join([*lines[:patched], "# mine\n", *lines[patched:]])
    app.write_text(mine)
    assert patchlock("uninstall", "mini").returncode == 0
    assert app.read_text() == mine


def test_killed_while_verifying_an_update_the_old_generation_runs(
    installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    app = locked.upstream / "app.py"
    app.write_text(app.read_text().replace("import alpha", f"import alpha, time; time.sleep(30)  # {tmp_path}"))
    locked.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    running = subprocess.Popen(
        [*patchlock.command, "install", "mini"],
        env=patchlock.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while "time.sleep" not in (installed / "source" / "app.py").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    done = patchlock("run", "mini")
    assert (done.returncode, done.stdout) == (0, "computed on cpu\n"), done.stderr
    assert "an install was cut off; finishing or undoing it" in done.stderr
    assert patchlock("verify", "mini").returncode == 0


def test_one_source_never_answers_for_another(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("plan", "mini").returncode == 0
    cached = tmp_path / "cache" / "upstreams" / "mini.git"
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, branch in ((first, "topic"), (second, "topic/one")):
        subprocess.run(["git", "init", "-q", "-b", branch, str(folder)], check=True)
        git(folder, "pull", "-q", str(cached), "refs/remotes/origin/main")
    assert patchlock("patch", "status", "mini", "--source", str(first), "--commit", "topic").returncode == 0
    done = patchlock("patch", "status", "mini", "--source", str(second), "--commit", "topic")
    assert done.returncode == 1
    assert "commit topic of mini is not in that upstream" in done.stderr
    assert patchlock("patch", "status", "mini", "--source", str(second), "--commit", "topic/one").returncode == 0


def test_shallow_clone_as_source(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("plan", "mini").returncode == 0
    deep, shallow = tmp_path / "deep", tmp_path / "shallow"
    subprocess.run(["git", "init", "-q", "-b", "main", str(deep)], check=True)
    git(deep, "commit", "-q", "--allow-empty", "-m", "before")
    cached = tmp_path / "cache" / "upstreams" / "mini.git"
    git(deep, "pull", "-q", "--no-rebase", "--allow-unrelated-histories", str(cached), "refs/remotes/origin/main")
    subprocess.run(["git", "clone", "-q", "--depth", "1", deep.as_uri(), str(shallow)], check=True)
    done = patchlock("install", "mini", "--source", str(shallow), "--commit", "HEAD")
    assert done.returncode == 0, done.stderr
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_patch_status_after_a_rollback(installed: Path, locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    app = locked.upstream / "app.py"
    app.write_text(app.read_text() + "# second\n")
    locked.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    assert patchlock("install", "mini").returncode == 0
    assert patchlock("rollback", "mini").returncode == 0
    assert "drifted" not in patchlock("patch", "status", "mini").stdout


def test_patch_status_tells_an_edit_elsewhere_from_one_of_the_patched_place(
    installed: Path, patchlock: Patchlock
) -> None:
    app = installed / "source" / "app.py"
    patched = app.read_text()
    app.write_text(f"{patched}# mine\n")
    said = patchlock("patch", "status", "mini").stdout
    assert "  already ours" in said
    assert "(with your edits)" in said
    assert "drifted" not in said
    app.write_text(patched.replace('"cpu"', '"cuda"') + "# mine\n")
    assert "drifted by the user  app.py" in patchlock("patch", "status", "mini").stdout


def test_source_that_lacks_files_is_told_as_that(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    public = tmp_path / "public"
    shutil.copytree(locked.upstream, public)
    (public / "data.bin").write_bytes(b"large")
    git(public, "init", "-q", "-b", "main")
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", "one")
    gone = git(public, "rev-parse", "HEAD:data.bin").strip()
    (public / ".git" / "objects" / gone[:2] / gone[2:]).unlink()
    words = ("mini", "--source", str(public), "--commit", "main")
    done = patchlock("install", *words)
    assert done.returncode == 1
    assert f"the clone that upstream comes from lacks some of upstream's files ({public / '.git'})" in done.stderr
    assert "complete it with `git fetch --refetch` there, or leave --source out" in done.stderr
    assert "environment" not in done.stderr  # nothing was built before
    assert done.stderr[done.stderr.index("error") :] in patchlock("plan", *words).stderr


def _packed(objects: Path) -> None:
    git(objects.parent, "repack", "-adq")
    assert list((objects / "pack").glob("*.idx"))


def _elsewhere(objects: Path) -> None:
    """Let the objects be read from another repository, as those of a clone that lacks some are."""
    other = objects.parent.parent / "other.objects"
    objects.rename(other)
    (objects / "info").mkdir(parents=True)
    (objects / "info" / "alternates").write_text(f"{other}\n")


@pytest.mark.parametrize("change", [lambda _: None, _packed, _elsewhere], ids=["loose", "packed", "elsewhere"])
def test_new_clone_is_whole_without_our_cache(
    installed: Path, patchlock: Patchlock, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    source = installed / "source"
    wanted = git(source, "rev-parse", "refs/patchlock/applied", "HEAD")
    shutil.rmtree(installed)
    (cache,) = (tmp_path / "cache" / "upstreams").glob("*.git")
    change(cache / "objects")
    assert patchlock("install", "mini").returncode == 0
    shutil.rmtree(cache.parent)
    git(source, "fsck", "--full", "--strict")
    assert git(source, "rev-parse", "refs/patchlock/applied", "HEAD") == wanted
    assert (
        git(source, "for-each-ref", "--format=%(refname)").split()
        == git(source, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/patchlock").split()
    )
    assert git(source, "status", "--porcelain", "--untracked-files=no") != ""
