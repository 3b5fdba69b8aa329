"""`why`: from a distribution of a lock back to the line that asked, and forward to the newer version that lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import sdists
from conftest import Patchlock
from miniature import World, index, lock_here, wheel

RULE = '\n[[constraint]]\nrequirement = "gamma<4"\nwhy = "4 has no wheels"\nsource = "tests"\n'


@pytest.fixture
def locked(world: World, patchlock: Patchlock) -> World:
    """Lock a world of one platform, in which two lines ask for gamma and the profile bounds it."""
    text = world.profile.read_text().replace(', "linux-aarch64", "windows-amd64", "macos-arm64"', "")
    world.profile.write_text(text + RULE)
    done = patchlock("lock", "mini")
    assert done.returncode == 0, done.stdout
    return world


def told(patchlock: Patchlock, *arguments: str) -> dict[str, object]:
    done = patchlock("why", "mini", *arguments, "--profile", "tiny", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout)["data"]
    return found


def line_of(path: Path, text: str) -> int:
    return path.read_text().splitlines().index(text) + 1


def test_chain_bound_index_and_file_are_read_from_the_lock_without_uv_or_network(
    locked: World, patchlock: Patchlock
) -> None:
    done = patchlock("why", "mini", "Gamma", "--profile", "tiny", env={"PATH": "/nowhere", "UV_DEFAULT_INDEX": ""})
    assert done.returncode == 0, done.stderr
    text = [" ".join(line.split()) for line in done.stdout.splitlines()]
    bound = f"profiles/tiny.toml:{line_of(locked.profile, '[[constraint]]')}"
    assert text[0] == "gamma 2.0 in lockfiles/mini/tiny.txt"
    assert text[1].startswith("asked by requirements.txt:2")
    assert text[1].endswith(": alpha==1.0 → gamma")
    assert "alpha-that-exists" in text[1]
    assert f"bounded by gamma<4 {bound}: 4 has no wheels" in text
    assert "from the default index" in text
    assert any(line.startswith("file wheel py3-none-any, sha256 ") for line in text)
    assert "newer not asked; this asks: patchlock why mini gamma --profile tiny --alternatives" in text


def test_every_asker_has_its_specifier_and_what_no_file_here_says_is_named(locked: World, patchlock: Patchlock) -> None:
    found = told(patchlock, "alpha")
    place = "requirements.txt:2 (patch alpha-that-exists)"
    assert found["chains"] == [{"asked": place, "names": ["alpha"], "requirements": ["alpha==1.0"]}]
    assert found["bounds"] == [{"requirement": "alpha==1.0", "where": place, "why": ""}]
    found = told(patchlock, "gamma")
    bound = f"profiles/tiny.toml:{line_of(locked.profile, '[[constraint]]')}"
    assert found["bounds"] == [{"requirement": "gamma<4", "where": bound, "why": "4 has no wheels"}]
    assert found["bounds_unknown"] == ["alpha"]


def test_installed_distribution_says_with_which_specifier_it_asks(locked: World, patchlock: Patchlock) -> None:
    done = patchlock("install", "mini", "--profile", "tiny")
    assert done.returncode == 0, done.stderr
    found = told(patchlock, "gamma")
    assert {"requirement": "gamma<3", "where": "alpha 1.0", "why": ""} in list(found["bounds"])  # type: ignore[call-overload]
    assert found["bounds_unknown"] == []


def test_a_cut_off_of_its_own_is_named_with_its_date(locked: World, patchlock: Patchlock) -> None:
    rule = '\n[[newer]]\nname = "gamma"\nuntil = "2026-08-07T00:00:00Z"\nwhy = "2.0 is young"\nsource = "tests"\n'
    locked.profile.write_text(locked.profile.read_text() + rule)
    place = f"profiles/tiny.toml:{line_of(locked.profile, '[[newer]]')}"
    text = " ".join(patchlock("why", "mini", "gamma", "--profile", "tiny").stdout.split())
    assert f"gamma until 2026-08-07T00:00:00Z {place}: 2.0 is young" in text
    assert told(patchlock, "gamma")["newer"] == [
        {"until": "2026-08-07T00:00:00Z", "where": place, "why": "2.0 is young"}
    ]


def test_a_record_without_upload_times_is_said_not_to_be_limited_by_the_cut_off(
    world: World, patchlock: Patchlock
) -> None:
    folder = world.catalogue / "profiles" / "indexes"
    folder.mkdir()
    record = '[index]\nurl = "https://vendor.invalid/whl"\n'
    for name, uploaded in (("beta", ""), ("gamma", 'uploaded = "2025-06-01T00:00:00Z"\n')):
        row = f'[[wheel]]\nfilename = "{name}-2.0-py3-none-any.whl"\nsha256 = "{"1" * 64}"\nsource = "tests"\n'
        record += row + uploaded
    (folder / "vendor.toml").write_text(record)
    world.profile.write_text(world.profile.read_text().replace("specificity", 'indexes = ["vendor"]\nspecificity'))
    assert patchlock(*lock_here()).returncode == 0
    text = patchlock("why", "mini", "beta", "--profile", "tiny", "--alternatives").stdout
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert rows[rows.index("cut-off 2026-01-01T00:00:00Z") + 1 :] == [
        "it does not hold for beta: profiles/indexes/vendor.toml does not say when each file was uploaded",
        "newer none in the recorded index vendor",
    ]
    found = {name: told(patchlock, name) for name in ("alpha", "beta", "gamma")}
    assert {name: one["as_of_holds"] for name, one in found.items()} == {"alpha": True, "beta": False, "gamma": True}
    assert found["gamma"]["index"] == found["beta"]["index"] == "vendor (profiles/indexes/vendor.toml)"


def test_line_numbers_are_said_to_be_of_the_patched_files_where_a_patch_is_for_them(
    locked: World, patchlock: Patchlock
) -> None:
    words = "(line numbers are those of the patched files)"
    assert patchlock("why", "mini", "gamma", "--profile", "tiny").stdout.count(words) == 1
    locked.app.write_text(re.sub(r'(?s)\[\[patch\]\]\nid = "alpha.*?(?=\[\[patch\]\]\nid)', "", locked.app.read_text()))
    assert words not in patchlock("why", "mini", "gamma", "--profile", "tiny").stdout


def test_what_a_rule_or_a_patch_takes_out_is_named_with_its_place(locked: World, patchlock: Patchlock) -> None:
    head = 'why = "it needs CUDA"\nsource = "tests"\nop = '
    ensure = '[[patch.ensure]]\ncheck = "no-requirement"\nname = '
    tail = '[[exclude]]\nname = "deepspeed"\nwhy = "it needs nvcc"\nsource = "tests"\n\n'
    for name, op in (
        ("one", '"drop-requirement"\nname = "one"'),
        ("two", '"rename-requirement"\nname = "two"\nto = "six>1"'),
    ):
        tail += f'[[patch]]\nid = "no-{name}"\n{head}{op}\npaths = ["requirements.txt"]\n{ensure}"{name}"\n\n'
    locked.app.write_text(f"{locked.app.read_text()}\n{tail}")
    lines = locked.app.read_text().splitlines()
    place = "patches/mini/app.toml"
    excluded = lines.index("[[exclude]]") + 1
    one, two = (lines.index(f'id = "no-{name}"') for name in ("one", "two"))
    for name, words in {
        "deepspeed": f"{place}:{excluded} excludes it: it needs nvcc",
        "one": f"the patch no-one ({place}:{one}) drops it: it needs CUDA",
        "two": f"the patch no-two ({place}:{two}) asks for six>1 instead: it needs CUDA",
    }.items():
        done = patchlock("why", "mini", name, "--profile", "tiny")
        assert done.stderr == (
            f"error[unknown-distribution]: {name} is not in the lock: {words} (lockfiles/mini/tiny.txt); "
            "the app is meant to run without it\n"
        )


def test_newer_version_that_lost_is_named_with_the_line_that_kept_it_out(locked: World, patchlock: Patchlock) -> None:
    patch = line_of(locked.app, "[[patch]]")
    found = told(patchlock, "gamma", "--alternatives")["alternatives"]
    assert isinstance(found, dict)
    assert (found["fits"], found["would_resolve"]) == ("3.0", False)
    text = patchlock("why", "mini", "gamma", "--profile", "tiny", "--alternatives").stdout
    assert re.search(r"what +asked by +where +without its bound uv takes\n", text), text
    members = [(one["requirement"], one["name"], one["line"]) for one in found["conflict"]["members"]]
    assert members == [("alpha==1.0", "alpha-that-exists", patch)]
    assert any("alpha" in line for line in found["conflict"]["uv"])


def test_newer_version_is_told_by_what_a_lock_takes_now(locked: World, patchlock: Patchlock) -> None:
    root = Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    files = [locked.wheels / "beta-1.5-py3-none-any.whl", wheel(locked.wheels, "beta", "1.6", requires=("kappa",))]
    index(root, [*files, sdists.sdist(locked.wheels, "kappa", "1.0", {}), wheel(locked.wheels, "beta", "1.7.dev1")])
    text = " ".join(patchlock("why", "mini", "beta", "--profile", "tiny", "--alternatives").stdout.split())
    assert (
        "newer 1.7.dev1 would resolve, if the app asked for beta>1.5 beta 1.5 is locked, although there is 1.6" in text
    )
    index(root, [*files[:1], wheel(locked.wheels, "beta", "1.6")])
    found = told(patchlock, "beta", "--alternatives")["alternatives"]
    assert isinstance(found, dict)
    assert (found["fits"], found["taken"], found["held_back"]) == ("1.6", "1.6", "")


def test_what_was_uploaded_after_the_cut_off_is_told_apart(locked: World, patchlock: Patchlock) -> None:
    root = Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index(root, [locked.wheels / "beta-1.5-py3-none-any.whl", wheel(locked.wheels, "beta", "1.7")])
    page = root / "beta" / "index.html"
    old, new = page.read_text().split("<br>\n")
    page.write_text(old + "<br>\n" + new.replace("2025-06-01", "2026-06-01"))
    found = told(patchlock, "beta", "--alternatives")["alternatives"]
    assert isinstance(found, dict)
    assert (found["fits"], found["younger"], found["younger_is_late"], found["conflict"]) == ("", "1.7", True, None)
    # 1.6 was there, but what it requires came later.
    asker = wheel(locked.wheels, "beta", "1.6", requires=("delta",))
    index(root, [locked.wheels / "beta-1.5-py3-none-any.whl", asker])
    index(root, [wheel(locked.wheels, "delta", "1.0")])
    late = root / "delta" / "index.html"
    late.write_text(late.read_text().replace("2025-06-01", "2026-06-01"))
    found = told(patchlock, "beta", "--alternatives")["alternatives"]
    assert isinstance(found, dict)
    assert (found["younger"], found["younger_is_late"]) == ("1.6", False)
    text = patchlock("why", "mini", "beta", "--profile", "tiny", "--alternatives").stdout
    assert "1.6 requires something that was uploaded after the cut-off, 2026-01-01T00:00:00Z" in text


def test_wheels_for_other_machines_only_are_told(locked: World, patchlock: Patchlock) -> None:
    root = Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    made = wheel(locked.wheels, "beta", "1.9", tag="cp314-cp314-win_amd64")
    index(root, [locked.wheels / "beta-1.5-py3-none-any.whl", made])
    found = told(patchlock, "beta", "--alternatives")["alternatives"]
    assert isinstance(found, dict)
    assert (found["fits"], found["younger"], found["elsewhere"], found["unmet"]) == ("", "", "1.9", "")
    # 2.0 has a wheel for this one, and what it requires has none.
    index(root, [locked.wheels / "beta-1.5-py3-none-any.whl", wheel(locked.wheels, "beta", "2.0", requires=("delta",))])
    found = told(patchlock, "beta", "--alternatives")["alternatives"]
    assert isinstance(found, dict)
    assert (found["elsewhere"], found["unmet"]) == ("", "2.0")
    text = patchlock("why", "mini", "beta", "--profile", "tiny", "--alternatives").stdout
    has_one = "2.0 has a wheel for Python 3.11 on linux-x86_64, but requires"
    assert f"{has_one} something that has none" in " ".join(text.split())
    # It has wheels for others.
    index(
        root,
        [
            wheel(locked.wheels, "delta", "1.0", tag="cp314-cp314-win_amd64"),
            sdists.sdist(locked.wheels, "delta", "1.1", {}),
        ],
    )
    text = patchlock("why", "mini", "beta", "--profile", "tiny", "--alternatives").stdout
    assert f"{has_one} delta 1.1, which has none" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gama",), "unknown-distribution", 'gama is not in the lock (lockfiles/mini/tiny.txt); did you mean "gamma"?'),
        (
            ("nothere",),
            "unknown-distribution",
            "nothere is not in the lock (lockfiles/mini/tiny.txt); that file lists what is installed with the app\n",
        ),
        (("gamma", "--platform", "linux-x86"), "usage", 'did you mean "linux-x86_64"?'),
    ],
    ids=["distribution", "unlike all", "platform"],
)
def test_mistyped_word_is_answered_with_the_nearest(
    locked: World,
    patchlock: Patchlock,
    arguments: tuple[str, ...],
    code: str,
    words: str,
) -> None:
    done = patchlock("why", "mini", *arguments, "--profile", "tiny")
    assert f"error[{code}]" in done.stderr
    assert words in done.stderr


@pytest.mark.parametrize(
    "words", ["why mini gamma", "run mini", "verify mini", "update mini", "rollback mini", "bench mini"]
)
def test_refused_pair_gets_the_reason_and_not_the_advice_to_lock_or_install(
    world: World, patchlock: Patchlock, words: str
) -> None:
    refused = '\n[[refused]]\nprofile = "tiny"\nwhy = "no wheels"\nsource = "https://example.com/why"\n'
    world.app.write_text(world.app.read_text() + refused)
    done = patchlock(*words.split(), "--profile", "tiny")
    assert done.stderr.startswith("error[refused]: mini cannot run on tiny on "), done.stderr
    assert done.stderr.rstrip().endswith(": no wheels (https://example.com/why)")
