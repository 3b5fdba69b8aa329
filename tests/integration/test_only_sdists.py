"""What has only an sdist is told as that, and its build is offered, before anything is dropped for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, wheel
from sdists import ask, host, in_tree, made, maker, offer, sdist

WAYS = "has no wheel, only an sdist; allow its build with a [[build]] table, or use another version"


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        (b"alpha==9.0\nwidget==3.2\n", f"widget 3.2 {WAYS}"),
        (b"alpha==9.0\nwidget\n", f"widget 3.2 {WAYS}"),
        (b"alpha==9.0\nwidget<3.2\n", f"widget 3.1 {WAYS}"),
        (b"alpha==9.0\nasker\n", f"widget 3.2 {WAYS}"),
        (b"alpha==9.0\nwidget<4\n", f"widget 3.1 {WAYS}"),
    ],
    ids=["pinned", "any", "bounded", "transitive", "cut-off"],
)
def test_build_is_offered_first(
    world: World, patchlock: Patchlock, tmp_path: Path, request: pytest.FixtureRequest, needs: bytes, told: str
) -> None:
    files = [sdist(tmp_path, "widget", version, made("widget", version)) for version in ("3.1", "3.2")]
    offer(world, *files, maker(tmp_path), wheel(tmp_path, "asker", "1.0", requires=("widget",)))
    if "cut-off" in request.node.name:
        page = world.wheels.parent / "index" / "widget" / "index.html"
        old, late = page.read_text().split("<br>\n")[:2]
        page.write_text(f"{old}<br>\n{late.replace('2025-06', '2026-06')}<br>\n")
    ask(world, needs, tmp_path)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    assert pair["code"] == "unsatisfiable"
    assert told in pair["detail"]
    version = told.split()[1]
    assert pair["explanation"]["builds"] == [{"name": "widget", "version": version}]
    text = patchlock("lock", "mini").stdout
    assert '[[build]]\nnames = ["widget"]\n' in text
    assert "edit set" not in text
    tables = text[text.index("[[build]]\nnames") : text.index("uv about conflict 1")]
    world.app.write_text(f"{world.app.read_text()}\n{tables}")  # as a person pastes it
    assert patchlock("lock", "mini").returncode == 0


def test_what_only_a_version_after_the_cut_off_asks_for_is_neither_named_nor_built(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    sources = [sdist(tmp_path, name, "3.1", made(name, "3.1")) for name in ("widget", "gadget")]
    speakers = [wheel(tmp_path, "speech", v, requires=(n,)) for v, n in (("1.0", "widget"), ("2.0", "gadget"))]
    offer(world, *sources, *speakers, maker(tmp_path))
    page = world.wheels.parent / "index" / "speech" / "index.html"
    old, late = page.read_text().split("<br>\n")[:2]
    page.write_text(f"{old}<br>\n{late.replace('2025-06', '2026-06')}<br>\n")
    ask(world, b"alpha==9.0\nspeech\n", tmp_path)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    assert pair["explanation"]["builds"] == [{"name": "widget", "version": "3.1"}]
    (conflict,) = pair["explanation"]["conflicts"]
    assert not [line for line in conflict["uv"] if "gadget" in line]


@pytest.mark.parametrize("other", [(), ("py2-none-any",)], ids=["no-wheel", "wheel-for-another-python"])
def test_what_has_a_wheel_is_not_built_for_want_of_what_it_requires(
    world: World, patchlock: Patchlock, tmp_path: Path, other: tuple[str, ...]
) -> None:
    lacking = sdist(tmp_path, "widget", "3.1", made("widget", "3.1"))
    speakers = [wheel(tmp_path, "speech", version, requires=("widget",)) for version in ("1.0", "2.0")]
    speakers += [wheel(tmp_path, "widget", "3.1", tag=tag) for tag in other]
    offer(world, lacking, sdist(tmp_path, "speech", "1.5", made("speech", "1.5")), *speakers, maker(tmp_path))
    ask(world, b"alpha==9.0\nspeech>=1.0\n", tmp_path)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    assert pair["explanation"]["builds"] == [{"name": "widget", "version": "3.1"}]


def test_bound_at_a_local_version_in_uvs_words_is_read(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    torches = [wheel(tmp_path, "torch", f"2.{n}.0+cpu", requires=("locks>=2",)) for n in (2, 3)]
    offer(world, *torches, wheel(tmp_path, "torch", "2.1.0+cpu"), wheel(tmp_path, "locks", "1.0"))
    ask(world, b"alpha==9.0\ntorch>2.1\n", tmp_path)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    assert "torch>=2.2.0+cpu cannot be used" in " ".join(pair["detail"].split())
    assert (pair["code"], pair["explanation"]["builds"]) == ("unsatisfiable", [])


def test_build_that_downloads_is_told_before_it_is_built(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    files = in_tree("widget", tmp_path / "mark")
    line = files["backend.py"].count("\n") + 2
    files["backend.py"] += "def fetch():\n    return urlopen('https://x.test')\n"
    offer(world, sdist(tmp_path, "widget", "1.0", files))
    ask(world, b"alpha==9.0\nwidget\n", tmp_path, '\n[[build]]\nnames = ["widget"]\nwhy = "x"\nsource = "tests"\n')
    told = f"its build may download something, backend.py:{line} (urlopen), and a build has no network here: "
    assert f"# {told}" in patchlock("lock", "mini").stdout
    table = '\n[[metadata]]\nname = "widget"\nversion = "1.0"\nrequires = []\nbuild = []\nwhy = "x"\nsource = "tests"\n'
    world.app.write_text(world.app.read_text() + table)
    for words in (("lock", "mini"), ("install", "mini", "--profile", "tiny")):
        assert f"widget 1.0: {told}" in patchlock(*words).stderr


def test_edits_have_the_metadata_of_what_they_build(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    source = sdist(tmp_path, "widget", "3.2", made("widget", "3.2"))
    offer(world, source, maker(tmp_path), wheel(tmp_path, "models", "4.36.2"))
    ask(world, b"alpha==9.0\nwidget\nmodels==4.42.4\n", tmp_path)
    build = '\n[[build]]\nnames = ["widget"]\nwhy = "x"\nsource = "tests"\n'
    world.app.write_text(world.app.read_text() + build)
    told = patchlock("lock", "mini").stdout
    tables = told.split("yourself):\n")[1].split("uv about")[0]
    assert '[[metadata]]\nname = "widget"' in tables
    world.app.write_text(f"{world.app.read_text()}\n{tables}")
    assert patchlock("lock", "mini").returncode == 0


@pytest.mark.parametrize(
    ("needs", "rules"),
    [
        (b"voices==2.0\nmodels==4.36.2\n", ()),
        (b"asker\ntorch==2.1\ntorchaudio==2.1\n", ("torch==2.2", "torchaudio==2.2")),
    ],
    ids=["no-sdist", "sdist-of-an-older-version"],
)
def test_conflict_of_wheels_offers_no_build(
    world: World, patchlock: Patchlock, tmp_path: Path, needs: bytes, rules: tuple[str, ...]
) -> None:
    files = [wheel(tmp_path, "models", version) for version in ("4.36.2", "4.42.4")]
    files += [wheel(tmp_path, "torch", version) for version in ("2.1", "2.2")]
    files += [wheel(tmp_path, "torchaudio", version, requires=(f"torch=={version}",)) for version in ("2.1", "2.2")]
    files += [wheel(tmp_path, "voices", "2.0", requires=("models>=4.42",)), maker(tmp_path)]
    files += [sdist(tmp_path, "asker", "0.2", made("asker", "0.2"))]
    files += [wheel(tmp_path, "asker", "0.3", requires=("torch", "torchaudio"))]
    offer(world, *files)
    bounds = "".join(f'\n[[constraint]]\nrequirement = "{one}"\nwhy = "x"\nsource = "tests"\n' for one in rules)
    ask(world, b"alpha==9.0\n" + needs, tmp_path, bounds)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    found = pair["explanation"]
    assert (found["builds"], bool(found["sets"])) == ([], True)
    told = [[one["requirement"] for one in conflict["members"]] for conflict in found["conflicts"]]
    assert [one for one in told if told.count(one) > 1] == []


def test_build_of_what_others_have_wheels_of_is_offered_for_this_machine(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    files = [sdist(tmp_path, "widget", "3.2", made("widget", "3.2")), maker(tmp_path)]
    offer(world, *files, wheel(tmp_path, "widget", "3.2", tag="cp27-cp27m-win32"))
    ask(world, b"alpha==9.0\nwidget\nbeta==7.7\n", tmp_path)
    (pair,) = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"]
    assert pair["explanation"]["builds"] == [{"name": "widget", "version": "3.2"}]
    text = patchlock("lock", "mini").stdout
    assert f'source = "PyPI: the file list of each"\nplatforms = ["{host()}"]' in text
    assert "widget → " not in text
