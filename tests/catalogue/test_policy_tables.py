"""The tables of `profiles/policy/`: what they say, every mistake in them, and that a recorded scan reads back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock
from miniature import World, wheel
from packaging.version import Version
from policy_values import RULES

from patchlock.catalogue.policy import WHEELS_FILE, render_wheels
from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import CatalogueError
from patchlock.model.identities import Sha256
from patchlock.model.policy import RecordedWheelFacts

FAMILY = """\
[family]
of = "torch"
[[member]]
name = "torchvision"
builds = "same"
rows = [{ version = "0.1", torch = ["2.0"], source = "s" }]
"""
WHEEL = f'[[wheel]]\nfilename = "x.whl"\nsha256 = "{"1" * 64}"\narchs = ["sm_90"]\nsource = "s"\n'


def _rules(tmp_path: Path, name: str, text: str) -> str:
    """Read one table, and give its mistakes in one text."""
    folder = tmp_path / "profiles" / "policy"
    folder.mkdir(parents=True)
    (folder / name).write_text(text)
    try:
        Catalogue(root=tmp_path).rules()
    except CatalogueError as error:
        return "\n".join(str(problem) for problem in error.problems)
    return ""


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        pytest.param("torch-family.toml", FAMILY, "", id="family"),
        pytest.param("torch-family.toml", FAMILY.replace("same", "sam"), '"sam" is none of same, same-if-tagged, any', id="builds"),
        pytest.param("torch-family.toml", FAMILY.replace('"2.0"', '"two"'), '"two" is not a version', id="torch-version"),
        pytest.param("torch-family.toml", FAMILY.replace('"2.0"', ""), "it is empty", id="fits-nothing"),
        pytest.param("torch-family.toml", FAMILY.replace(', source = "s"', ""), 'the key "source" is missing', id="source"),
        pytest.param("torch-family.toml", FAMILY.replace("source", "sauce"), 'the key "sauce" is unknown', id="unknown-key"),
        pytest.param("torch-family.toml", FAMILY + FAMILY.partition('"torch"\n')[2], "torchvision has a table already", id="member-twice"),
        pytest.param(
            "torch-family.toml",
            FAMILY.replace("}]", '}, { version = "0.1", torch = ["2.1"], source = "s" }]'),
            "torchvision 0.1 has a row already",
            id="row-twice",
        ),
        pytest.param("wheels.toml", WHEEL, "", id="wheel"),
        pytest.param("wheels.toml", WHEEL.replace("sm_90", "Hopper"), '"Hopper" is not a GPU architecture', id="arch"),
        pytest.param("wheels.toml", WHEEL * 2, "it has a table already", id="wheel-twice"),
        pytest.param("wheels.toml", WHEEL.replace("1" * 64, "1"), "must be a sha256", id="sha256"),
        pytest.param(
            "shared-folders.toml",
            '[[folder]]\nfolder = "x/"\nowners = ["a"]\nsource = "s"\n',
            "it must name two distributions or more",
            id="one-owner",
        ),
        pytest.param(
            "broken-pairs.toml",
            '[[pair]]\nfirst = "a"\nsecond = "b>>2"\nwhy = "w"\nremedy = "r"\nsource = "s"\nos = ["Linux"]\n',
            '"b>>2" is not a requirement',
            id="requirement",
        ),
        pytest.param(
            "broken-pairs.toml",
            '[[pair]]\nfirst = "a"\nsecond = "b"\nwhy = "w"\nremedy = "r"\nsource = "s"\nos = ["Linux"]\n',
            '"Linux" is not an operating system',
            id="os",
        ),
        pytest.param("arch-free.toml", '[[distribution]]\nnames = ["x"]\nwhy = "w"\n', 'the key "source" is missing', id="free"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, name: str, text: str, mistake: str) -> None:
    found = _rules(tmp_path, name, text)
    assert (mistake in found) if mistake else found == ""


def test_catalogue_without_tables_has_no_rules(tmp_path: Path) -> None:
    rules = Catalogue(root=tmp_path).rules()
    assert (rules.families, rules.pairs, rules.folders, rules.wheels, rules.arch_free) == ((), (), (), {}, ())


def test_shipped_family_knows_every_torch_from_2_0_1_on() -> None:
    [family] = RULES.families
    known = {version for rows in family.members.values() for row in rows.values() for version in row.fits}
    assert {Version(text) for text in ("2.0.1", "2.4.1", "2.7.1", "2.11.0", "2.15.0")} <= known
    for name in ("torchaudio", "torchvision", "triton"):
        fitting = {version for row in family.members[name].values() for version in row.fits}
        assert known <= fitting, name  # each torch has a release of it


def test_every_fact_has_a_source() -> None:
    [family] = RULES.families
    rows = [row.source for rows in family.members.values() for row in rows.values()]
    others = [row.source for row in (*RULES.pairs, *RULES.folders, *RULES.wheels.values(), *RULES.arch_free)]
    assert all(source.strip() for source in (*rows, *others))


def test_shipped_scans_are_as_the_tool_writes_them() -> None:
    assert render_wheels(RULES.wheels) == (ROOT / WHEELS_FILE).read_text(encoding="utf-8")


def test_rendered_scans_read_back(tmp_path: Path) -> None:
    facts = {
        Sha256("2" * 64): RecordedWheelFacts(filename="b.whl", archs=frozenset(), source='say "x"'),
        Sha256("1" * 64): RecordedWheelFacts(
            filename="a.whl", archs=frozenset({"sm_110", "compute_90", "gfx12-generic", "compressed-rocm"}), source="s"
        ),
    }
    path = tmp_path / WHEELS_FILE
    path.parent.mkdir(parents=True)
    path.write_text(render_wheels(facts), encoding="utf-8")
    assert Catalogue(root=tmp_path).rules().wheels == facts
    assert re.findall(r'filename = "(.)', path.read_text()) == ["a", "b"]


# --- the command ------------------------------------------------------------------------------------------------------


def _fat(tmp_path: Path) -> Path:
    """Make a wheel with code for sm_110, as text that a wheel of the tests can hold."""
    path = wheel(tmp_path, "fat", "1.0")
    import struct
    import zipfile

    entry = struct.pack("<HHIQ12xI", 2, 0x101, 64, 0, 110) + b"\x00" * 32
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("fat/_C.so", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry)) + entry)
    return path


def test_scan_names_the_architectures_and_records_them(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    path = _fat(tmp_path)
    done = patchlock("scan", str(path), "--record")
    assert f"{path.name}: sm_110\nrecorded in {world.catalogue / WHEELS_FILE}\n" in done.stdout
    [facts] = Catalogue(root=world.catalogue).rules().wheels.values()
    assert (facts.filename, facts.archs) == (path.name, {"sm_110"})
    before = (world.catalogue / WHEELS_FILE).read_bytes()
    assert json.loads(patchlock("scan", str(path), "--json").stdout)["data"]["wheels"][0]["archs"] == ["sm_110"]
    assert (world.catalogue / WHEELS_FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("nowhere.whl",), "there is no file nowhere.whl", id="missing"),
        pytest.param(("https://files.invalid/x.whl",), "does not say its sha256", id="address-without-hash"),
        pytest.param(("{wheel}", "--largest", "0"), "would have to be read (--largest 0); allow it with `--largest 1`", id="large"),
        pytest.param(("{text}",), "text.whl is not a wheel", id="no-wheel"),
    ],
)  # fmt: skip
def test_scan_that_cannot_be_made_is_said(
    world: World, patchlock: Patchlock, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "text.whl").write_text("text")
    given = [word.format(wheel=_fat(tmp_path), text=tmp_path / "text.whl") for word in words]
    done = patchlock("scan", *given)
    assert done.returncode != 0
    assert sentence in done.stderr.replace("\n", " ")
