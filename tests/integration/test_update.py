"""`update` of an installed app, and `patch apply` and `undo` on a clone of the user's, as a person runs them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, lock_here
from test_users_tree import git

PATCHES = """
[[patch]]
id = "cpu"
why = "w"
source = "s"
op = "replace-expression"
paths = ["**/*.py"]
literal = ["cuda"]
pattern = '"cuda"'
replacement = "choose()"
[[patch.ensure]]
check = "no-string"
value = "cuda"
"""

FORM = (
    """literal = ["cuda"]
pattern = '"cuda"'
replacement = "choose()"
[[patch.ensure]]
check = "no-string"
value = "cuda"
""",
    """call = "get($*arguments)"
argument = "device"
value = '"cpu"'
[[patch.ensure]]
check = "no-string"
value = "cuda"
""",
)

BETA = """
[[patch]]
id = "beta-below-nine"
why = "w"
source = "s"
op = "set-requirement"
paths = ["requirements.txt"]
name = "beta"
specifier = ">=1,<9"
[[patch.ensure]]
check = "requirement"
name = "beta"
specifier = ">=1,<9"
"""


@pytest.fixture
def upstream(locked: World, tmp_path: Path) -> Path:
    """Make a public repository of the miniature upstream."""
    folder = tmp_path / "public"
    subprocess.run(["cp", "-r", str(locked.upstream), str(folder)], check=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


@pytest.fixture
def installed(locked: World, patchlock: Patchlock) -> Path:
    done = patchlock("install", "mini", "--json")
    assert done.returncode == 0, done.stdout
    return Path(json.loads(done.stdout)["data"]["folder"])


def change(folder: Path, old: str, new: str) -> None:
    app = folder / "app.py"
    assert old in app.read_text()
    app.write_text(app.read_text().replace(old, new))
    git(folder, "commit", "-q", "-a", "-m", "change")


def test_update_brings_upstream_and_keeps_edits(installed: Path, upstream: Path, patchlock: Patchlock) -> None:
    source = installed / "source"
    (source / "app.py").write_text((source / "app.py").read_text() + "# mine\n")
    change(upstream, '"""An app."""', '"""A newer app."""')
    done = patchlock("update", "mini", "--source", str(upstream))
    assert done.returncode == 0, done.stderr
    text = (source / "app.py").read_text()
    assert text.startswith('"""A newer app."""')
    assert text.endswith("# mine\n")
    head = git(upstream, "rev-parse", "HEAD")
    assert git(source, "rev-parse", "HEAD") == head
    assert patchlock("run", "mini").stdout == "computed on cpu\n"
    assert f"mini at commit {head[:12]} on tiny" in patchlock("patch", "status", "mini").stdout


def test_update_with_nothing_newer_says_so(
    locked: World, installed: Path, upstream: Path, patchlock: Patchlock
) -> None:
    words = ("update", "mini", "--source", str(upstream))
    change(upstream, '"""An app."""', '"""A newer app."""')
    assert patchlock("status").stdout.startswith("mini on tiny  up to date with the catalogue\n")
    pinned = re.search('commit = "(.{12})', (locked.catalogue / "patches/mini/app.toml").read_text())
    assert pinned is not None
    assert "mini is installed" in patchlock(*words).stdout
    assert patchlock("status").stdout.startswith(
        f"mini on tiny  at another commit than the catalogue, which has {pinned[1]}; "
        "get that with: patchlock install mini --profile tiny\n"
    )
    assert "nothing newer" in patchlock(*words, "--commit", git(upstream, "rev-parse", "HEAD").strip()).stdout
    receipt = installed / "environments" / (installed / "current").read_text().strip() / "receipt.toml"
    receipt.write_text(re.sub('made = ".*"', 'made = "2026-01-01T00:00:00Z"', receipt.read_text()))
    done = patchlock(*words)
    assert (done.returncode, done.stdout) == (0, "mini is up to date on tiny: nothing newer was found\n"), done.stderr
    told = json.loads(patchlock(*words, "--json").stdout)["data"]["receipt"]
    assert (told["app"], told["made"]) == ("mini", "2026-01-01T00:00:00Z")


def test_rollback_goes_to_what_was_in_use_before_also_where_that_was_made_later(
    installed: Path, upstream: Path, patchlock: Patchlock
) -> None:
    first = (installed / "current").read_text()
    change(upstream, '"""An app."""', '"""A newer app."""')
    head = git(upstream, "rev-parse", "HEAD").strip()
    assert patchlock("update", "mini", "--source", str(upstream)).returncode == 0
    second = (installed / "current").read_text()
    done = patchlock("install", "mini")
    assert (installed / "current").read_text() == first, done.stderr
    assert "undo      patchlock rollback mini" in done.stdout
    done = patchlock("rollback", "mini")
    assert (installed / "current").read_text() == second, done.stderr
    patchlock("install", "mini")
    assert patchlock("update", "mini", "--source", str(upstream)).returncode == 0
    done = patchlock("rollback", "mini")
    _, _, forward = done.stdout.rstrip().rpartition("forward again: patchlock ")
    assert forward == f"update mini --profile tiny --source {upstream} --commit {head[:12]}"
    assert patchlock(*forward.split()).returncode == 0
    assert (installed / "current").read_text() == second


def test_update_to_a_branch_at_the_catalogues_commit_has_nothing_to_do(
    installed: Path, patchlock: Patchlock, tmp_path: Path
) -> None:
    git(tmp_path, "clone", "-q", str(installed / "source"), "public")
    git(tmp_path / "public", "checkout", "-q", "-B", "main")
    done = patchlock("update", "mini", "--source", str(tmp_path / "public"))
    assert done.stdout == "mini is up to date on tiny: nothing newer was found\n", done.stderr
    assert len(list((installed / "environments").iterdir())) == 1


def test_update_that_meets_edits_can_be_finished_or_aborted(
    installed: Path, upstream: Path, patchlock: Patchlock
) -> None:
    source = installed / "source"
    mine = (source / "app.py").read_text().replace('"""An app."""', '"""My app."""')
    (source / "app.py").write_text(mine)
    pointer = (installed / "current").read_text()
    change(upstream, '"""An app."""', '"""A newer app."""')
    done = patchlock("update", "mini", "--source", str(upstream))
    assert done.returncode == 1
    assert "your edits conflict with ours in app.py: both versions are there, between conflict markers" in done.stderr
    assert "<<<<<<< patchlock/yours" in (source / "app.py").read_text()
    assert (installed / "current").read_text() == pointer
    again = patchlock("update", "mini", "--source", str(upstream))
    assert "choose between the two sides in each, and run `patchlock update mini" in again.stderr
    assert "; or go back with `patchlock update mini --abort" in again.stderr
    for command in ("run", "verify"):
        refused = patchlock(command, "mini")
        assert refused.returncode == 1
        assert "waits for its conflicts to be resolved" in refused.stderr, command
    assert patchlock("update", "mini", "--abort").stdout == "1 file is as it was\n"
    assert (source / "app.py").read_text() == mine
    assert patchlock("run", "mini").stdout == "computed on cpu\n"

    assert patchlock("update", "mini", "--source", str(upstream)).returncode == 1
    (source / "app.py").write_text(mine.replace("My app", "Our app"))
    done = patchlock("update", "mini", "--source", str(upstream))
    assert done.returncode == 0, done.stderr
    assert (source / "app.py").read_text() == mine.replace("My app", "Our app")
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_install_says_which_edit_a_newer_patch_has_replaced(
    locked: World, installed: Path, patchlock: Patchlock
) -> None:
    needed = installed / "source" / "requirements.txt"
    needed.write_bytes(needed.read_bytes().replace(b"beta>=1", b"beta>=0.5"))
    locked.app.write_text(locked.app.read_text() + BETA)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini", "--profile", "tiny")
    assert done.returncode == 0, done.stderr
    assert "a patch replaced your edit at requirements.txt:3 (beta>=0.5): beta-below-nine" in done.stderr
    (shown,) = re.findall(r"`(git .*)` prints your version", done.stderr)
    assert b"beta>=0.5" in subprocess.run(shlex.split(shown), check=True, capture_output=True).stdout


def test_pull_by_hand_is_repaired_by_update(installed: Path, upstream: Path, patchlock: Patchlock) -> None:
    source = installed / "source"
    change(upstream, '"""An app."""', '"""A newer app."""')
    git(source, "stash", "-q")
    git(source, "fetch", "-q", str(upstream), "main")
    git(source, "reset", "-q", "--hard", "FETCH_HEAD")
    done = patchlock("update", "mini", "--source", str(upstream))
    assert done.returncode == 0, done.stderr
    assert (source / "app.py").read_text().startswith('"""A newer app."""')
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_update_leaves_a_conflict_of_gits_alone(installed: Path, upstream: Path, patchlock: Patchlock) -> None:
    source = installed / "source"
    assert patchlock("update", "mini", "--source", str(upstream)).returncode == 0
    (source / "README.md").write_text("# mine\n")
    (upstream / "README.md").write_text("# theirs\n")
    git(upstream, "commit", "-q", "-a", "-m", "two")
    git(source, "stash", "-q")
    git(source, "fetch", "-q", str(upstream), "main")
    git(source, "reset", "-q", "--hard", "FETCH_HEAD")
    subprocess.run(["git", "-C", str(source), "stash", "pop", "-q"], check=False, capture_output=True)
    rows = git(source, "ls-files", "--unmerged")
    assert "README.md" in rows
    for words in (["update", "mini", "--source", str(upstream)], ["update", "mini", "--abort"]):
        done = patchlock(*words)
        assert done.returncode == 1
        assert "error[git-first]: git's own conflict stands in README.md, so nothing was changed" in done.stderr
        assert git(source, "ls-files", "--unmerged") == rows
    (source / "README.md").write_text("# both\n")
    git(source, "add", "README.md")
    done = patchlock("update", "mini", "--source", str(upstream))
    assert done.returncode == 0, done.stderr
    assert (source / "README.md").read_text() == "# both\n"
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_links_come_and_go_with_upstreams_commits(locked: World, upstream: Path, patchlock: Patchlock) -> None:
    (upstream / "latest").symlink_to("app.py")
    git(upstream, "add", "latest")
    git(upstream, "commit", "-q", "-m", "two")
    done = patchlock("install", "mini", "--source", str(upstream), "--commit", "main", "--json")
    assert done.returncode == 0, done.stdout
    source = Path(json.loads(done.stdout)["data"]["folder"]) / "source"
    assert (source / "latest").readlink() == Path("app.py")
    git(source, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    (source / "app.py").write_text((source / "app.py").read_text() + "# mine\n")
    (upstream / "latest").unlink()
    (upstream / "latest").symlink_to("README.md")
    change(upstream, '"""An app."""', '"""A newer app."""')
    done = patchlock("update", "mini", "--source", str(upstream))
    assert done.returncode == 0, done.stderr
    assert git(source, "diff", "--cached") == ""
    assert (source / "latest").readlink() == Path("README.md")
    text = (source / "app.py").read_text()
    assert text.startswith('"""A newer app."""')
    assert text.endswith("# mine\n")
    assert patchlock("run", "mini").stdout == "computed on cpu\n"
    done = patchlock("rollback", "mini")
    assert done.returncode == 0, done.stderr
    assert git(source, "diff", "--cached") == ""
    assert (source / "latest").readlink() == Path("app.py")
    assert patchlock("run", "mini").stdout == "computed on cpu\n"


def test_update_of_what_is_not_installed(locked: World, patchlock: Patchlock) -> None:
    done = patchlock("update", "mini")
    assert done.returncode == 1
    assert "error[not-installed]" in done.stderr


@pytest.fixture
def clone(tmp_path: Path, patchlock: Patchlock) -> Path:
    """Give a clone of the user's, and a file of patches beside it."""
    public = tmp_path / "public"
    public.mkdir()
    git(public, "init", "-q", "-b", "main")
    (public / "app.py").write_text('first = 1\n\n\ndevice = "cuda"\n')
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", "one")
    git(tmp_path, "clone", "-q", str(public), "clone")
    (tmp_path / "patches.toml").write_text(PATCHES)
    return tmp_path / "clone"


def test_other_layout_of_what_the_patches_write_is_called_no_edit(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    file = clone / "app.py"
    for old, new, told in (
        ("first = 1\n", "first  =  1 \n", "app.py has what the patches write with other white space, which is kept"),
        ("first  =  1 \n", "first = 2\n", "your edits are kept in app.py"),
    ):
        file.write_text(file.read_text().replace(old, new))
        assert patchlock("patch", "apply", *options).stdout.endswith(f"no file had to be changed; {told}\n")


def test_edits_that_are_the_patches_already_are_not_written(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    patched = (clone / "app.py").read_text()
    assert patchlock("patch", "undo", "--source", str(clone)).returncode == 0
    (clone / "app.py").write_text(patched)
    assert patchlock("patch", "apply", *options).stdout.endswith(
        "app.py:4\nno file had to be changed; your edits are kept in app.py\n"
    )
    assert (clone / "app.py").read_text() == patched


def test_apply_status_diff_and_undo_in_a_clone(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    done = patchlock("patch", "apply", *options)
    assert done.returncode == 0, done.stderr
    assert "cpu  applied  app.py:4\n1 file written: app.py\n" in done.stdout
    assert patchlock("patch", "apply", *options).stdout.endswith("has the patches already: nothing to do\n")
    assert "cpu  already ours  app.py:4" in patchlock("patch", "status", *options).stdout
    assert '-device = "cuda"\n+device = choose()\n' in patchlock("patch", "diff", *options).stdout
    undone = patchlock("patch", "undo", "--source", str(clone))
    assert undone.stdout == f"the patches are taken out of 1 file of {clone}\n"
    again = patchlock("patch", "undo", "--source", str(clone), "--json")
    assert json.loads(again.stdout)["error"]["code"] == "not-patched"


def test_undo_says_that_a_commit_still_has_the_patches(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    git(clone, "commit", "-q", "-a", "-m", "my work")
    done = patchlock("patch", "undo", "--source", str(clone))
    told = "your last commit still has patches: commit what has changed to take them out there too\n"
    assert done.stdout == f"the patches are taken out of 1 file of {clone}\n{told}"
    git(clone, "reset", "-q", "--hard", "@{upstream}")
    assert patchlock("patch", "apply", *options).returncode == 0
    assert "still has" not in patchlock("patch", "undo", "--source", str(clone)).stdout


def test_undo_says_that_the_index_still_has_patches(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text().replace("first = 1", "first = 'mine'"))
    git(clone, "add", "-A")
    done = patchlock("patch", "undo", "--source", str(clone))
    add = f"git -C {clone} add -A -- app.py"
    assert f"what you have staged still has patches: `{add}` stages your files without them\n" in done.stdout
    git(clone, "add", "-A", "--", "app.py")
    assert "choose()" not in git(clone, "diff", "--cached")


def test_status_says_that_an_undo_waits_though_its_markers_are_committed(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text().replace("choose()", "choose('mine')"))
    assert patchlock("patch", "undo", "--source", str(clone)).returncode == 1
    git(clone, "commit", "-q", "-a", "-m", "too early")
    shown = patchlock("patch", "status", "--source", str(clone))
    assert "an undo waits for your choice in app.py:" in shown.stderr


def test_conflict_in_a_clone_ends_with_1_and_a_way_back(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text().replace("first = 1", "first = 'mine'"))
    change(clone.parent / "public", "first = 1", "first = 'theirs'")
    done = patchlock("patch", "update", *options)
    assert done.returncode == 1
    assert (
        "your edits conflict with what upstream has changed in app.py: both versions are there, between conflict markers."
        in done.stderr
    )
    assert "cpu  waits for the conflict in app.py\n" in done.stdout
    told = f"conflicts wait for you in app.py:1,5: choose, then `patchlock patch apply --source {clone}`"
    shown = patchlock("patch", "status", *options)
    assert (shown.returncode, told in shown.stdout.splitlines()) == (1, True)
    diff = patchlock("patch", "diff", *options)
    assert (diff.returncode, "conflicts wait for you in app.py:1,5" in diff.stderr) == (1, True)
    assert not json.loads(patchlock("patch", "status", *options, "--json").stdout)["ok"]
    assert patchlock("patch", "apply", "--abort", "--source", str(clone)).returncode == 0
    assert (clone / "app.py").read_text() == "first = 'mine'\n\n\ndevice = choose()\n"


def test_conflict_markers_that_are_committed_end_every_command_with_1(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text().replace("first = 1", "first = 'mine'"))
    change(clone.parent / "public", "first = 1", "first = 'theirs'")
    assert patchlock("patch", "update", *options).returncode == 1
    git(clone, "commit", "-q", "-a", "-m", "too early")
    what = "patchlock's conflict markers stand in app.py:1,5"
    for command in ("apply", "status", "diff"):
        done = patchlock("patch", command, *options)
        assert (done.returncode, what in done.stdout + done.stderr) == (1, True), done
        said = json.loads(patchlock("patch", command, *options, "--json").stdout)
        assert (said["ok"], said["error"]["what"]) == (False, what)


def test_own_patch_that_finds_nothing_any_more_is_warned_of(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    done = patchlock("patch", "update", "--source", str(clone))
    head = git(clone, "rev-parse", "HEAD")[:12]
    asked = f"origin/main, which it follows, has nothing newer than commit {head}"
    told = f"has the patches already, and {asked}: nothing to do\n"
    assert done.stdout == f"{clone} {told}", done.stderr
    change(clone.parent / "public", 'device = "cuda"', "device = best()")
    done = patchlock("patch", "update", "--source", str(clone))
    assert "cpu  finds nothing\n" in done.stdout
    told = "cpu: it finds neither what it changes nor what it writes in **/*.py"
    file = clone.parent / "patches.toml"
    what = "cpu: your files do not have what it writes"
    way_on = (
        f"write it into the files, or correct the patch in {file}; if you want it no more, remove it there, "
        "or leave it out of this folder with `--without cpu`"
    )
    assert (done.returncode, done.stderr) == (1, f"warning: {told}\n{what}: {way_on}\n")
    again = patchlock("patch", "apply", *options, "--json")
    assert again.returncode == 1, "a hook that is run again does not pass"
    error = json.loads(again.stdout)["error"]
    assert (error["code"], error["remedy"]) == ("patch", way_on)
    assert patchlock("patch", "apply", *options, "--without", "cpu").returncode == 0
    assert patchlock("patch", "apply", *options, "--with", "cpu").returncode == 0, "it has nothing to lose any more"


def test_own_patch_whose_edit_may_be_committed_already_is_not_called_lost(clone: Path, patchlock: Patchlock) -> None:
    change(clone, 'device = "cuda"', "device = best()")
    done = patchlock("patch", "apply", "--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert (done.returncode, done.stderr) == (
        0,
        "warning: cpu: it finds nothing to change in **/*.py; see whether the file has the edit already\n",
    )


def test_undo_leaves_committed_edits_where_the_patches_are_in_no_commit(clone: Path, patchlock: Patchlock) -> None:
    file = clone / "app.py"
    file.write_text(file.read_text().replace('"cuda"', "choose()"))
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    git(clone, "commit", "-q", "-a", "-m", "my edit")
    done = patchlock("patch", "undo", "--source", str(clone))
    told = f"no file of {clone} had to be changed; your edits are kept in app.py\nyour last commit has what the patches do, as"
    assert (done.returncode, done.stdout.startswith(told), git(clone, "status", "--short")) == (0, True, ""), (
        done.stdout
    )


def test_committed_patches_file_fails_in_every_clone_while_a_patch_finds_nothing(
    clone: Path, patchlock: Patchlock
) -> None:
    file = clone / "patches.toml"
    file.write_text(f'{PATCHES}[[patch.ensure]]\ncheck = "contains"\ntext = "choose()"\n')
    change(clone, 'device = "cuda"', "device = best()")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "as a merge has left it")
    git(clone.parent, "clone", "-q", str(clone), "fresh")
    options = ("--patches", str(clone.parent / "fresh" / "patches.toml"), "--source", str(clone.parent / "fresh"))
    what = "cpu: your files do not have what it writes"
    for _ in range(2):
        done = patchlock("patch", "apply", *options, "--json")
        assert (done.returncode, json.loads(done.stdout)["error"]["what"]) == (1, what)


def test_requirement_that_is_not_there_is_as_a_committed_patch_wants_it(clone: Path, patchlock: Patchlock) -> None:
    text = '[[patch]]\nid = "no-a"\nwhy = "w"\nsource = "s"\nop = "drop-requirement"\nname = "a"\n'
    ensure = 'ensure = [{ check = "no-requirement", name = "a" }]\n'
    (clone / "patches.toml").write_text(f'{text}paths = ["requirements.txt"]\n{ensure}')
    (clone / "requirements.txt").write_text("b\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "as upstream has it now")
    done = patchlock("patch", "apply", "--patches", str(clone / "patches.toml"), "--source", str(clone))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_committed_patch_that_finds_nothing_any_more_is_lost_in_a_new_clone_too(
    clone: Path, patchlock: Patchlock
) -> None:
    file = clone.parent / "patches.toml"
    file.write_text(PATCHES.replace('"replace-expression"', '"set-argument"').replace(*FORM))
    change(clone, 'device = "cuda"', 'device = get(device="cpu")')
    options = ("--patches", str(file), "--source", str(clone))
    done = patchlock("patch", "apply", *options)
    assert (done.returncode, "cpu  already fixed  app.py:4" in done.stdout) == (0, True), done.stdout + done.stderr
    change(clone, 'device = get(device="cpu")', "device = best()")
    assert patchlock("patch", "apply", *options).returncode == 1


def test_conflict_of_gits_in_a_clone_is_an_error(clone: Path, patchlock: Patchlock) -> None:
    options = ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert patchlock("patch", "apply", *options).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text().replace("first = 1", "first = 'mine'"))
    change(clone.parent / "public", "first = 1", "first = 'theirs'")
    _pull(clone, patchlock, "--rebase", "--autostash")
    rows = git(clone, "ls-files", "--unmerged")
    assert "app.py" in rows
    done = patchlock("patch", "apply", *options)
    assert done.returncode == 1
    assert done.stderr.startswith("error[git-first]: git's own conflict stands in app.py, so nothing was changed")
    done = patchlock("patch", "apply", "--abort", "--source", str(clone), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "git-first"
    assert git(clone, "ls-files", "--unmerged") == rows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["apply"], "no patches are applied there yet, so it must be said which"),
        (["status"], "error[not-patched]: no patches are applied there yet, so it must be said which"),
        (["hooks"], "name the app: `patchlock patch hooks APP --source "),
        (["apply", "--source", "nowhere"], "error[usage]: there is no such folder"),
        (["status", "--source", "patches.toml"], "error[usage]: it is a file, and no folder"),
        (["apply", "no-app"], 'there is no app "no-app"'),
    ],
    ids=["nothing named", "status", "hooks", "no folder", "a file", "no app"],
)
def test_what_cannot_be_applied_is_said(clone: Path, patchlock: Patchlock, words: list[str], message: str) -> None:
    words = [*words, "--source", str(clone)] if "--source" not in words else words
    done = patchlock("patch", *words)
    assert done.returncode in {1, 2}
    assert message in done.stderr


def test_file_of_patches_with_unknown_keys_is_refused_with_line_and_key(clone: Path, patchlock: Patchlock) -> None:
    (clone.parent / "patches.toml").write_text(PATCHES.replace("pattern =", "patern ="))
    done = patchlock("patch", "apply", "--patches", str(clone.parent / "patches.toml"), "--source", str(clone))
    assert done.returncode == 1
    assert "patches.toml:9" in done.stderr
    assert "patern" in done.stderr
    assert git(clone, "status", "--short") == ""


def _pull(clone: Path, patchlock: Patchlock, *words: str) -> None:
    env = patchlock.env() | {"GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(clone), "pull", "-q", *words], env=env, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_clone_that_lacks_some_of_its_blobs_can_be_looked_at(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    public = tmp_path / "filtered"
    subprocess.run(["cp", "-r", str(locked.upstream), str(public)], check=True)
    (public / "model.bin").write_bytes(b"weights")
    (public / "lyrics.txt").write_text("la la\n")
    git(public, "init", "-q", "-b", "main")
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", "one")
    for name in ("model.bin", "lyrics.txt"):
        blob = git(public, "rev-parse", f"HEAD:{name}").strip()
        (public / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    done = patchlock("patch", "status", "mini", "--source", str(public), "--commit", "main")
    assert done.returncode == 0, done.stderr
    assert "needed" in done.stdout
