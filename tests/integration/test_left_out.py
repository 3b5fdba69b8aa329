"""Patches that are left out of a clone: by `--without ID`, which the clone remembers, or because they are advisory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Patchlock, Said
from miniature import World, this_platform
from test_update import clone
from test_users_tree import git

__all__ = ["clone"]

PATCH = """
[[patch]]
id = "{name}"
why = "w"
source = "s"
op = "replace-text"
paths = ["{path}"]
old = "{old}"
new = "{new}"
{more}
[[patch.ensure]]
check = "lacks"
text = "{old}"
"""
STUCK = "expect = { sites = 2, exact = true }"


def patch(name: str, old: str, new: str, more: str = "", path: str = "*.py") -> str:
    return PATCH.format(name=name, old=old, new=new, more=more, path=path)


@pytest.fixture
def write(clone: Path) -> Path:
    """Give the file of patches, with two that have work in app.py."""
    file = clone.parent / "patches.toml"
    file.write_text(patch("first-is-2", "first = 1", "first = 2") + patch("on-the-cpu", '\\"cuda\\"', '\\"cpu\\"'))
    return file


def options(clone: Path) -> tuple[str, ...]:
    return ("--patches", str(clone.parent / "patches.toml"), "--source", str(clone))


def outcomes(patchlock: Patchlock, clone: Path, command: str = "status", *words: str) -> dict[str, str]:
    done = patchlock("patch", command, *options(clone), *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return {outcome["patch"]: outcome["outcome"] for outcome in json.loads(done.stdout)["data"]["outcomes"]}


@pytest.mark.usefixtures("write")
def test_patch_that_is_left_out_stays_so_until_it_is_taken_back(clone: Path, patchlock: Patchlock) -> None:
    done = patchlock("patch", "apply", *options(clone), "--without", "on-the-cpu")
    assert "on-the-cpu  left out" in done.stdout
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = "cuda"\n'
    assert patchlock("patch", "apply", *options(clone)).stdout.endswith(": nothing to do\n")
    assert outcomes(patchlock, clone) == {"first-is-2": "already ours", "on-the-cpu": "left out"}

    (clone.parent / "public" / "new.py").write_text('device = "cuda"\n')
    git(clone.parent / "public", "add", "-A")
    git(clone.parent / "public", "commit", "-q", "-m", "two")
    assert outcomes(patchlock, clone, "update") == {"first-is-2": "needed", "on-the-cpu": "left out"}
    assert (clone / "new.py").read_text() == 'device = "cuda"\n'

    assert outcomes(patchlock, clone, "apply", "--with", "on-the-cpu")["on-the-cpu"] == "needed"
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = "cpu"\n'
    assert (clone / "new.py").read_text() == 'device = "cpu"\n'
    assert patchlock("patch", "apply", *options(clone)).stdout.endswith(": nothing to do\n")


@pytest.mark.usefixtures("write")
def test_patch_that_is_applied_is_taken_out_again(clone: Path, patchlock: Patchlock) -> None:
    assert patchlock("patch", "apply", *options(clone)).returncode == 0
    (clone / "app.py").write_text((clone / "app.py").read_text() + "mine = 1\n")
    done = patchlock("patch", "apply", *options(clone), "--without", "first-is-2")
    assert done.returncode == 0, done.stderr
    assert (clone / "app.py").read_text() == 'first = 1\n\n\ndevice = "cpu"\nmine = 1\n'


@pytest.mark.parametrize("way", ["by --without", "advisory"])
def test_patch_that_is_left_out_stays_so_where_a_patch_meets_an_edit(
    clone: Path, write: Path, patchlock: Patchlock, way: str
) -> None:
    stuck = patch("stuck", "device", "machine", STUCK + ("\nadvisory = true" if way == "advisory" else ""), "app.py")
    write.write_text(write.read_text() + stuck)
    (clone / "app.py").write_text('first = 1\n\n\ndevice = pick("cuda")\n')
    words = ["--without", "stuck"] if way != "advisory" else []
    done = patchlock("patch", "apply", *options(clone), *words)
    assert done.returncode == 0, done.stderr
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = pick("cpu")\n'


@pytest.mark.usefixtures("write")
def test_status_and_diff_show_what_would_be_and_remember_nothing(clone: Path, patchlock: Patchlock) -> None:
    assert patchlock("patch", "apply", *options(clone)).returncode == 0
    assert outcomes(patchlock, clone, "status", "--without", "on-the-cpu")["on-the-cpu"] == "left out"
    assert outcomes(patchlock, clone)["on-the-cpu"] == "already ours"
    shown = patchlock("patch", "diff", *options(clone), "--without", "on-the-cpu").stdout
    assert ("+first = 2" in shown, "cpu" in shown) == (True, False)
    assert "cpu" in patchlock("patch", "diff", *options(clone)).stdout


@pytest.mark.usefixtures("write")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--without", "on-cpu"], 'patches has no patch "on-cpu"; did you mean "on-the-cpu"?'),
        (["--with", "zzz"], 'patches has no patch "zzz"; `patchlock patch status --source CLONE` names them'),
        (
            ["--with", "on-the-cpu", "--without", "on-the-cpu"],
            '"on-the-cpu" is asked for and left out; give one of --with and --without',
        ),
    ],
)
@pytest.mark.parametrize("command", ["apply", "status", "diff", "update"])
def test_what_cannot_be_left_out_is_one_sentence(
    clone: Path, patchlock: Patchlock, command: str, words: list[str], message: str
) -> None:
    done = patchlock("patch", command, *options(clone), *words)
    assert (done.returncode, done.stderr) == (2, f"error[usage]: {message.replace('CLONE', str(clone))}\n")


def test_only_a_clone_remembers_what_is_left_out(patchlock: Patchlock) -> None:
    done = patchlock("patch", "status", "demo", "--profile", "cpu", "--without", "no-pip-at-start")
    assert done.returncode == 2
    assert done.stderr == ("error[usage]: --with and --without are for a clone of yours; name it: `--source CLONE`\n")


def test_required_patch_that_fails_names_the_command_that_goes_on_without_it(
    clone: Path, write: Path, patchlock: Patchlock
) -> None:
    write.write_text(write.read_text() + patch("stuck", "first", "last", STUCK.replace("2", "3"), "app.py"))
    before = (clone / "app.py").read_text()
    done = patchlock("patch", "apply", *options(clone))
    assert done.returncode == 1
    assert f"`patchlock patch apply --patches {write} --source {clone} --without stuck`" in done.stderr
    assert (clone / "app.py").read_text() == before
    assert outcomes(patchlock, clone, "apply", "--without", "stuck")["stuck"] == "left out"
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = "cpu"\n'


def test_diff_names_the_required_patch_that_it_lacks(clone: Path, write: Path, patchlock: Patchlock) -> None:
    write.write_text(write.read_text() + patch("stuck", "first", "last", STUCK.replace("2", "3"), "app.py"))
    done = patchlock("patch", "diff", *options(clone))
    assert (done.returncode, "+first = 2" in done.stdout) == (1, True)
    assert "1 patch does not do what it says, so the diff is not complete" in done.stderr
    assert "stuck: app.py:1: ambiguous: 3 places expected, 1 found" in done.stderr
    assert f"`patchlock patch diff --patches {write} --source {clone} --without stuck`" in done.stderr
    found = json.loads(patchlock("patch", "diff", *options(clone), "--json").stdout)
    assert (found["ok"], "+first = 2" in found["data"]["diff"], found["error"]["code"]) == (False, True, "patch")
    done = patchlock("patch", "diff", *options(clone), "--without", "stuck")
    assert (done.returncode, done.stderr) == (0, "")


def test_advisory_patch_that_fails_is_a_warning_and_stops_nothing(
    clone: Path, write: Path, patchlock: Patchlock
) -> None:
    more = f"advisory = true\n{STUCK}"
    write.write_text(write.read_text() + patch("stuck", "device", "machine", more, "app.py"))
    said = "stuck: app.py:4: ambiguous: 2 places expected, 1 found; the patch is advisory, and was left out"
    done = patchlock("patch", "apply", *options(clone))
    assert (done.returncode, done.stderr) == (0, f"warning: {said}\n")
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = "cpu"\n'
    assert patchlock("patch", "apply", *options(clone)).stdout.endswith(": nothing to do\n")
    shown = patchlock("patch", "status", *options(clone))
    assert (shown.returncode, shown.stderr) == (0, f"warning: {said}\n")
    shown = patchlock("patch", "diff", *options(clone))
    assert (shown.returncode, shown.stderr) == (0, f"warning: {said}\n")
    data = json.loads(patchlock("patch", "status", *options(clone), "--json").stdout)["data"]
    assert (data["warnings"], data["failures"]) == ([said], [])
    assert [o["outcome"] for o in data["outcomes"]] == ["already ours", "already ours", "ambiguous"]


def test_advisory_patch_whose_check_fails_is_left_out_and_named(clone: Path, write: Path, patchlock: Patchlock) -> None:
    text = patch("never", "device", "machine", "advisory = true", "app.py")
    write.write_text(write.read_text() + text.replace('"lacks"\ntext = "device"', '"contains"\ntext = "never"'))
    done = patchlock("patch", "apply", *options(clone), "--json")
    assert done.returncode == 0
    data = json.loads(done.stdout)["data"]
    assert [o["outcome"] for o in data["outcomes"]] == ["needed", "needed", "left out"]
    assert data["warnings"] == ["never: app.py: the text `never` is missing; the patch is advisory, and was left out"]
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = "cpu"\n'


@pytest.mark.usefixtures("write")
def test_file_that_cannot_be_read_is_a_warning(clone: Path, patchlock: Patchlock) -> None:
    public = clone.parent / "public"
    (public / "broken.py").write_bytes(b'"cuda"\0')
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", "two")
    done = patchlock("patch", "update", *options(clone))
    assert done.returncode == 0
    assert "warning: on-the-cpu: broken.py: it has NUL bytes; the file is left as it is\n" in done.stderr
    assert (clone / "app.py").read_text() == 'first = 2\n\n\ndevice = "cpu"\n'


def test_install_goes_on_without_an_advisory_patch(locked: World, face: Callable[..., Said], tmp_path: Path) -> None:
    text = patch("stuck", "import", "IMPORT", f"advisory = true\n{STUCK.replace('2', '99')}", "app.py")
    locked.app.write_text(locked.app.read_text().replace("\n[[check]]", f"{text}\n[[check]]", 1))
    assert face("lock", "mini", "--platform", this_platform().name).returncode == 0
    data = json.loads(face("install", "mini", "--json").stdout)["data"]
    (warning,) = data["warnings"]
    assert warning.startswith("stuck: app.py:")
    assert warning.endswith("; the patch is advisory, and was left out")
    assert {o["patch"]: o["outcome"] for o in data["outcomes"]}["stuck"] == "ambiguous"
    assert "IMPORT" not in (tmp_path / "installed" / "mini@tiny" / "source" / "app.py").read_text()
    assert f"warning: {warning}\n" in face("install", "mini", "--reinstall").stderr
