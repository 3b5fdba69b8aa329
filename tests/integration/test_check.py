"""`check`: what holds is listed, and each thing that does not is named."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World
from sdists import ask, host, made, maker, offer, sdist
from test_users_tree import git


def _problems(patchlock: Patchlock, *arguments: str) -> tuple[int, dict[str, list[str]]]:
    done = patchlock("check", *arguments, "--json")
    findings = json.loads(done.stdout)["data"]["apps"]["mini"]
    return done.returncode, {one["what"]: one["problems"] for one in findings if one["problems"]}


def _warnings(patchlock: Patchlock) -> dict[str, list[str]]:
    findings = json.loads(patchlock("check", "--offline", "--json").stdout)["data"]["apps"]["mini"]
    return {one["what"]: one["warnings"] for one in findings if one["warnings"]}


def test_catalogue_that_holds(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    done = patchlock("check")
    assert done.returncode == 0, done.stdout
    head, sources, *rest = done.stdout.splitlines()
    assert (head, sources.split()) == ("the catalogue", ["sources", "of", "the", "facts", "in", "2", "files"])
    lines = [line.split() for line in rest]
    assert lines[0] == ["mini"]
    own = "0 cases of its own; 0 of 2 patches covered, those of shared sets included"
    assert lines[1] == ["cases", *own.split()]
    assert lines[2][0] == "tiny"
    assert lines[2][3:] == ["patches:", "2,", "files:", "2"]
    assert [line[1] for line in lines[3:]] == ["fresh"] * 4


def test_fact_without_a_source_that_can_be_opened_is_named(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    text = world.profile.read_text()
    world.profile.write_text(text.replace("https://example.com/why", "everybody knows", 1))
    done = patchlock("check", "--json")
    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)["data"]["facts"]["problems"]
    assert problem.startswith('profiles/tiny.toml:3: nobody can open the source "everybody knows"')


def test_missing_lock_and_changed_lock_are_named(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    folder = world.catalogue / "lockfiles" / "mini"
    (folder / "tiny.macos-arm64.txt").unlink()
    cut = folder / "tiny.windows-amd64.txt"
    cut.write_text(cut.read_text().replace("beta==1.5", "beta"))
    line = next(number for number, text in enumerate(cut.read_text().splitlines(), 1) if text.startswith("beta "))
    linux = folder / "tiny.linux-x86_64.txt"
    linux.write_text(linux.read_text().replace("beta==1.5", "beta==1.4"))
    words = ("check", "mini", "--catalogue", str(world.catalogue))
    assert f"to make or renew these locks: patchlock lock {' '.join(words[1:])}\n" in patchlock(*words).stderr
    code, problems = _problems(patchlock)
    assert code == 1
    assert problems == {
        "lockfiles/mini/tiny.linux-x86_64.txt": ["its lines were changed since it was written"],
        "lockfiles/mini/tiny.macos-arm64.txt": [
            "there is no lock yet; where none can be made, a [[refused]] table says why"
        ],
        "lockfiles/mini/tiny.windows-amd64.txt": [
            f"a line must be one distribution with exactly one sha256 (lockfiles/mini/tiny.windows-amd64.txt:{line})"
        ],
    }


def test_patch_that_finds_nothing_is_named(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    app = world.app.read_text()
    world.app.write_text(
        app.replace('literal = ["cuda"]\npattern = \'"cuda"\'', 'literal = ["cudo"]\npattern = \'"cudo"\'')
    )
    code, problems = _problems(patchlock)
    assert code == 1
    (found,) = [clauses for what, clauses in problems.items() if what.startswith("tiny at ")]
    table = app[: app.index('id = "on-the-cpu"')].count("\n")
    assert found == [f"on-the-cpu finds nothing to patch (patches/mini/app.toml:{table})"]
    code, problems = _problems(patchlock, "--offline")
    assert not [what for what in problems if what.startswith("tiny at ")]


def test_advisory_patch_that_does_not_do_what_it_says_is_named(world: World, patchlock: Patchlock) -> None:
    app = world.app.read_text()
    stuck = """
[[patch]]
id = "stuck"
why = "w"
source = "s"
advisory = true
op = "replace-text"
paths = ["app.py"]
old = "import"
new = "IMPORT"
expect = { sites = 99, exact = true }
ensure = [{ check = "contains", text = "IMPORT" }]
"""
    world.app.write_text(app.replace("[[check]]", f"{stuck}\n[[check]]", 1))
    assert patchlock("lock", "mini").returncode == 0
    code, problems = _problems(patchlock)
    assert code == 1
    (found,) = [clauses for what, clauses in problems.items() if what.startswith("tiny at ")]
    assert all(clause.endswith("; the patch is advisory, and was left out") for clause in found)
    assert found[0].startswith("stuck: app.py:")
    done = patchlock("plan", "mini", "--json")
    data = json.loads(done.stdout)["data"]
    assert data["warnings"] == found
    assert done.returncode == 0


def test_commit_that_upstream_does_not_have_is_named(world: World, patchlock: Patchlock) -> None:
    world.app.write_text(re.sub(r'commit = "[0-9a-f]{40}"', f'commit = "{"a" * 40}"', world.app.read_text()))
    code, problems = _problems(patchlock)
    assert code == 1
    assert "tiny at aaaaaaaaaaaa" in problems


def test_upstream_that_cannot_be_reached_is_not_checked_and_not_wrong(world: World, patchlock: Patchlock) -> None:
    world.app.write_text(re.sub(r'commit = "[0-9a-f]{40}"', f'commit = "{"a" * 40}"', world.app.read_text()))
    assert patchlock("lock", "mini").returncode == 1
    wanted = ("check", "mini", "--source", "http://127.0.0.1:9/none.git")
    told = json.loads(patchlock(*wanted, "--json").stdout)
    (one,) = [each for each in told["data"]["apps"]["mini"] if each["not_checked"]]
    assert (one["what"], one["problems"]) == ("tiny at aaaaaaaaaaaa", [])
    assert one["not_checked"].startswith("the upstream of mini could not be fetched")
    assert told["error"]["code"] == "check"  # the locks are missing, too
    text = patchlock(*wanted)
    assert "not checked: 1, as upstream cannot be read; connect, give a complete clone" in text.stderr
    assert "to make or renew" not in text.stderr, "no lock can be made of a commit that is not there"


INCOMPLETE = "the clone of upstream is incomplete: it lacks "
SHALLOW = "the clone of upstream is shallow, and lacks commit "


@pytest.mark.parametrize(
    ("place", "lacks", "says"),
    [
        ("http://127.0.0.1:9/none.git", "main:app.py", "the upstream of mini could not be fetched"),
        ("{}/clone.git", "main:app.py", INCOMPLETE + "the file LOST of the commit"),
        ("file://{}/clone.git", "main:app.py", INCOMPLETE + "a file or folder (LOST) of a commit, which may be an"),
        ("{}/clone.git", "main^{{tree}}", INCOMPLETE + "folders of commit COMMIT"),
        ("file://{}/clone.git", "main^{{tree}}", INCOMPLETE + "a file or folder (LOST) of a commit, which may be an"),
        ("{}/shallow.git", "", SHALLOW),
        ("file://{}/shallow.git", "", SHALLOW),
    ],
    ids=["away", "lacks", "served", "no-tree", "served-no-tree", "shallow", "served-shallow"],
)
def test_only_unreadable_upstream_has_an_exit_code_of_its_own(
    world: World,
    patchlock: Patchlock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    place: str,
    lacks: str,
    says: str,
) -> None:
    assert patchlock("lock", "mini").returncode == 0
    assert patchlock("check", "mini").returncode == 0
    clone = shutil.copytree(tmp_path / "cache" / "upstreams" / "mini.git", tmp_path / "clone.git")
    commit = world.name_commit(tmp_path)
    newer = git(clone, "commit-tree", f"{commit}^{{tree}}", "-p", commit, "-m", "newer").strip()
    git(clone, "update-ref", "refs/heads/main", commit if lacks else newer)
    lost = ""
    if lacks:
        lost = git(clone, "rev-parse", lacks.format()).strip()
        (clone / "objects" / lost[:2] / lost[2:]).unlink()
    else:
        git(clone, "symbolic-ref", "HEAD", "refs/heads/main")
        git(clone, "clone", "--bare", "--depth=1", clone.as_uri(), str(tmp_path / "shallow.git"))
    monkeypatch.setenv("PATCHLOCK_CACHE_DIR", str(tmp_path / "empty"))
    told = patchlock("check", "mini", "--source", place.format(tmp_path), "--json")
    assert (told.returncode, json.loads(told.stdout)["error"]["code"]) == (3, "not-checked")
    (why,) = [one["not_checked"] for one in json.loads(told.stdout)["data"]["apps"]["mini"] if one["not_checked"]]
    assert why.startswith(says.replace("LOST", lost[:12]).replace("COMMIT", commit[:12]))
    assert "\n" not in why or not says.startswith((INCOMPLETE, SHALLOW))


def test_locks_of_other_profiles_than_the_one_whose_patch_fails_can_be_renewed(
    world: World, patchlock: Patchlock
) -> None:
    text = world.profile.read_text()
    (world.catalogue / "profiles" / "other.toml").write_text(text.replace("A machine", "Another machine"))
    assert patchlock("lock", "mini").returncode == 0
    stuck = """
[[patch]]
id = "stuck"
why = "w"
source = "https://example.com/why"
profiles = ["tiny"]
op = "replace-text"
paths = ["requirements.txt"]
old = "needed"
new = "NEEDED"
expect = { sites = 99, exact = true }
ensure = [{ check = "contains", text = "NEEDED" }]
"""
    world.app.write_text(world.app.read_text().replace("[[check]]", f"{stuck}\n[[check]]", 1))
    done = patchlock("check", "mini")
    assert done.returncode == 1
    assert done.stderr.endswith("to make or renew these locks: patchlock lock mini --profile other\n")
    done = patchlock("lock", "mini", "--profile", "tiny", "--json")
    assert json.loads(done.stdout)["error"]["remedy"] == "do as the lines say", "another `lock` would fail the same"
    done = patchlock("lock", "mini", "--profile", "other", "--profile", "other")
    assert (done.returncode, done.stdout.count("written")) == (0, 4)
    done = patchlock("lock", "--check", "mini")
    assert done.stderr.endswith("4 stale\nto renew: patchlock lock mini --profile tiny\n")


def test_case_that_does_not_come_out_is_named(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    case = world.app.parent / "cases" / "on-the-cpu" / "plain"
    for side, text in (("before", 'x = "cuda"\n'), ("after", 'x = "gpu"\n')):
        (case / side).mkdir(parents=True)
        (case / side / "a.py").write_text(text)
    code, problems = _problems(patchlock)
    assert code == 1
    assert [clause.partition(":")[0] for clause in problems["cases"]] == ["on-the-cpu/plain"]


@pytest.mark.parametrize("file", ["patches/mini/app.toml", "profiles/tiny.toml"])
def test_mistake_in_a_file_is_named(world: World, patchlock: Patchlock, file: str) -> None:
    path = world.catalogue / file
    path.write_text(path.read_text() + '\n[[constraint]]\nrequirement = "a"\nwhy = "b"\n')
    done = patchlock("check")
    assert done.returncode == 1
    assert f"{file}:" in done.stderr
    assert 'the key "source" is missing' in done.stderr


def test_rule_of_a_build_that_no_lock_has_is_a_warning(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    offer(world, sdist(tmp_path, "widget", "3.2", made("widget", "3.2")), maker(world.wheels))
    said = 'why = "w"\nsource = "https://example.com/why"\n'

    def states(name: str, version: str) -> str:
        return f'[[metadata]]\nname = "{name}"\nversion = "{version}"\nrequires = []\nbuild = ["maker"]\n{said}'

    visited = states("widget", "3.1")  # `lock` may need it to choose 3.2
    used = f'[[build]]\nnames = ["widget"]\n{said}{states("widget", "3.2")}{visited}'
    ask(world, b"alpha==9.0\nbeta\nwidget\n", tmp_path, used)
    assert patchlock("lock", "mini").returncode == 0
    assert _warnings(patchlock) == {}
    idle = f'[[build]]\nnames = ["nothing"]\nplatforms = ["{host()}"]\n{said}{states("gadget", "3.1")}'
    ask(world, b"alpha==9.0\nbeta\nwidget\n", tmp_path, used + idle)
    assert _warnings(patchlock) == {}  # a lock of today may have a use for them
    assert patchlock("lock", "mini").returncode == 0
    lines = world.app.read_text().splitlines()
    build = next(i for i, line in enumerate(lines, 1) if "nothing" in line) - 1
    metadata = next(i for i, line in enumerate(lines, 1) if '"gadget"' in line) - 1
    told = [
        f"[[build]] of nothing (patches/mini/app.toml:{build}): no lock has it as an sdist; remove it",
        f"[[metadata]] of gadget 3.1 (patches/mini/app.toml:{metadata}): no lock has it; remove it",
    ]
    assert _warnings(patchlock) == {"rules": told}
    done = patchlock("check", "--offline")
    assert (done.returncode, [one for one in told if f"warning: {one}\n" in done.stdout]) == (0, told)
