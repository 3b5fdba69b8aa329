"""What the workflows propose: a branch for each kind, closed when nothing is left of it; git is real, `gh` is a stand-in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from miniature import World

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="the workflows run on Linux"), pytest.mark.slow]
LOCK = Path("lockfiles/mini/tiny.linux-x86_64.txt")
CHANGED, UPGRADED = "relock/changed", "relock/upgraded-mini"
GH = """\
#!/usr/bin/env bash
# Keeps `branch number` for each open pull request in $GH_STATE, with `fork` behind it where it comes from one, and its
# last text beside it; in $GH_STATE.runs the branches that were checked.
set -eu
echo "$*" >>"$GH_STATE.log"
case "$1 $2" in "${GH_FAILS:-}") exit 1 ;; esac
for word; do [ "${last:-}" != --body-file ] || cp -- "$word" "$GH_STATE.text"; last=$word; done
case "$1 $2" in
"pr list")
    case "$*" in *isCrossRepository*select*not*min*) own='$' ;; *) own='.*' ;; esac
    sed -n "s|^$4 \\([0-9]*\\)$own|\\1|p" "$GH_STATE" | sort -n | head -n 1
    ;;
"run list") grep -c "^$8$" "$GH_STATE.runs" || true ;;
"workflow run") git ls-remote origin "refs/heads/$5" | cut -f 1 >>"$GH_STATE.runs" ;;
"pr create") echo "$4 $(($(wc -l <"$GH_STATE") + 7))" >>"$GH_STATE" ;;
"pr close") branch=$(sed -n "s| $3\\$||p" "$GH_STATE"); sed -i "/ $3\\$/d" "$GH_STATE"; git push -q origin --delete "$branch" ;;
esac
"""


class Repository:
    """A checkout with the scripts of CI, its origin, and the stand-in for `gh`."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder, self.state = root, folder, folder / "gh"
        self.made = folder / "made"
        self.env = {**os.environ, "PYTHONPATH": str(ROOT / "installer"), "GH_STATE": str(self.state)}
        self.env |= {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
        self.state.touch()
        self.state.with_name("gh.runs").touch()
        (folder / "bin").mkdir()
        (folder / "bin" / "gh").write_text(GH)
        (folder / "bin" / "gh").chmod(0o755)
        shutil.copytree(ROOT / ".ci", root / ".ci")
        (root / "install.sh").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m patchlock "$@"\n')
        (root / "install.sh").chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.git("init", "-q", "--bare", str(folder / "origin.git"))
        self.git("remote", "add", "origin", str(folder / "origin.git"))
        self.commit()

    def git(self, *words: str) -> str:
        """Run git in the checkout."""
        command = ["git", "-C", str(self.root), "-c", "user.name=a", "-c", "user.email=a@b.test", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self) -> None:
        """Commit what the checkout has, as main."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")
        self.git("push", "-q", "origin", "main")

    def make(self, replace: dict[str, str], *, build: str = "") -> None:
        """Lay down one made lock, as the artifact of its job; the checkout is as its commit again."""
        self.git("checkout", "-q", "--", ".")
        shutil.rmtree(self.made, ignore_errors=True)
        text = (self.root / LOCK).read_text()
        for old, new in replace.items():
            assert old in text
            text = text.replace(old, new)
        path = self.made / f"lock-{'--'.join(LOCK.parts)}" / LOCK.name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        if build:
            path.with_suffix(".build.txt").write_text(build)

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a script of CI."""
        done = [str(self.root / ".ci" / command[0]), *command[1:]]
        return subprocess.run(done, env=self.env | env, capture_output=True, text=True, check=False)

    def propose(self, kind: str, matrix: str = "", **env: str) -> str:
        """Run propose-locks and give what it says."""
        done = self.run("propose-locks", str(self.made), kind, MATRIX=matrix, **env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asked(self) -> list[str]:
        """Give the first words of each call of `gh` since the last time."""
        log = self.state.with_name("gh.log")
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [" ".join(line.split()[: 3 if line.startswith("workflow") else 2]) for line in lines]

    @property
    def text(self) -> str:
        """The text of the proposal that was made last."""
        return self.state.with_name("gh.text").read_text()

    def branches(self) -> dict[str, str]:
        """Give the branches of the origin and their commits."""
        lines = self.git("ls-remote", "--heads", "origin").splitlines()
        return {line.partition("refs/heads/")[2]: line.split()[0] for line in lines}


@pytest.fixture
def repository(locked: World, tmp_path: Path) -> Repository:
    return Repository(locked.catalogue, tmp_path)


def test_difference_becomes_a_proposal_whose_checks_run(repository: Repository) -> None:
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("changed")
    assert repository.asked() == ["pr list", "pr create", "run list", "workflow run ci.yml"]
    assert "| beta | 1.5 → 2.0 | requirements.txt:3 |" in repository.text
    repository.git("fetch", "-q", "origin", CHANGED)
    assert repository.git("diff", "--name-only", "main", "FETCH_HEAD") == LOCK.as_posix()
    assert repository.git("rev-parse", "FETCH_HEAD^") == repository.git("rev-parse", "main")
    assert repository.git("log", "-1", "--format=%an: %s", "FETCH_HEAD") == (
        "github-actions[bot]: lockfiles: make anew what changed"
    )


def test_same_difference_again_is_pushed_and_checked_once(repository: Repository) -> None:
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("changed")
    before = repository.branches()
    repository.make({"beta==1.5": "beta==2.0"})
    repository.asked()
    repository.propose("changed")
    assert (repository.asked(), repository.branches()) == (["pr list", "pr edit", "run list"], before)


def test_pull_request_of_a_fork_is_left_alone(repository: Repository) -> None:
    repository.state.write_text(f"{CHANGED} 3 fork\n")
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("changed")
    assert repository.asked()[:2] == ["pr list", "pr create"]
    repository.make({"beta==1.5": "beta==1.5"})
    repository.propose("changed")
    assert repository.asked() == ["pr list", "pr close"]
    assert repository.state.read_text() == f"{CHANGED} 3 fork\n"


@pytest.mark.parametrize(
    ("failed", "next_run"),
    [
        ("pr create", ["pr list", "pr create", "run list", "workflow run ci.yml"]),
        ("workflow run", ["pr list", "pr edit", "run list", "workflow run ci.yml"]),
    ],
)
def test_proposal_that_was_only_pushed_is_taken_up(repository: Repository, failed: str, next_run: list[str]) -> None:
    repository.make({"beta==1.5": "beta==2.0"})
    done = repository.run("propose-locks", str(repository.made), "changed", MATRIX="", GH_FAILS=failed)
    assert done.returncode != 0
    before = repository.branches()
    assert CHANGED in before
    repository.asked()
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("changed")
    assert (repository.asked(), repository.branches()) == (next_run, before)


def test_push_leaves_the_proposal_of_the_week_alone(repository: Repository) -> None:
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("upgraded")
    week = repository.branches()[UPGRADED]
    repository.make({"beta==1.5": "beta==1.6"})
    repository.propose("changed")
    assert repository.branches().keys() == {"main", CHANGED, UPGRADED}
    assert repository.branches()[UPGRADED] == week
    repository.make({"beta==1.5": "beta==1.5"})
    repository.propose("changed")
    assert repository.branches().keys() == {"main", UPGRADED}


def test_proposal_that_nothing_is_left_of_is_closed(repository: Repository) -> None:
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("changed")
    repository.asked()
    shutil.rmtree(repository.made)
    repository.git("checkout", "-q", "--", ".")
    repository.propose("changed")
    assert repository.asked() == ["pr list", "pr close"]
    assert repository.branches().keys() == {"main"}
    assert repository.propose("changed") == f"{CHANGED}: nothing to propose\n"


def test_proposal_stays_open_while_a_lock_could_not_be_made(repository: Repository) -> None:
    repository.make({"beta==1.5": "beta==2.0"})
    repository.propose("changed")
    repository.make({})
    matrix = json.dumps({"include": [{"app": "mini", "lock": "lockfiles/mini/tiny.macos-arm64.txt"}]})
    said = repository.propose("changed", matrix)
    assert said == f"{CHANGED}: nothing is different, but not all could be made: #7 stays open\n"
    assert CHANGED in repository.branches()
    repository.make({"beta==1.5": "beta==1.6"})
    repository.propose("changed", matrix)
    assert "### Could not be made\n\n- lockfiles/mini/tiny.macos-arm64.txt\n" in repository.text


def test_upgrade_says_what_changed_and_what_was_tried(repository: Repository) -> None:
    repository.make({"beta==1.5": "beta==2.0", "2026-01-01T00:00:00Z": "2026-11-01T00:00:00Z"})
    tried = repository.made / "tried-mini--linux-x86_64" / "tried.txt"
    tried.parent.mkdir()
    tried.write_text("- mini on linux-x86_64, profile cpu, success\n")
    repository.propose("upgraded", GITHUB_RUN_ID="5", GITHUB_SERVER_URL="https://github.test", GITHUB_REPOSITORY="o/n")
    assert "the cut-off: 2026-01-01T00:00:00Z → 2026-11-01T00:00:00Z" in repository.text
    assert (
        "### Installed from these locks, and checked\n\n- mini on linux-x86_64, profile cpu, success\n"
        in repository.text
    )
    assert repository.text.endswith("\nhttps://github.test/o/n/actions/runs/5\n")


def test_upgrade_that_moves_only_the_cut_off_is_none(repository: Repository) -> None:
    repository.make({"2026-01-01T00:00:00Z": "2026-11-01T00:00:00Z"})
    assert repository.propose("upgraded") == f"{UPGRADED}: nothing to propose\n"
    repository.make({"2026-01-01T00:00:00Z": "2026-11-01T00:00:00Z"}, build="what builds the sdists\n")
    repository.propose("upgraded")
    assert UPGRADED in repository.branches()


def test_lock_that_is_reproduced_is_silent_and_another_one_is_an_error(repository: Repository) -> None:
    repository.make({})
    done = repository.run("propose-locks", str(repository.made), "reproduced")
    assert (done.returncode, done.stdout) == (0, "No lock is different.\n")
    repository.make({"beta==1.5": "beta==2.0"})
    done = repository.run("propose-locks", str(repository.made), "reproduced")
    assert done.returncode == 1
    assert "| beta | 1.5 → 2.0 | requirements.txt:3 |" in done.stdout
    assert repository.branches().keys() == {"main"}
    repository.make({})
    matrix = json.dumps({"include": [{"app": "mini", "lock": "lockfiles/mini/tiny.macos-arm64.txt"}]})
    done = repository.run("propose-locks", str(repository.made), "reproduced", MATRIX=matrix)
    assert done.returncode == 1
    assert repository.asked() == []


def test_unknown_kind_is_refused(repository: Repository) -> None:
    done = repository.run("propose-locks", str(repository.made), "other")
    assert (done.returncode, done.stderr) == (2, 'there is no kind "other": changed, reproduced or upgraded\n')


def test_file_that_pins_builds_comes_and_goes_with_its_lock(repository: Repository) -> None:
    beside = repository.root / LOCK.with_suffix(".build.txt")
    repository.make({}, build="what builds the sdists\n")
    assert repository.run("take-locks", str(repository.made)).returncode == 0
    assert beside.read_text() == "what builds the sdists\n"
    repository.make({})
    assert repository.run("take-locks", str(repository.made)).returncode == 0
    assert not beside.exists()


def test_long_text_is_cut_at_a_line(repository: Repository, tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text("".join(f"line {number} é\n" for number in range(9000)))
    (repository.root / LOCK).write_text("other")
    assert repository.run("propose", "a/branch", "title", str(text), "lockfiles").returncode == 0
    lines = repository.text.splitlines()
    assert len(repository.text.encode()) < 61_000
    assert lines[-1] == "… `patchlock lock --diff --since main` on this branch says the rest."
    assert lines[-3].endswith(" é")


# --- recorded indexes -------------------------------------------------------------------------------------------------

INSTALL = """\
#!/bin/sh
echo "$*" >>asked
case "$*" in
"index record bad"*) echo 'error[network]: it does not answer' >&2; exit 1 ;;
"index record good --check") echo 'would change'; exit 1 ;;
"index record good") echo 'written'; echo 'whole' >>profiles/indexes/good.toml ;;
"matrix --changed-since HEAD") echo '{"include": [{"app": "mini", "profile": "tiny", "platform": "linux-x86_64"}]}' ;;
"lock mini --profile tiny --platform linux-x86_64") echo 'locked'; echo '# other' >>lockfiles/mini/tiny.linux-x86_64.txt ;;
*) exit 9 ;;
esac
"""


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq")
def test_indexes_are_recorded_and_proposed_with_the_locks_that_they_make_stale(
    repository: Repository, tmp_path: Path
) -> None:
    folder = repository.root / "profiles" / "indexes"
    folder.mkdir()
    for name in ("bad", "good"):
        (folder / f"{name}.toml").write_text('[index]\nurl = "https://vendor.invalid"\n\n[index.keep]\n')
    (folder / "folder.toml").write_text('[index]\nurl = "https://vendor.invalid"\n')
    (repository.root / "install.sh").write_text(INSTALL)
    repository.commit()
    asked, text = repository.root / "asked", tmp_path / "text.md"
    done = repository.run("record-indexes", "--check")
    assert done.returncode == 0
    assert "### good\n\n```\nwould change\n```\n" in done.stdout
    assert asked.read_text().splitlines() == ["index record bad --check", "index record good --check"]
    asked.unlink()
    assert repository.git("status", "--porcelain", "--", "profiles", "lockfiles") == ""

    assert repository.run("record-indexes", TEXT=str(text)).returncode == 1
    assert asked.read_text().splitlines()[1:] == [
        "index record good",
        "matrix --changed-since HEAD",
        "lock mini --profile tiny --platform linux-x86_64",
    ]
    assert "### bad\n\n```\nerror[network]: it does not answer\n```\n" in text.read_text()
    arguments = ("indexes/recorded", "indexes: record what they have now", str(text), "profiles/indexes", "lockfiles")
    assert repository.run("propose", *arguments, COMPLETE="false").returncode == 0
    repository.git("fetch", "-q", "origin", "indexes/recorded")
    assert repository.git("diff", "--name-only", "main", "FETCH_HEAD").splitlines() == [
        "lockfiles/mini/tiny.linux-x86_64.txt",
        "profiles/indexes/good.toml",
    ]
    assert "### mini × tiny × linux-x86_64\n\n```\nlocked\n```\n" in repository.text
