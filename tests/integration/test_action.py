"""The Action and the hooks, as other repositories use them: the steps of `action.yml` run as a runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from miniature import World
from ruamel.yaml import YAML
from test_upkeep_proposals import GH
from test_users_tree import git

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="the workflows run on Linux"), pytest.mark.slow]


class Runner:
    """Runs the steps of the action in a repository, with the variables that they name and no others of GitHub's."""

    def __init__(self, repository: Path, folder: Path) -> None:
        self.repository, self.folder, self.branch = repository, folder, "main"
        self.exported: dict[str, str] = {}
        self.action = folder / "action"
        shutil.copytree(ROOT / ".ci", self.action / ".ci")
        (self.action / "install.sh").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m patchlock "$@"\n')
        (self.action / "install.sh").chmod(0o755)
        (folder / "bin").mkdir()
        (folder / "bin" / "gh").write_text(GH)
        (folder / "bin" / "gh").chmod(0o755)
        (folder / "gh").touch()
        (folder / "gh.runs").touch()

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run all steps that the inputs ask for; gives the last, or the first that failed."""
        action = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
        given = {name: one["default"] for name, one in action["inputs"].items()} | {"token": "t"} | inputs
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        env = {name: value for name, value in os.environ.items() if name != "PATCHLOCK_CATALOGUE"}
        env |= {"RUNNER_TEMP": str(self.folder / "temp"), "GITHUB_ACTION_PATH": str(self.action)}
        env |= {"GITHUB_ENV": str(self.folder / "env"), "GITHUB_WORKSPACE": str(self.repository)}
        env |= {"GITHUB_PATH": str(self.folder / "path"), "PYTHONPATH": str(ROOT / "installer")}
        env |= {"GITHUB_STEP_SUMMARY": str(self.folder / "summary"), "GH_STATE": str(self.folder / "gh")}
        done = subprocess.CompletedProcess([], 0, "", "")
        for step in action["runs"]["steps"]:
            wanted = re.fullmatch(r"inputs\.run == '(.+)'", step.get("if", f"inputs.run == '{given['run']}'"))
            assert wanted is not None
            if wanted[1] != given["run"]:
                continue
            added = {
                name: re.sub(r"\$\{\{ (.+?) \}\}", lambda found: self._value(found[1], given), value)
                for name, value in step.get("env", {}).items()
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=self.repository,
                env=env | self.exported | added | {"PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                return done
            if (self.folder / "path").exists():
                path = f"{(self.folder / 'path').read_text().splitlines()[-1]}:{path}"
            if (self.folder / "env").exists():
                lines = (self.folder / "env").read_text().splitlines()
                self.exported = {name: value for name, _, value in (line.partition("=") for line in lines)}
        return done

    def _value(self, expression: str, given: dict[str, str]) -> str:
        if expression == "github.workspace":
            return str(self.repository)
        if expression == "github.event.repository.default_branch":
            return self.branch
        return given[expression.removeprefix("inputs.")]


@pytest.fixture
def runner(locked: World, tmp_path: Path) -> Runner:
    """A repository that has nothing but its catalogue, in a folder of it, and an origin."""
    if shutil.which("jq") is None:
        pytest.skip("no jq")
    repository = tmp_path / "repository"
    repository.mkdir()
    shutil.copytree(locked.catalogue, repository / "machines")
    git(repository, "init", "-q", "-b", "main")
    git(repository, "init", "-q", "--bare", str(tmp_path / "origin.git"))
    git(repository, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "one")
    return Runner(repository, tmp_path)


def test_check_is_content_until_a_lock_is_stale(runner: Runner) -> None:
    done = runner.run(catalogue="machines")
    assert done.returncode == 0, done.stdout + done.stderr
    app = runner.repository / "machines" / "patches" / "mini" / "app.toml"
    app.write_text(app.read_text().replace('"==1.0"', '"==1.1"'))
    assert runner.run(catalogue="machines", apps="mini").returncode == 1


@pytest.mark.parametrize("run", ["check", "newest"])
@pytest.mark.parametrize(
    ("apps", "named"),
    [
        ("mini\nother", "other"),
        ("--catalogue", "--catalogue"),
        ("$(touch${IFS}gone)", "$(touch${IFS}gone)"),
        ("`touch\tgone`", "`touch"),
        ("'; touch gone; '", "';"),
        ("../mini", "../mini"),
        ("*", "*"),
    ],
    ids=["lines", "option", "substitution", "backticks", "quotes", "path", "pattern"],
)
def test_hostile_names_of_apps_are_names_of_no_app(
    runner: Runner, tmp_path: Path, run: str, apps: str, named: str
) -> None:
    done = runner.run(catalogue="machines", run=run, apps=apps)
    assert done.returncode != 0
    assert f'there is no app "{named}"' in done.stderr
    assert not list(tmp_path.rglob("gone*"))


def test_steps_of_the_workflows_own_find_the_catalogue(runner: Runner) -> None:
    assert runner.run(catalogue="machines", run="set-up").returncode == 0
    assert runner.exported["PATCHLOCK_CATALOGUE"] == str(runner.repository / "machines")
    assert runner.exported["PATCHLOCK_TRUSTED_CATALOGUES"] == str(runner.repository)


@pytest.mark.parametrize("hook", ["patchlock-locks", "patchlock-check"])
def test_hooks_run_wherever_the_catalogue_is(hook: str) -> None:
    listed = YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (files,) = [one["files"] for one in listed if one["id"] == hook]
    for path in ("patches/mini/app.toml", "machines/lockfiles/mini/cpu.txt", "a/b/profiles/cpu.toml"):
        assert re.search(files, path), path
    assert not re.search(files, "docs/my-patches/x.md")


def test_empty_repository_is_told_what_is_missing(runner: Runner) -> None:
    done = runner.run(catalogue=".")
    assert done.returncode == 2
    assert "it needs profiles/ and patches/" in done.stderr
    assert str(runner.repository) in done.stderr


def _public(runner: Runner, world: World, tmp_path: Path, text: str) -> str:
    """Let the app's upstream be a repository that has gone on; gives its newest commit."""
    public = tmp_path / "public"
    shutil.copytree(world.upstream, public)
    git(public, "init", "-q", "-b", "main")
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", "one")
    old = git(public, "rev-parse", "HEAD").strip()
    address = "https://github.com/example/public.git"
    git(public, "config", "--global", f"url.{public.as_uri()}.insteadOf", address)
    app = runner.repository / "machines" / "patches" / "mini" / "app.toml"
    toml = re.sub(
        r"\[upstream\]\n(?:\w+ = .*\n)+",
        f"[upstream]\nurl    = '{address}'\nbranch = \"main\"\ncommit = '{old}'\n",
        app.read_text(),
    )
    app.write_text(toml)
    git(runner.repository, "commit", "-q", "-a", "-m", "a public upstream")
    file = public / "app.py"
    file.write_text(text or file.read_text() + "# newer\n")
    git(public, "commit", "-q", "-a", "-m", "two")
    return git(public, "rev-parse", "HEAD").strip()


def test_newest_commit_on_which_all_holds_is_proposed(runner: Runner, locked: World, tmp_path: Path) -> None:
    new = _public(runner, locked, tmp_path, "")
    runner.branch = "master"
    done = runner.run(run="newest", catalogue="machines")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--base master " in (tmp_path / "gh.log").read_text()
    git(runner.repository, "fetch", "-q", "origin", "upstream/mini")
    shown = git(runner.repository, "show", "FETCH_HEAD:machines/patches/mini/app.toml")
    assert f"commit = '{new}'" in shown
    changed = git(runner.repository, "diff", "--name-only", "HEAD", "FETCH_HEAD").split()
    assert any(name.startswith("machines/lockfiles/mini/") for name in changed)
    assert git(runner.repository, "status", "--porcelain") == ""


def test_newest_commit_on_which_a_patch_fails_is_told(runner: Runner, locked: World, tmp_path: Path) -> None:
    _public(runner, locked, tmp_path, "print('nothing is left of it')\n")
    done = runner.run(run="newest", catalogue="machines")
    assert done.returncode == 1
    assert "patchlock check mini" in (tmp_path / "summary").read_text()
    assert git(runner.repository, "ls-remote", "origin", "refs/heads/upstream/mini") == ""
    assert git(runner.repository, "status", "--porcelain") == ""


def test_file_that_cannot_be_read_fails_the_run(runner: Runner) -> None:
    (runner.repository / "machines" / "patches" / "mini" / "app.toml").write_text("[upstream\n")
    done = runner.run(catalogue="machines", run="newest")
    assert done.returncode == 1
    assert "patches/mini/app.toml cannot be read" in done.stderr


def test_newest_without_any_app_fails_and_says_how_to_begin(runner: Runner) -> None:
    shutil.rmtree(runner.repository / "machines" / "patches" / "mini")
    done = runner.run(catalogue="machines", run="newest")
    assert done.returncode == 1
    assert "there is no app in " in done.stderr
    assert "add one with patchlock new-app" in done.stderr


def test_an_upstream_that_cannot_be_reached_is_not_told_as_one_without_the_branch(runner: Runner) -> None:
    app = runner.repository / "machines" / "patches" / "mini" / "app.toml"
    url = f"{runner.folder}/nowhere"
    lines = f'[upstream]\nurl = "{url}"\nbranch = "main"\ncommit = "{"0" * 40}"\n'
    app.write_text(re.sub(r"\[upstream\]\n(?:\w+ = .*\n)+", lines, app.read_text()))
    done = runner.run(catalogue="machines", run="newest")
    assert done.returncode == 1
    assert f"mini: {url} cannot be reached" in done.stderr
