"""A conflict is explained and edits are found that resolve it, with the real uv on an index of wheels of one line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, index, wheel

from patchlock.catalogue import reader

LATER = (
    "lock with `--as-of now` (`--as-of none` where the index has no upload times), or give what has to be newer a "
    "[[newer]] table"
)
STACKED = (
    b"web==1.0\n"
    b"torch==2.1.0\n"
    b"torchaudio==2.1.0\n"
    b"speech==1.0.1  # needs a codec that was deleted\n"
    b"voices[all]==2.0\n"
    b"models==4.36.2\n"
    b"align\n"
)
"""As in a real app: three conflicts, of which each shows when the one before is mended."""

WHEELS = (
    ("web", "1.0", ()),
    ("torch", "2.1.0", ()),
    ("torch", "2.2.2", ()),
    ("torch", "2.9.0", ()),
    ("torchaudio", "2.1.0", ()),
    ("torchaudio", "2.2.2", ()),
    ("torchaudio", "2.7.0", ()),
    ("codec", "12.0", ()),
    ("speech", "1.0.1", ("codec==11.*",)),
    ("speech", "1.1.0", ("codec>=11",)),
    ("speech", "1.2.0", ("codec>=11",)),
    ("voices", "2.0", ("models<4.43,>=4.42",)),
    ("models", "4.36.2", ()),
    ("models", "4.42.4", ()),
    ("models", "4.50.0", ()),
    ("align", "3.3", ("torchaudio>=2.2", "speech==1.1.0")),
)


def stack(world: World, tmp_path: Path, requirements: bytes = STACKED) -> None:
    """Give the world an upstream whose requirements contradict each other, and the wheels to mend that."""
    made = [wheel(world.wheels, name, version, requires=requires) for name, version, requires in WHEELS]
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), made)
    (world.upstream / "requirements.txt").write_bytes(requirements)
    text = world.app.read_text()
    first = text.index("[[patch]]")
    world.app.write_text(text[:first] + text[text.index("[[check]]") :])
    only_linux(world)
    world.name_commit(tmp_path)


def only_linux(world: World, *others: str) -> None:
    """Leave one platform, and others that are named."""
    lines = world.profile.read_text().splitlines(keepends=True)
    platforms = json.dumps(["linux-x86_64", *others])
    world.profile.write_text("".join(f"platforms = {platforms}\n" if "platforms" in one else one for one in lines))


def explained(patchlock: Patchlock, *arguments: str) -> dict[str, object]:
    done = patchlock("lock", "mini", "--json", *arguments)
    assert done.returncode == 1, done.stderr
    found: dict[str, object] = json.loads(done.stdout)["data"]["pairs"][0]["explanation"]
    return found


def cores(found: dict[str, object]) -> list[list[str]]:
    return [
        [f"{one['requirement']} {one['file']}:{one['line']}" for one in conflict["members"]]
        for conflict in found["conflicts"]  # type: ignore[attr-defined]
    ]


def sets(found: dict[str, object]) -> list[list[str]]:
    return [
        [f"{one['requirement']} -> {one['after']}" for one in tried["changes"]]
        for tried in found["sets"]  # type: ignore[attr-defined]
    ]


CLASHES = [
    {"speech==1.0.1"},
    {"speech==1.0.1", "align"},
    {"voices[all]==2.0", "models==4.36.2"},
    {"torchaudio==2.1.0", "align"},
]


def test_stacked_conflicts_are_explained_and_what_is_shown_resolves(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    stack(world, tmp_path)
    found = explained(patchlock)
    requirements = [{one.rpartition(" ")[0] for one in core} for core in cores(found)]
    assert [one for one in requirements if one not in CLASHES] == []
    assert CLASHES[2] in requirements
    assert ["voices[all]==2.0 requirements.txt:5", "models==4.36.2 requirements.txt:6"] in cores(found)
    assert all(conflict["minimal"] and conflict["uv"] for conflict in found["conflicts"])  # type: ignore[attr-defined]
    # The smallest sets; of two that are as small, the one that raises; torch and torchaudio together.
    assert sets(found)[:2] == [
        [
            "models==4.36.2 -> models==4.42.4",
            "speech==1.0.1 -> speech==1.1.0",
            "torch==2.1.0 -> torch==2.2.2",
            "torchaudio==2.1.0 -> torchaudio==2.2.2",
        ],
        ["align -> ", "models==4.36.2 -> models==4.42.4", "speech==1.0.1 -> speech==1.1.0"],
    ]
    before = world.app.read_text()
    for number, tried in enumerate(found["sets"]):  # type: ignore[arg-type,var-annotated]
        file = tmp_path / f"{number}.toml"
        file.write_text(tried["toml"], encoding="utf-8")
        assert len(reader.patch_file(file)) == len(tried["changes"])
        world.app.write_text(f"{before}\n{tried['toml']}")
        done = patchlock("lock", "mini", "--explain", "0")
        assert done.returncode == 0, done.stdout


SIMPLE = b"web\nvoices[all]==2.0\nmodels==4.36.2\n"


def test_a_person_sees_sentence_table_patches_and_uvs_words(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    stack(world, tmp_path, SIMPLE)
    only_linux(world, "windows-amd64")
    done = patchlock("lock", "mini")
    pair = "mini × tiny × linux-x86_64"
    text = "\n".join(" ".join(line.split()) for line in done.stdout.splitlines())
    assert (
        f"\n{pair}: voices and models==4.36.2 cannot be installed together; 2 sets of edits resolve it, tried" in text
    )
    assert "\nvoices[all]==2.0 (any version) upstream requirements.txt:2\n" in text
    assert "\nmodels==4.36.2 upstream requirements.txt:3 4.42.4, for voices\n" in text
    assert "\nmodels==4.36.2 → models==4.42.4 requirements.txt:3 (upstream)\n" in text
    assert '\nid = "models-that-resolves"\nwhy = "voices and models==4.36.2 cannot be installed' in text
    assert text.index("edit set 1") < text.index("[[patch]]") < text.index("uv about conflict 1:\n")
    assert f"mini × tiny × windows-amd64: edit sets 1 and 2 of {pair} also resolve it here" in text


def test_edits_say_on_which_platforms_they_resolve(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    stack(world, tmp_path, b"alone==1.0\nweb\n")
    only_linux(world, "windows-amd64", "macos-arm64")
    made = [
        wheel(world.wheels, "alone", "1.0", tag="py3-none-win_amd64"),
        wheel(world.wheels, "alone", "1.1", tag="py3-none-manylinux_2_17_x86_64"),
        wheel(world.wheels, "alone", "1.1", tag="py3-none-win_amd64"),
    ]
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), made)
    told = patchlock("lock", "mini").stdout
    assert "\nedit set 1: resolves to 2 packages on linux-x86_64, windows-amd64; not on macos-arm64\n" in told


def test_bound_of_what_is_dropped_is_to_be_removed_with_it(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    stack(world, tmp_path, b"web==1.0\nmodels\n")
    text = world.app.read_text()
    world.app.write_text(f'{text}\n[[constraint]]\nrequirement = "models==99"\nwhy = "x"\nsource = "tests"\n')
    line = text.count("\n") + 2
    told = patchlock("lock", "mini").stdout
    says = f'and remove the [[constraint]] "models==99" (patches/mini/app.toml:{line}), which would bound nothing\n'
    assert says in told
    tables = told.split("yourself):\n")[1].split("and remove")[0]
    world.app.write_text(f"{text}\n{tables}")
    assert patchlock("lock", "mini").returncode == 0


def test_no_edit_takes_out_what_the_program_imports_as_it_starts(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    stack(world, tmp_path, b"rusty\n")
    only_there = wheel(world.wheels, "rusty", "1.0", tag="py3-none-win_amd64")
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), [only_there])
    assert 'op = "drop-requirement"' in (told := patchlock("lock", "mini").stdout), told
    (world.upstream / "app.py").write_text("import rusty\n")
    world.name_commit(tmp_path)
    assert 'op = "drop-requirement"' not in (told := patchlock("lock", "mini").stdout), told


def test_no_time_means_no_search(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    stack(world, tmp_path, SIMPLE)
    done = patchlock("lock", "mini", "--explain", "0")
    assert done.returncode == 1
    assert "Because" in done.stdout  # uv's own words
    assert "edit set" not in done.stdout


def test_a_patch_and_a_constraint_that_contradict_each_other_are_named_with_their_lines(
    world: World, patchlock: Patchlock
) -> None:
    only_linux(world)
    rule = '\n[[constraint]]\nrequirement = "gamma>=3"\nwhy = "x"\nsource = "tests"\n'
    world.profile.write_text(world.profile.read_text() + rule)
    found = explained(patchlock)
    patch, constraint = (
        path.read_text().splitlines().index(text) + 1
        for path, text in ((world.app, "[[patch]]"), (world.profile, "[[constraint]]"))
    )
    assert cores(found) == [[f"alpha==1.0 patches/mini/app.toml:{patch}", f"gamma>=3 profiles/tiny.toml:{constraint}"]]
    first, *others = found["sets"]  # type: ignore[misc]
    assert sets(found)[0] == ["alpha==1.0 -> alpha==2.0"]
    assert 'id = "alpha-that-exists"' in first["toml"]  # the patch itself is changed: a second one would fight it
    assert "expect" not in first["toml"]  # as in the patch
    assert [one["by_hand"] for one in others if not one["toml"]] == [
        [f'remove or widen the [[constraint]] "gamma>=3" (profiles/tiny.toml:{constraint})']
    ]


@pytest.mark.parametrize(
    ("arguments", "profiles"),
    [pytest.param(("--profile", "tiny"), [["tiny"]], id="one-profile"), pytest.param((), [None], id="all-profiles")],
)
def test_edits_say_for_which_profiles_they_were_found(
    world: World, patchlock: Patchlock, tmp_path: Path, arguments: tuple[str, ...], profiles: list[list[str] | None]
) -> None:
    stack(world, tmp_path, b"models==4.37\nweb\n")
    (world.profile.parent / "other.toml").write_text(world.profile.read_text())
    first = json.loads(patchlock("lock", "mini", "--json", *arguments).stdout)["data"]["pairs"][0]
    toml = first["explanation"]["sets"][0]["toml"]
    assert [one.get("profiles") for one in tomllib.loads(toml)["patch"]] == profiles


@pytest.mark.parametrize("rule", ["", '\n[[constraint]]\nrequirement = "models>4.40"\nwhy = "x"\nsource = "tests"\n'])
def test_patches_that_leave_out_a_profile_are_named_where_they_help(
    world: World, patchlock: Patchlock, tmp_path: Path, rule: str
) -> None:
    stack(world, tmp_path, b"models==4.37\nweb\n")
    (world.profile.parent / "other.toml").write_text(world.profile.read_text() + rule)
    line = len(world.app.read_text().splitlines()) + 2
    table = (
        '\n[[patch]]\nid = "models-that-are-there"\nwhy = "x"\nsource = "tests"\nop = "set-requirement"\n'
        'paths = ["requirements.txt"]\nname = "models"\nspecifier = "==4.36.2"\nprofiles = ["tiny"]\n'
        'ensure = [{ check = "requirement", name = "models", specifier = "==4.36.2" }]\n'
    )
    world.app.write_text(world.app.read_text() + table)
    told = patchlock("lock", "mini", "--profile", "other").stdout
    hint = "it resolves (tried with uv) with other added to the `profiles` of these patches: models-that-are-there "
    assert (f"{hint}(patches/mini/app.toml:{line})\n" in told) is (rule == "")
    assert ("added to the `profiles`" in told) is (rule == "")


def test_the_cut_off_is_named_where_it_is_the_reason(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    stack(world, tmp_path, b"young==1.0\nweb\n")
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index(root, [wheel(world.wheels, "young", "1.0")])
    page = root / "young" / "index.html"
    page.write_text(page.read_text().replace("2025-06-01", "2026-06-01"))
    found = explained(patchlock)
    assert [one["by"] for one in found["conflicts"][0]["members"]] == ["upstream", "cut-off"]  # type: ignore[index]
    by_hand = [one["by_hand"] for one in found["sets"]]  # type: ignore[attr-defined]
    assert [LATER] in by_hand


def test_what_is_taken_without_a_bound_is_no_younger_than_the_cut_off(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    stack(world, tmp_path, b"models==4.37\nweb\n")
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index(root, [wheel(world.wheels, "models", version) for version in ("4.50.0", "4.99.0")])
    page = root / "models" / "index.html"
    old, young = page.read_text().split("<br>")
    page.write_text(f"{old}<br>{young.replace('2025-06-01', '2026-06-01')}")
    (member,) = explained(patchlock)["conflicts"][0]["members"]  # type: ignore[index]
    assert (member["requirement"], member["otherwise"]) == ("models==4.37", "4.50.0")


def test_index_without_upload_times_is_locked_without_a_bound(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    stack(world, tmp_path, b"young==1.0\nweb\n")
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index(root, [wheel(world.wheels, "young", "1.0")])
    page = root / "young" / "index.html"
    page.write_text(page.read_text().replace("data-upload-time", "data-other"))
    assert [LATER] in [one["by_hand"] for one in explained(patchlock, "--as-of", "now")["sets"]]  # type: ignore[attr-defined]
    done = patchlock("lock", "mini", "--as-of", "none", "--json")
    assert json.loads(done.stdout)["data"]["pairs"][0]["state"] == "written", done.stdout
    assert patchlock("lock", "mini", "--check").returncode == 0
    assert patchlock("lock", "mini").returncode == 0  # it stays so


def test_a_recorded_index_that_lacks_the_version_is_named(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    stack(world, tmp_path, b"vendored==2.0\nweb\n")
    folder = world.catalogue / "profiles" / "indexes"
    folder.mkdir()
    wheels = "".join(
        f'[[wheel]]\nfilename = "vendored-{version}-py3-none-any.whl"\nsha256 = "{"1" * 64}"\nrequires = []\nsource = "x"\n'
        for version in ("2.1", "2.2")
    )
    (folder / "vendor.toml").write_text(f'[index]\nurl = "https://vendor.invalid/whl"\n\n{wheels}')
    world.profile.write_text(world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity'))
    found = explained(patchlock)
    assert found["conflicts"][0]["members"][0]["recorded"] == "vendor has 2.1, 2.2"  # type: ignore[index]
    assert ["vendored==2.0 -> vendored==2.1"] in sets(found)
    (patch,) = tomllib.loads(found["sets"][0]["toml"])["patch"]  # type: ignore[index]
    assert patch["why"].endswith(" on linux-x86_64: the recorded index vendor has none that fits")


def test_requirement_in_two_files_is_shown_and_patched_in_both(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    stack(world, tmp_path, b"-r more.txt\nmodels==4.36.2\nvoices\n")
    (world.upstream / "more.txt").write_bytes(b"models==4.36.2\n")
    world.name_commit(tmp_path / "again")
    found = explained(patchlock)
    member = next(one for one in found["conflicts"][0]["members"] if one["requirement"] == "models==4.36.2")  # type: ignore[index]
    assert {member["file"], *(one["file"] for one in member["also"])} == {"requirements.txt", "more.txt"}
    assert 'paths = ["more.txt", "requirements.txt"]' in found["sets"][0]["toml"]  # type: ignore[index]


@pytest.mark.online
def test_a_real_conflict_is_explained_from_real_metadata(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "requirements.txt").write_bytes(b"gradio==3.48.0\ngradio-client==1.0.1\n")
    only_linux(world)
    world.app.write_text(world.app.read_text().partition("[[patch]]")[0])
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini", "--json", "--as-of", "2026-01-01T00:00:00Z", env={"UV_DEFAULT_INDEX": ""})
    found = json.loads(done.stdout)["data"]["pairs"][0]["explanation"]
    assert cores(found) == [["gradio==3.48.0 requirements.txt:1", "gradio-client==1.0.1 requirements.txt:2"]]
    assert ["gradio-client==1.0.1 -> gradio-client==0.6.1"] in sets(found)
