"""A catalogue that did not come with patchlock runs no code until a person has agreed; then it does, until he takes it back."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import World

from patchlock.catalogue import agreement
from patchlock.catalogue.reader import find

CODEMOD = """
[[patch]]
id = "by-code"
why = "it has to be"
source = "https://example.com/why"
op = "codemod"
paths = ["app.py"]
module = "change.py"
command = "Change"

[[patch.ensure]]
check = "no-string"
value = "cuda"
"""
CODE = """\
from libcst.codemod import CodemodCommand


class Change(CodemodCommand):
    DESCRIPTION = "x"

    def transform_module_impl(self, tree):
        return tree
"""


@pytest.fixture(autouse=True)
def no_trust(monkeypatch: pytest.MonkeyPatch, guards: None) -> None:
    """Trust what came with patchlock alone, as users do."""
    monkeypatch.delenv("PATCHLOCK_TRUSTED_CATALOGUES")


def _sentence(world: World) -> str:
    return (
        "error[untrusted-catalogue]: this catalogue did not come with patchlock, and what was asked for runs code that it "
        f"chooses: codemods, builds, checks ({world.catalogue}); read it; if you trust whoever writes there, run "
        f"`patchlock trust {world.catalogue}` once\n"
    )


def test_nothing_is_installed_from_a_catalogue_that_nobody_trusts(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    done = patchlock("install", "mini", "--profile", "tiny")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(_sentence(locked))
    assert not (tmp_path / "installed").exists()
    [command] = re.findall(r"run `patchlock (trust [^`]+)`", done.stderr)
    assert patchlock(*command.split()).stdout == f"{locked.catalogue} may run its codemods, builds and checks\n"
    assert patchlock(*command.split()).stdout == f"{locked.catalogue}: nothing to do\n"
    assert patchlock("install", "mini", "--profile", "tiny").returncode == 0
    assert patchlock("verify", "mini").returncode == 0
    done = patchlock("trust", str(locked.catalogue), "--withdraw", "--json")
    assert json.loads(done.stdout)["data"] == {"folder": str(locked.catalogue), "trusted": False, "changed": True}
    assert patchlock("install", "mini", "--reinstall").stderr.endswith(_sentence(locked))


def test_what_runs_no_code_needs_no_trust(locked: World, patchlock: Patchlock) -> None:
    for words in (("list",), ("lock", "--check"), ("plan", "mini", "--profile", "tiny"), ("why", "mini", "gamma")):
        done = patchlock(*words)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [("plan",), ("patch", "status"), ("patch", "diff")], ids=" ".join)
def test_no_codemod_runs_from_a_catalogue_that_nobody_trusts(
    locked: World, patchlock: Patchlock, words: tuple[str, ...]
) -> None:
    locked.app.write_text(locked.app.read_text() + CODEMOD)
    (locked.app.parent / "change.py").write_text(CODE)
    done = patchlock(*words, "mini", "--json")
    assert done.returncode == 1
    assert "untrusted-catalogue" in done.stdout
    assert patchlock("trust", str(locked.catalogue)).returncode == 0
    assert "untrusted-catalogue" not in patchlock(*words, "mini", "--json").stdout


def test_a_folder_above_can_be_trusted_by_a_variable(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    named = os.pathsep.join([str(tmp_path / "other"), str(locked.catalogue.parent)])
    done = patchlock("install", "mini", env={"PATCHLOCK_TRUSTED_CATALOGUES": named})
    assert done.returncode == 0, done.stderr


def test_the_catalogue_of_patchlock_is_trusted_however_it_is_named(tmp_path: Path) -> None:
    assert find(None).is_trusted
    assert find(ROOT).is_trusted
    (tmp_path / "link").symlink_to(ROOT)
    assert find(tmp_path / "link").is_trusted


def test_trust_is_for_one_folder(tmp_path: Path) -> None:
    home, ours = tmp_path / "home of mine", tmp_path / "oürs"
    (ours / "below").mkdir(parents=True)
    assert agreement.change(ours, home, trusted=True)
    assert [agreement.is_trusted(one, home) for one in (ours, ours / "below", tmp_path)] == [True, False, False]
    assert agreement.known(home) == (ours,)
    assert agreement.change(ours, home, trusted=False)
    assert not agreement.change(ours, home, trusted=False)
    assert not agreement.is_trusted(ours, home)


def test_file_of_patches_beside_a_codemod_runs_it_only_where_its_folder_is_trusted(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    folder = tmp_path / "of a stranger"
    folder.mkdir()
    (folder / "patches.toml").write_text(CODEMOD)
    (folder / "change.py").write_text(CODE)
    words = ("patch", "status", "--patches", str(folder / "patches.toml"), "--source", str(world.upstream))
    assert "error[untrusted-catalogue]" in patchlock(*words).stderr
    assert patchlock("trust", str(folder)).returncode == 0
    assert "error[untrusted-catalogue]" not in patchlock(*words).stderr
