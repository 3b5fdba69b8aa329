"""What an app asks of the resolver beyond upstream's requirements: exclusions, overrides, exceptions, upgrades."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import sdists
from conftest import Patchlock
from miniature import World, index, lock_here, wheel

RULE = """
[[{table}]]
{rule}
why = "x"
source = "tests"
"""
NEWER = "2026-06-01T00:00:00Z"


def _lines(world: World) -> list[str]:
    text = (world.catalogue / "lockfiles" / "mini" / "tiny.linux-x86_64.txt").read_text()
    return [line for line in text.splitlines() if not line.startswith("#")]


def _names(world: World) -> list[str]:
    return [line.partition("==")[0] for line in _lines(world)]


def _detail(patchlock: Patchlock) -> str:
    pair: dict[str, str] = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"][0]
    return pair["detail"]


def _add(world: World, table: str, rule: str) -> None:
    world.app.write_text(world.app.read_text() + RULE.format(table=table, rule=rule))


@pytest.fixture
def richer(world: World, tmp_path: Path) -> World:
    """An index in which epsilon asks for alpha 1, and for zeta and zeta 2, which was uploaded later."""
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    made = [
        wheel(world.wheels, "epsilon", "1.0", requires=("zeta", "beta<1.5")),
        wheel(world.wheels, "beta", "1.2"),
        wheel(world.wheels, "beta", "1.5"),
        wheel(world.wheels, "zeta", "1.0"),
        wheel(world.wheels, "zeta", "2.0"),
    ]
    index(root, made)
    page = root / "zeta" / "index.html"
    first, second = page.read_text().splitlines()[1:]
    page.write_text(f"{first}\n{second.replace('2025-06-01', '2026-03-01')}\n")
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nepsilon\n")
    world.name_commit(tmp_path)
    return world


def test_every_line_says_who_asked_for_it(richer: World, patchlock: Patchlock, tmp_path: Path) -> None:
    needed = richer.upstream / "requirements.txt"
    needed.write_bytes(needed.read_bytes() + b"zeta<1; python_version < '3'\n")
    richer.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    reasons = {line.partition("==")[0]: line.partition(" # ")[2] for line in _lines(richer)}
    assert reasons == {
        "alpha": "requirements.txt:1 (patch alpha-that-exists) · wheel py3-none-any",
        "beta": "via epsilon · wheel py3-none-any",
        "epsilon": "requirements.txt:2 · wheel py3-none-any",
        "gamma": "via alpha · wheel py3-none-any",
        "zeta": "via epsilon · wheel py3-none-any",
    }


def test_pre_release_that_nobody_asks_for_is_told(richer: World, patchlock: Patchlock, tmp_path: Path) -> None:
    root = Path(richer.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index(root, [wheel(richer.wheels, "theta", "1.0.dev1")])
    needed = richer.upstream / "requirements.txt"
    needed.write_bytes(b"alpha==9.0\ntheta\n")
    richer.name_commit(tmp_path)
    assert (
        "no final version fits, and a pre-release is taken: theta 1.0.dev1; look whether the app works with it\n"
        in patchlock(*lock_here()).stderr
    )
    needed.write_bytes(b"alpha==9.0\ntheta>=1.0.dev1\n")
    richer.name_commit(tmp_path)
    assert "pre-release" not in patchlock(*lock_here()).stderr


def test_sdist_that_keeps_a_final_release_away_is_named(richer: World, patchlock: Patchlock, tmp_path: Path) -> None:
    root = Path(richer.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    final = wheel(richer.wheels, "theta", "1.0", requires=["kappa==4.9.*"])
    early = wheel(richer.wheels, "theta", "1.1.dev1", requires=["kappa==4.11.*"])
    made = [final, early, wheel(richer.wheels, "kappa", "4.11.0"), sdists.sdist(richer.wheels, "kappa", "4.9.3", {})]
    index(root, made)
    (richer.upstream / "requirements.txt").write_bytes(b"alpha==9.0\ntheta\n")
    richer.name_commit(tmp_path)
    told = (
        "a pre-release is taken, theta {}, although there is 1.0: that requires kappa 4.9.3, which has no wheel that "
        "fits, only an sdist; for a final one, allow its build with a [[build]] table in patches/mini/app.toml\n"
    )
    assert told.format("1.1.dev1") in patchlock(*lock_here()).stderr
    early = wheel(richer.wheels, "theta", "1.2.dev1")
    index(root, [final, early, made[-1], wheel(richer.wheels, "kappa", "4.9.1", tag="cp27-cp27m-win32")])  # for others
    assert told.format("1.2.dev1") in patchlock(*lock_here()).stderr
    index(root, [wheel(richer.wheels, "iota", "0.3.dev1"), sdists.sdist(richer.wheels, "iota", "0.2", {})])
    (richer.upstream / "requirements.txt").write_bytes(b"alpha==9.0\niota\n")
    richer.name_commit(tmp_path)
    said = patchlock(*lock_here()).stderr
    assert "a pre-release is taken, iota 0.3.dev1, although there is 0.2, which has no wheel that fits, only an" in said
    assert "no final version fits" not in said


def test_older_version_whose_newer_one_is_or_requires_an_sdist_is_told(
    richer: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    root = Path(richer.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    newest = wheel(richer.wheels, "theta", "1.2", requires=["kappa>=4.9,<=4.9.3"])
    older = [wheel(richer.wheels, "theta", version) for version in ("0.9", "1.0")]
    older += [wheel(richer.wheels, "lambda", "0.1+cpu")]
    sources = (("kappa", "4.9.3"), ("iota", "0.2"), ("lambda", "0.2"))
    built = [sdists.sdist(richer.wheels, name, version, {}) for name, version in sources]
    index(root, [newest, *older, wheel(richer.wheels, "kappa", "5.0"), wheel(richer.wheels, "iota", "0.1"), *built])
    needed = richer.upstream / "requirements.txt"
    needed.write_bytes(b"alpha==9.0\ntheta\niota\nlambda\n")
    richer.name_commit(tmp_path)
    told = patchlock(*lock_here()).stderr
    how = "for a newer one, allow its build with a [[build]] table in patches/mini/app.toml"
    requires = "theta 1.0 is locked, although there is 1.2: that requires kappa 4.9.3, which has only an sdist"
    assert f"{requires}; {how}" in told
    assert f"iota 0.1 is locked, although there is 0.2, which has only an sdist; {how}" in told
    assert f"lambda 0.1+cpu is locked, although there is 0.2, which has only an sdist; {how}" in told
    needed.write_bytes(b"alpha==9.0\ntheta<1.2\niota<0.2\n")
    richer.name_commit(tmp_path)
    assert "although there is" not in patchlock(*lock_here()).stderr


def test_excluded_distribution_is_left_out(richer: World, patchlock: Patchlock) -> None:
    _add(richer, "exclude", 'name = "zeta"')
    assert patchlock(*lock_here()).returncode == 0
    assert _names(richer) == ["alpha", "beta", "epsilon", "gamma"]


def test_override_replaces_what_a_distribution_asks_for(richer: World, patchlock: Patchlock) -> None:
    assert patchlock(*lock_here()).returncode == 0
    assert not [line for line in _lines(richer) if line.startswith("beta==1.5")]
    _add(richer, "override", 'requirement = "beta==1.5"')
    assert patchlock(*lock_here()).returncode == 0
    assert [line for line in _lines(richer) if line.startswith("beta==1.5")]


def test_exception_from_the_cut_off(richer: World, patchlock: Patchlock) -> None:
    assert patchlock(*lock_here()).returncode == 0
    assert "zeta==1.0" in "".join(_lines(richer))
    _add(richer, "newer", f'name = "zeta"\nuntil = "{NEWER}"')
    assert patchlock(*lock_here()).returncode == 0
    assert "zeta==2.0" in "".join(_lines(richer))


def test_rules_for_another_profile_are_not_followed(richer: World, patchlock: Patchlock) -> None:
    other = richer.profile.with_name("other.toml")
    other.write_text(richer.profile.read_text())
    _add(richer, "exclude", 'name = "zeta"\nprofiles = ["other"]')
    assert patchlock(*lock_here()).returncode == 0
    assert "zeta" in _names(richer)


@pytest.mark.parametrize(
    ("table", "rule", "clause"),
    [
        (
            "exclude",
            'name = "eta"',
            "nobody asks for eta: remove the [[exclude]] table at patches/mini/app.toml:58",
        ),
        (
            "override",
            'requirement = "eta<1"',
            "patches/mini/app.toml:58 overrides nothing; correct its name, or remove it",
        ),
        ("newer", 'name = "eta"', "the exception from the cut-off for eta lets nothing newer in; remove it"),
        ("newer", 'name = "beta"', "the exception from the cut-off for beta lets nothing newer in; remove it"),
    ],
)
def test_rule_without_effect_is_an_error(
    richer: World, patchlock: Patchlock, table: str, rule: str, clause: str
) -> None:
    _add(richer, table, rule)
    assert clause in _detail(patchlock)
    assert not (richer.catalogue / "lockfiles" / "mini").exists()


@pytest.mark.parametrize("is_refused", [False, True], ids=["possible", "refused"])
def test_exclusion_counts_on_every_platform_of_a_profile(
    richer: World, patchlock: Patchlock, *, is_refused: bool
) -> None:
    made = [
        wheel(richer.wheels, "epsilon", "1.1", requires=("zeta", 'eta; sys_platform == "win32"')),
        wheel(richer.wheels, "eta", "1.0"),
    ]
    index(Path(richer.env["UV_DEFAULT_INDEX"].removeprefix("file://")), made)
    _add(richer, "exclude", 'name = "eta"')
    if is_refused:
        _add(richer, "refused", 'profile = "tiny"\nplatforms = ["windows-amd64"]')
    done = patchlock("lock", "mini", "--platform", "linux-x86_64")
    assert done.returncode == int(is_refused), done.stdout
    assert ("nobody asks for eta" in done.stdout) == is_refused


def test_one_distribution_is_upgraded_and_stays_so(richer: World, patchlock: Patchlock) -> None:
    assert patchlock(*lock_here()).returncode == 0
    before = _lines(richer)
    assert patchlock(*lock_here("--upgrade", "--package", "Zeta")).returncode == 0
    upgraded = _lines(richer)
    assert [line.split()[0] for line in upgraded if line not in before] == ["zeta==2.0"]
    lock = richer.catalogue / "lockfiles" / "mini" / "tiny.linux-x86_64.txt"
    assert re.search(r'\n# \[newer\]\n# zeta = "20\d\d-', lock.read_text())
    data = lock.read_bytes()
    assert patchlock(*lock_here()).returncode == 0
    assert lock.read_bytes() == data
    assert patchlock(*lock_here("--as-of", "commit")).returncode == 0
    assert _lines(richer) == before


def test_everything_is_upgraded(richer: World, patchlock: Patchlock) -> None:
    assert patchlock(*lock_here("--upgrade")).returncode == 0
    assert "zeta==2.0" in "".join(_lines(richer))
    lock = richer.catalogue / "lockfiles" / "mini" / "tiny.linux-x86_64.txt"
    assert re.search(r'\n# as-of = "20\d\d-\d\d-\d\dT[0-9:]{8}Z"\n', lock.read_text())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--package", "zeta"], "--package needs --upgrade"),
        (["--upgrade", "--as-of", "now"], "--upgrade and --as-of both say how new files may be"),
        (["--upgrade", "--package", "a b"], '--package "a b" is not the name of a distribution'),
    ],
)
def test_options_that_do_not_go_together(patchlock: Patchlock, arguments: list[str], sentence: str) -> None:
    done = patchlock("lock", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_upgrade_of_what_is_not_there(richer: World, patchlock: Patchlock) -> None:
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock(*lock_here("--upgrade", "--package", "eta"))
    assert done.returncode == 1
    assert "eta is not in the lock" in done.stdout
