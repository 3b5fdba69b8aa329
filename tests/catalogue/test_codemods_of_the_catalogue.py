"""Codemods of the catalogue: bound to their code, checked with the app's file, part of what makes a lock stale."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT
from miniature import APP
from test_engine import patches

from patchlock.catalogue.reader import Catalogue
from patchlock.locks.lock_request import Request, lock_inputs
from patchlock.model.errors import CatalogueError
from patchlock.model.patch import OutcomeKind
from patchlock.operations.install_plan import inputs_digest
from patchlock.patches import engine
from patchlock.worktree import patch_sets

RENAME = """
import libcst as cst
from libcst.codemod import VisitorBasedCodemodCommand

class Rename(VisitorBasedCodemodCommand):
    DESCRIPTION = "renames a name"

    def __init__(self, context, old="old", new="new"):
        super().__init__(context)
        self.old, self.new = old, new

    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value=self.new) if original_node.value == self.old else updated_node
"""
PATCH = """
op = "codemod"
paths = ["*.py"]
literal = ["old"]
module = "codemods/rename.py"
command = "Rename"
arguments = { new = "fresh" }
ensure = [{ check = "lacks", text = "old" }]
"""


def catalogue(tmp_path: Path, code: str | None) -> Catalogue:
    folder = tmp_path / "patches" / "mini"
    (folder / "codemods").mkdir(parents=True)
    (tmp_path / "profiles").mkdir()
    table = f'\n[[patch]]\nid = "rename"\nwhy = "w"\nsource = "s"\n{PATCH}'
    (folder / "app.toml").write_text(APP.partition("[[patch]]")[0] + table, encoding="utf-8")
    if code is not None:
        (folder / "codemods" / "rename.py").write_text(code, encoding="utf-8")
    return Catalogue(root=tmp_path)


def test_patch_runs_the_catalogues_codemod_on_files_with_its_literal(tmp_path: Path) -> None:
    chosen = catalogue(tmp_path, RENAME).app("mini").patches
    contents = {PurePosixPath("a.py"): b"old = 1\n", PurePosixPath("b.py"): b"x = (\n"}
    patched = engine.apply(chosen, contents)
    assert [(str(c.path), c.after) for c in patched.changes] == [("a.py", b"fresh = 1\n")]
    assert [(o.kind, str(o.path)) for o in patched.outcomes] == [(OutcomeKind.NEEDED, "a.py")]
    assert patched.failures == ()


def test_patch_without_the_code_of_its_codemod_changes_nothing() -> None:
    patched = engine.apply(patches(rename=PATCH), {PurePosixPath("a.py"): b"old = 1\n"})
    assert [outcome.kind for outcome in patched.outcomes] == [OutcomeKind.AMBIGUOUS]
    assert patched.changes == ()


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (None, 'the codemod "codemods/rename.py" cannot be read from the app\'s folder'),
        (
            "x = (",
            "the codemod \"codemods/rename.py\" is not Python in UTF-8: '(' was never closed (<unknown>, line 1)",
        ),
    ],
    ids=["missing", "no-python"],
)
def test_codemod_that_cannot_be_is_a_mistake_of_the_catalogue(tmp_path: Path, code: str | None, what: str) -> None:
    with pytest.raises(CatalogueError) as error:
        catalogue(tmp_path, code).app("mini")
    [problem] = error.value.problems
    assert (problem.file, problem.key, problem.what) == ("patches/mini/app.toml", "module", what)


def test_edited_codemod_makes_lock_and_generation_stale(tmp_path: Path) -> None:
    shown = catalogue(tmp_path, RENAME)
    profile = Catalogue(root=ROOT).profile("cpu")
    for name in ("cpu.toml", *(f"indexes/{index}.toml" for index in profile.indexes)):
        target = tmp_path / "profiles" / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((ROOT / "profiles" / name).read_bytes())

    def digests() -> tuple[str, str]:
        request = Request(
            app=shown.app("mini"),
            profile=profile,
            platform=profile.platforms[0],
            catalogue=shown,
            home=tmp_path,
            cache=tmp_path,
        )
        file = "patches/mini/codemods/rename.py"
        return lock_inputs(request, None)[file], inputs_digest(request, b"", request.app.upstream.commit)

    before = digests()
    assert digests() == before
    assert patch_sets.of_app(shown, "mini", "cpu").digest == patch_sets.of_app(shown, "mini", "cpu").digest
    of_tree = patch_sets.of_app(shown, "mini", "cpu").digest
    (tmp_path / "patches/mini/codemods/rename.py").write_text(RENAME + "# edited\n", encoding="utf-8")
    after = digests()
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert of_tree != patch_sets.of_app(shown, "mini", "cpu").digest


def test_file_of_patches_finds_its_codemod_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'[[patch]]\nid = "rename"\nwhy = "w"\nsource = "s"\n{PATCH}', encoding="utf-8")
    with pytest.raises(CatalogueError):
        patch_sets.of_file(file)
    (tmp_path / "codemods").mkdir()
    (tmp_path / "codemods" / "rename.py").write_text(RENAME, encoding="utf-8")
    found = patch_sets.of_file(file)
    patched = engine.apply(found.patches, {PurePosixPath("a.py"): b"old = 1\n"})
    assert [change.after for change in patched.changes] == [b"fresh = 1\n"]
