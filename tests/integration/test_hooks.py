"""`patch hooks`: git's own commands renew the patches, however patchlock was installed, and go on without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from bootstraps import posix
from conftest import ROOT, Patchlock
from test_package import built
from test_update import clone
from test_users_tree import git

__all__ = ["built", "clone"]

Words = list[str]
GIT = ("-c", "user.name=x", "-c", "user.email=x@localhost")


def _options(folder: Path) -> Words:
    return ["--patches", str(folder.parent / "patches.toml"), "--source", str(folder)]


def _bare() -> dict[str, str]:
    """Give the variables of a shell that knows nothing of patchlock."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "GIT_CONFIG_NOSYSTEM": "1"}


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run git as a person does, with the hooks."""
    return subprocess.run(
        ["git", *GIT, "-C", str(folder), *words], env=_bare(), check=False, capture_output=True, text=True
    )


def _publish(clone: Path, name: str) -> None:
    public = clone.parent / "public"
    (public / name).write_text('d = "cuda"\n')
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", name)


@pytest.fixture
def hooked(clone: Path, patchlock: Patchlock) -> Path:
    """Give a patched clone with hooks."""
    assert patchlock("patch", "apply", *_options(clone)).returncode == 0
    done = patchlock("patch", "hooks", *_options(clone))
    assert done.stdout == "written: post-merge, post-checkout, post-rewrite\n", done.stderr
    return clone


def _wheel_in_a_venv(folder: Path, wheel: Path) -> tuple[Words, Path]:
    run = lambda *words: subprocess.run([uv.find_uv_bin(), *words], check=True, capture_output=True)  # noqa: E731
    run("venv", "-q", "--python", sys.executable, str(folder))
    python = str(folder / "bin" / "python")
    run("pip", "sync", "-q", "--require-hashes", "--python", python, str(ROOT / "lockfiles" / "patchlock.txt"))
    run("pip", "install", "-q", "--no-deps", "--offline", "--python", python, str(wheel))
    return [str(folder / "bin" / "patchlock")], folder


def _uv_tool(folder: Path, wheel: Path) -> tuple[Words, Path]:
    env = {**os.environ, "UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    words = [uv.find_uv_bin(), "tool", "install", "-q", "--python", sys.executable, str(wheel)]
    subprocess.run(words, env=env, check=True, capture_output=True)
    return [str(folder / "bin" / "patchlock")], folder / "tools"


def _bootstrap(folder: Path, wheel: Path) -> tuple[Words, Path]:
    folder.mkdir()
    for name in ("installer", "patches", "profiles", "lockfiles", "install.sh"):
        place = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        place(ROOT / name, folder / name)
    return ["env", "PATCHLOCK_MODULE=patchlock", str(folder / "install.sh")], folder


def _module_on_pythonpath(folder: Path, wheel: Path) -> tuple[Words, Path]:
    shutil.copytree(ROOT / "installer", folder / "installer")
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    shutil.copytree(ROOT / "patches", folder / "patches")
    return ["env", f"PYTHONPATH={folder / 'installer'}", sys.executable, "-P", "-m", "patchlock"], folder


WAYS = [_wheel_in_a_venv, _uv_tool, _bootstrap, _module_on_pythonpath]


@posix
@pytest.mark.online
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))
def test_hook_works_after_every_way_of_installing(
    clone: Path, built: Path, tmp_path: Path, way: Callable[[Path, Path], tuple[Words, Path]]
) -> None:
    command, place = way(tmp_path / "it's installed here", built)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (["apply"], ["hooks"]):
        done = subprocess.run(
            [*command, "patch", *words, *_options(clone)], env=env, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    _publish(clone, "new.py")
    pulled = _git(clone, "pull", "-q")
    assert pulled.returncode == 0
    assert (clone / "new.py").read_text() == "d = choose()\n", pulled.stderr

    place.rename(tmp_path / "gone")
    _publish(clone, "newer.py")
    pulled = _git(clone, "pull", "-q")
    assert (pulled.returncode, pulled.stdout) == (0, "")
    (line,) = pulled.stderr.splitlines()
    assert line.startswith("patchlock: the patches were not renewed, as it is not at ")
    assert line.endswith(" any more; run `patchlock patch hooks` there from where it is now")
    assert (clone / "newer.py").read_text() == 'd = "cuda"\n'
    switched = _git(clone, "checkout", "-q", "-b", "other")
    assert (switched.returncode, len(switched.stderr.splitlines())) == (0, 1)


def test_hooks_renew_the_patches_after_a_pull_until_they_are_removed(hooked: Path, patchlock: Patchlock) -> None:
    _publish(hooked, "new.py")
    assert _git(hooked, "pull", "-q").returncode == 0
    assert (hooked / "new.py").read_text() == "d = choose()\n"
    done = patchlock("patch", "hooks", "--remove", "--source", str(hooked))
    assert done.stdout == "removed: post-merge, post-checkout, post-rewrite\n"
    assert [path.name for path in (hooked / ".git" / "hooks").glob("post-*[a-z]") if path.suffix != ".sample"] == []
    assert not (hooked / ".git" / "patchlock" / "hook").exists()
    again = patchlock("patch", "hooks", "--remove", "--source", str(hooked))
    assert again.stdout == "removed: nothing\n"


def test_hook_that_cannot_renew_the_patches_lets_git_go_on(hooked: Path) -> None:
    (hooked.parent / "patches.toml").write_text("x = ")
    _publish(hooked, "new.py")
    done = _git(hooked, "pull", "-q")
    assert done.returncode == 0
    assert "error[catalogue]" in done.stderr
    assert done.stderr.endswith("patchlock: not every patch is renewed; see above\n")
    assert _git(hooked, "checkout", "-q", "-b", "other").returncode == 0


def test_what_is_left_out_stays_so_when_a_hook_renews_the_patches(hooked: Path, patchlock: Patchlock) -> None:
    assert patchlock("patch", "apply", *_options(hooked), "--without", "cpu").returncode == 0
    _publish(hooked, "new.py")
    assert _git(hooked, "pull", "-q").returncode == 0
    assert (hooked / "new.py").read_text() == 'd = "cuda"\n'


def test_each_linked_worktree_has_its_own(hooked: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    assert _git(hooked, "worktree", "add", "-q", "-b", "second", str(linked), "HEAD").returncode == 0
    assert 'device = "cuda"' in (linked / "app.py").read_text()
    for words in (["apply"], ["hooks"]):
        assert patchlock("patch", *words, *_options(hooked)[:2], "--source", str(linked)).returncode == 0
    for folder in (hooked, linked):
        git(folder, "branch", "-q", "--set-upstream-to", "origin/main")
    _publish(hooked, "new.py")
    for folder in (linked, hooked):
        assert _git(folder, "pull", "-q").returncode == 0
        assert (folder / "new.py").read_text() == "d = choose()\n"
    removed = patchlock("patch", "hooks", "--remove", "--source", str(linked))
    assert removed.stdout == "removed: hook\n"
    _publish(hooked, "newer.py")
    for folder in (linked, hooked):
        assert _git(folder, "pull", "-q").returncode == 0
    assert (linked / "newer.py").read_text() == 'd = "cuda"\n'
    assert (hooked / "newer.py").read_text() == "d = choose()\n"


@posix
def test_beside_a_hook_of_somebody_elses_one_line_does_it(clone: Path, patchlock: Patchlock) -> None:
    assert patchlock("patch", "apply", *_options(clone)).returncode == 0
    hook = clone / ".git" / "hooks" / "post-merge"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho mine\n")
    hook.chmod(0o755)
    done = patchlock("patch", "hooks", *_options(clone))
    assert done.returncode == 1
    line = done.stderr.split("`")[1]
    assert done.stderr == (
        f"error[hook-taken]: the clone has its own post-merge hook ({hook}); add this line to post-merge there: `{line}`\n"
    )
    assert hook.read_text() == "#!/bin/sh\necho mine\n"
    hook.write_text(f"{hook.read_text()}{line}\n")
    assert patchlock("patch", "hooks", *_options(clone)).returncode == 0
    _publish(clone, "new.py")
    pulled = _git(clone, "pull", "-q")
    assert (pulled.returncode, "mine" in pulled.stdout + pulled.stderr) == (0, True)
    assert (clone / "new.py").read_text() == "d = choose()\n"
    assert patchlock("patch", "hooks", "--remove", "--source", str(clone)).returncode == 0
    assert hook.read_text() == f"#!/bin/sh\necho mine\n{line}\n"
    _publish(clone, "newer.py")
    assert _git(clone, "pull", "-q").returncode == 0


HUSKY = '#!/usr/bin/env sh\ns="$(dirname "$(dirname "$0")")/$(basename "$0")"\n[ ! -f "$s" ] || sh -e "$s" "$@"\n'
"""What husky 9 puts into .husky/_ for each hook, in short."""


@posix
def test_beside_husky_one_line_that_can_be_committed_does_it(clone: Path, patchlock: Patchlock) -> None:
    assert patchlock("patch", "apply", *_options(clone)).returncode == 0
    git(clone, "config", "core.hooksPath", ".husky/_")
    names = ("post-merge", "post-checkout", "post-rewrite")
    (clone / ".husky" / "_").mkdir(parents=True)
    for name in names:
        file = clone / ".husky" / "_" / name
        file.write_text(HUSKY)
        file.chmod(0o755)
    done = patchlock("patch", "hooks", *_options(clone))
    line = done.stderr.split("`")[1]
    assert done.stderr == (
        "error[hook-taken]: this clone takes its hooks from a folder that is shared or tracked "
        f"({clone}/.husky); add this line to {', '.join(names)} there: `{line}`\n"
    )
    assert str(clone) not in line
    for name in names:
        (clone / ".husky" / name).write_text(f"{line}\n")
    assert patchlock("patch", "hooks", *_options(clone)).returncode == 0
    _publish(clone, "new.py")
    pulled = _git(clone, "pull", "-q")
    assert (pulled.returncode, pulled.stderr.count("error")) == (0, 0)
    assert (clone / "new.py").read_text() == "d = choose()\n"
    shutil.rmtree(clone / ".git" / "patchlock")
    assert _git(clone, "checkout", "-q", "-b", "other").returncode == 0


def test_stash_pull_and_pop_go_through(hooked: Path) -> None:
    with (hooked / "app.py").open("a") as file:
        file.write("mine = 1\n")
    mine = (hooked / "app.py").read_text()
    _publish(hooked, "new.py")
    assert _git(hooked, "stash").returncode == 0
    done = _git(hooked, "pull", "-q")
    assert done.returncode == 0
    told = f"run: patchlock patch apply --source {hooked} --patches {hooked.parent / 'patches.toml'}\n"
    assert f"git is not done yet; when it is, {told}" in done.stderr
    done = _git(hooked, "stash", "pop")
    assert done.returncode == 0, done.stderr
    assert (hooked / "app.py").read_text() == mine
    assert (hooked / "new.py").read_text() == 'd = "cuda"\n'


def test_an_old_stash_stops_no_hook(hooked: Path) -> None:
    for words in (["stash"], ["stash", "apply"], ["commit", "-q", "--all", "-m", "the patches"]):
        assert _git(hooked, *words).returncode == 0
    _publish(hooked, "new.py")
    done = _git(hooked, "pull", "-q", "--no-rebase", "--no-edit")
    assert (done.returncode, "git is not done yet" in done.stderr) == (0, False), done.stderr
    assert (hooked / "new.py").read_text() == "d = choose()\n"


def test_bisect_goes_through(hooked: Path) -> None:
    for name in ("one.py", "two.py", "three.py", "four.py"):
        _publish(hooked, name)
    public = hooked.parent / "public"
    (public / "app.py").write_text((public / "app.py").read_text() + "last = 1\n")
    git(public, "commit", "-q", "-a", "-m", "last")
    git(hooked, "checkout", "-q", "--", ".")
    assert _git(hooked, "-c", "core.hooksPath=/dev/null", "pull", "-q").returncode == 0
    done = _git(hooked, "bisect", "start", "HEAD", "HEAD~5")
    assert done.returncode == 0, done.stderr
    assert "git is not done yet" in done.stderr
    done = _git(hooked, "bisect", "run", "grep", "-q", "first", "app.py")
    assert _git(hooked, "diff", "--quiet", "HEAD").returncode == 0
    assert _git(hooked, "bisect", "reset").returncode == 0
