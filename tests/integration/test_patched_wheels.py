"""Patched distributions in locks and installs: the lock names our wheel, each machine makes it, nothing is edited."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from conftest import Patchlock, Said
from miniature import World, index, wheel

from patchlock import lockfile, patched_wheels, platforms, probes, wheelhouse
from patchlock.catalogue import Catalogue
from patchlock.cli import main
from patchlock.errors import DownloadError, LockStaleError
from patchlock.gathering import Request
from patchlock.identities import Sha256
from patchlock.lockfile import Lock, LockedPackage

RULE = """
[[distribution]]
name = "alpha"
why = "it must say that it is patched"
source = "tests"
"""
PATCH = """\
[distribution]
why = "it must say that it is patched"
source = "tests"
versions = ">=1,<3"
fixed-from = "2.5"

[[patch]]
id = "says-so"
why = "it must say that it is patched"
source = "tests"
op = "replace-text"
paths = ["alpha.py"]
old = '__version__ = "1.0"'
new = '__version__ = "1.0 patched"'
[[patch.ensure]]
check = "contains"
text = "patched"
"""
CASES = """\
import alpha

def case_says_so():
    assert "patched" in alpha.__version__
"""

Face = Callable[..., Said]


def _declare(world: World, *, text: str = PATCH, cases: str = CASES, rule: str = RULE) -> Path:
    """Let the app want alpha patched; give the file of the patches."""
    folder = world.catalogue / "patches" / "distributions" / "alpha"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "patch.toml").write_text(text)
    (folder / "cases.py").write_text(cases)
    world.app.write_text(world.app.read_text() + rule)
    return folder / "patch.toml"


def _edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def _platform() -> str:
    platform = platforms.platform_of(probes.probe())
    assert platform is not None
    return platform.name


def _file(world: World) -> Path:
    return world.catalogue / "lockfiles" / "mini" / f"tiny.{_platform()}.txt"


def _lock(world: World) -> Lock:
    return lockfile.parse(_file(world).read_text(), "lock")


def _alpha(world: World) -> LockedPackage:
    return next(package for package in _lock(world).packages if package.name == "alpha")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def patched_once(locked_once: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lock once with alpha patched; tests take copies of the folder, with its cache."""
    folder = tmp_path_factory.mktemp("patched")
    shutil.copytree(locked_once.catalogue.parent, folder / "world")
    made = _at(folder)
    _declare(made)
    env = made.env | {"PATCHLOCK_CACHE_DIR": str(folder / "cache"), "UV_CACHE_DIR": str(folder / "uv")}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (env | {"UV_OFFLINE": "1"}).items():
            patch.setenv(name, value)
        assert main(["lock", "mini", "--platform", _platform()]) == 0
    return folder


def _at(folder: Path) -> World:
    index, catalogue = folder / "world" / "index", folder / "world" / "catalogue"
    env = {"UV_DEFAULT_INDEX": index.as_uri(), "PATCHLOCK_CATALOGUE": str(catalogue)}
    return World(catalogue=catalogue, wheels=folder / "world" / "wheels", env=env)


@pytest.fixture
def patched(patched_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Give the test a world whose lock has alpha patched."""
    shutil.copytree(patched_once, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("uv"))
    made = _at(tmp_path)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    return made


# --- the lock ---------------------------------------------------------------------------------------------------------


def test_lock_names_our_wheel_and_what_it_is_made_from(patched: World) -> None:
    alpha = _alpha(patched)
    original = patched.wheels / "alpha-1.0-py3-none-any.whl"
    assert alpha.original is not None
    assert (str(alpha.original.version), alpha.original.sha256) == ("1.0", _sha256(original))
    assert alpha.original.patches == ("says-so",)
    assert str(alpha.version).startswith("1.0+patchlock.")
    text = _file(patched).read_text()
    assert f"\nalpha=={alpha.version} --hash=sha256:{alpha.sha256} # requirements.txt:2" in text
    assert f'# [patched.alpha]\n# version = "1.0"\n# sha256 = "{alpha.original.sha256}"\n' in text
    assert "# `patchlock patch wheel alpha --version 1.0 --output wheels`\n" in text
    assert lockfile.render(_lock(patched)) == text


def test_lock_is_fresh_and_the_same_again(patched: World, face: Face) -> None:
    before = _file(patched).read_bytes()
    assert face("lock", "mini", "--platform", _platform()).returncode == 0
    assert _file(patched).read_bytes() == before
    said = face("lock", "mini", "--check", "--platform", _platform())
    assert (said.returncode, "fresh" in said.stdout) == (0, True), said.stdout


def test_lock_without_the_rule_has_no_word_of_it(locked: World) -> None:
    assert "patched" not in _file(locked).read_text()


@pytest.mark.parametrize("file", ["patch.toml", "cases.py"])
def test_change_of_the_patches_makes_the_lock_stale(patched: World, face: Face, file: str) -> None:
    path = patched.catalogue / "patches" / "distributions" / "alpha" / file
    path.write_text(path.read_text() + "# seen\n")
    said = face("lock", "mini", "--check", "--platform", _platform())
    assert said.returncode == 1
    assert f"stale      patches/distributions/alpha/{file} has changed since the lock was made" in said.stdout


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (
            ("old = '__version__ = \"1.0\"'", "old = 'nowhere'"),
            "the patched alpha-1.0-py3-none-any.whl does not do what it must, so it was not made",
        ),
        (('versions = ">=1,<3"', 'versions = "<1"'), "the patches of alpha are for <1, not for 1.0"),
        (('name = "alpha"\nwhy', 'name = "delta"\nwhy'), 'there is no patch for a distribution "delta"'),
        (('name = "alpha"\nwhy', 'name = "alhpa"\nwhy'), 'did you mean "alpha"?'),
    ],
    ids=["patches that do not hold", "another version", "unknown", "misspelt"],
)
def test_lock_is_refused_where_the_patches_cannot_be_had(
    locked: World, face: Face, change: tuple[str, str], detail: str
) -> None:
    path = _declare(locked)
    _edit(path if change[0] in path.read_text() else locked.app, *change)
    said = face("lock", "mini", "--platform", _platform())
    assert said.returncode != 0
    assert detail in said.stdout + said.stderr


def test_distribution_that_nobody_asks_for_is_an_error(locked: World, face: Face) -> None:
    folder = _declare(locked, rule=RULE.replace("alpha", "delta")).parent
    shutil.copytree(folder, folder.with_name("delta"))
    said = face("lock", "mini", "--platform", _platform())
    assert "nobody asks for delta, which is to be patched (patches/mini/app.toml:" in said.stdout
    assert "remove that [[distribution]]" in said.stdout


def test_rule_for_another_profile_changes_nothing(locked: World, face: Face) -> None:
    before = _file(locked).read_text()
    (locked.catalogue / "profiles" / "other.toml").write_text(locked.profile.read_text())
    _declare(locked, rule=RULE + 'profiles = ["other"]\n')
    assert face("lock", "mini", "--profile", "tiny", "--platform", _platform()).returncode == 0
    lines = lambda text: [line for line in text.splitlines() if not line.startswith("#")]  # noqa: E731
    assert lines(_file(locked).read_text()) == lines(before)
    assert "distributions/alpha" not in _file(locked).read_text()


@pytest.mark.parametrize(
    ("text", "cases", "told"),
    [
        (PATCH, "import alpha\n\ndef case_fixed():\n    alpha.__version__\n", "alpha 1.0 has it fixed upstream"),
        (PATCH.replace(">=1,<3", "<1").replace('"2.5"', '"1.0"'), CASES, "alpha 1.0 enters as it is: fixed upstream"),
    ],
    ids=["by its cases", "beyond the range"],
)
def test_fixed_upstream_enters_as_it_is_and_that_is_told(
    locked: World, face: Face, text: str, cases: str, told: str
) -> None:
    _declare(locked, text=text, cases=cases)
    said = face("lock", "mini", "--platform", _platform())
    assert (said.returncode, told in said.stdout + said.stderr) == (0, True), said.stdout + said.stderr
    assert (str(_alpha(locked).version), _alpha(locked).original) == ("1.0", None)


def test_diff_and_why_say_what_was_patched(patched: World, face: Face) -> None:
    alpha = _alpha(patched)
    assert alpha.original is not None
    said = face("why", "mini", "alpha", "--profile", "tiny").stdout
    assert f"made on each machine from alpha 1.0, sha256 {alpha.original.sha256}" in said
    assert "patches/distributions/alpha/patch.toml: says-so" in said
    data = json.loads(face("why", "mini", "alpha", "--profile", "tiny", "--json").stdout)["data"]["patched"]
    assert (data["version"], data["patches"], data["why"]) == ("1.0", ["says-so"], ["it must say that it is patched"])
    patched.app.write_text(patched.app.read_text().replace(RULE, ""))
    said = face("lock", "mini", "--diff", "--platform", _platform()).stdout
    assert f"{alpha.version} → 1.0" in said
    assert "patched by says-so → as upstream made it" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('# [patched.delta]\n# version = "1"\n# sha256 = "0"\n# patches = []\n', "what delta is patched from"),
        ('# [patched.alpha]\n# version = "one"\n# sha256 = "0"\n# patches = []\n', "a value of the wrong kind"),
        ("# patched = 3\n", "a value of the wrong kind"),
        ('# [patched.alpha]\n# version = "1"\n', 'lacks the key "sha256"'),
    ],
    ids=["no line", "no version", "no table", "no hash"],
)
def test_damaged_table_of_originals_is_refused(locked: World, text: str, says: str) -> None:
    whole = _file(locked).read_text()
    with pytest.raises(lockfile.LockFormatError, match=says):
        lockfile.parse(
            whole.replace("# format = 1\n", "# format = 1\n" + text * text.startswith("# p")).replace(
                "# [inputs]", text * text.startswith("# [") + "# [inputs]"
            ),
            "lock",
        )


# --- the install ------------------------------------------------------------------------------------------------------


def _site(home: Path) -> Path:
    (found,) = home.glob("mini@tiny/environments/*/lib/python*/site-packages")
    return found


def _files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): _sha256(path) for path in folder.rglob("*") if path.is_file()}


def test_install_makes_the_wheel_that_the_lock_names(patched: World, face: Face, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "cache")  # as on another machine
    said = face("install", "mini")
    assert said.returncode == 0, said.stderr
    site = _site(tmp_path / "installed")
    assert (site / "alpha.py").read_text() == '__version__ = "1.0 patched"\n'
    assert [path.name for path in site.glob("alpha-*")] == [f"alpha-{_alpha(patched).version}.dist-info"]


def _request(world: World) -> Request:
    opened = Catalogue(root=world.catalogue)
    return Request(
        app=opened.app("mini"),
        profile=opened.profile("tiny"),
        platform=platforms.PLATFORMS[_platform()],
        catalogue=opened,
        home=world.catalogue.parent.parent / "installed",
        cache=world.catalogue.parent.parent / "cache",
    )


def _provide(world: World) -> Path:
    said: list[str] = []
    before = wheelhouse.find(_request(world).cache, _alpha(world).sha256)
    is_there = before is not None and _sha256(before) == _alpha(world).sha256
    (made,) = patched_wheels.provide(_request(world), _lock(world), said.append).values()
    assert said == ([] if is_there else ["Building alpha==1.0", "Built alpha==1.0"])
    assert made.sha256 == _sha256(made.path) == _alpha(world).sha256
    return made.path


def test_wheel_that_lies_here_is_used_without_asking(patched: World) -> None:
    shutil.rmtree(patched.catalogue.parent / "index")
    shutil.rmtree(wheelhouse.place(_request(patched).cache, _alpha(patched).upstream.sha256, "x").parent)
    before = wheelhouse.find(_request(patched).cache, _alpha(patched).sha256)
    assert _provide(patched) == before


@pytest.mark.parametrize("damaged", ["ours", "original", "both"])
def test_damaged_wheel_is_made_again(patched: World, damaged: str) -> None:
    alpha = _alpha(patched)
    wanted = {"ours": [alpha], "original": [alpha.upstream], "both": [alpha, alpha.upstream]}[damaged]
    for package in wanted:
        kept = wheelhouse.find(_request(patched).cache, package.sha256)
        assert kept is not None
        kept.write_bytes(b"damaged")
    _provide(patched)


def test_other_patches_than_the_locks_are_refused(patched: World) -> None:
    shutil.rmtree(_request(patched).cache / "wheels")
    _edit(patched.catalogue / "patches/distributions/alpha/patch.toml", "1.0 patched", "1.0 patched otherwise")
    with pytest.raises(LockStaleError) as caught:
        _provide(patched)
    said = str(caught.value)
    assert said.startswith("the patches of alpha make 1.0+patchlock.")
    assert f"of 1.0 now, and the lock names {_alpha(patched).version} (lockfiles/mini/" in said
    assert said.endswith("run `patchlock lock mini --profile tiny`")


def test_original_of_other_bytes_is_refused(patched: World) -> None:
    shutil.rmtree(_request(patched).cache / "wheels")
    made = wheel(patched.wheels, "alpha", "1.0", files={"alpha.py": "evil = True\n"})
    shutil.rmtree(patched.catalogue.parent / "index" / "alpha")
    index(patched.catalogue.parent / "index", [made])
    with pytest.raises(DownloadError) as caught:
        _provide(patched)
    assert caught.value.what == "the index does not have the wheel of alpha 1.0 that is to be patched"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("", RULE, "alpha is to be patched, and was not when the lock was made"),
        (RULE, "", "alpha is patched in it, and the catalogue does not ask for that any more"),
    ],
    ids=["added", "gone"],
)
def test_install_refuses_a_lock_that_was_made_without_or_with_the_rule(
    locked: World, face: Face, before: str, after: str, why: str
) -> None:
    text = locked.app.read_text()
    _declare(locked, rule=before)
    if before:
        assert face("lock", "mini", "--platform", _platform()).returncode == 0
    locked.app.write_text(text + after)
    said = face("install", "mini")
    assert (said.returncode, why in said.stderr) == (1, True), said.stderr


# --- two environments of one cache ------------------------------------------------------------------------------------


def test_patched_and_plain_environments_of_one_cache_do_not_see_each_other(
    locked: World, face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_LINK_MODE", "hardlink")
    assert face("install", "mini").returncode == 0
    plain = _site(tmp_path / "installed")
    before = _files(plain)
    _declare(locked)
    assert face("lock", "mini", "--platform", _platform()).returncode == 0
    monkeypatch.setenv("PATCHLOCK_HOME", str(tmp_path / "second"))
    assert face("install", "mini").returncode == 0
    ours = _site(tmp_path / "second")
    assert "patched" in (ours / "alpha.py").read_text()
    assert _files(plain) == before
    assert (plain / "beta.py").stat().st_ino == (ours / "beta.py").stat().st_ino  # it is one cache
    assert (plain / "alpha.py").stat().st_ino != (ours / "alpha.py").stat().st_ino


def _plain(folder: Path, lock: Path) -> Path:
    env = os.environ | {"UV_LINK_MODE": "hardlink"}
    subprocess.run([uv.find_uv_bin(), "venv", "-q", str(folder)], env=env, check=True)
    sync = [
        uv.find_uv_bin(),
        "pip",
        "sync",
        "-q",
        "--no-config",
        "--require-hashes",
        "--python",
        str(folder),
        str(lock),
    ]
    subprocess.run(sync, env=env, check=True)
    return next(folder.glob("lib/python*/site-packages/alpha.py"))


def test_edit_in_place_leaks_through_uvs_cache(locked: World, tmp_path: Path) -> None:
    """Show what patched wheels are for: one environment is edited, and the others have the edit too."""
    first = _plain(tmp_path / "first", _file(locked))
    second = _plain(tmp_path / "second", _file(locked))
    with first.open("a") as file:
        file.write("edited = True\n")
    assert "edited" in second.read_text()


# --- other shapes of the lock -----------------------------------------------------------------------------------------


def test_other_installers_take_the_lock_after_the_commands_in_it(
    patched: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    for command in lockfile.patch_commands(_lock(patched).packages):
        assert patchlock(*command.split()[1:]).returncode == 0
    subprocess.run([uv.find_uv_bin(), "venv", "-q", str(tmp_path / "venv")], check=True)
    sync = [
        uv.find_uv_bin(),
        "pip",
        "sync",
        "-q",
        "--require-hashes",
        "--find-links",
        "wheels",
        "--python",
        str(tmp_path / "venv"),
    ]
    subprocess.run([*sync, str(_file(patched))], cwd=tmp_path, check=True)
    (module,) = (tmp_path / "venv").glob("lib/python*/site-packages/alpha.py")
    assert "patched" in module.read_text()


def test_pylock_is_refused_with_what_to_do(patched: World, face: Face) -> None:
    said = face("export", "mini", "--profile", "tiny", "--format", "pylock")
    assert said.returncode == 1
    assert f"there is none of alpha {_alpha(patched).version}, which is patched on each machine" in said.stderr
    assert (
        "patchlock patch wheel alpha --version 1.0 --output wheels && "
        f"uv pip sync --require-hashes --find-links wheels {_file(patched)}`"
    ) in said.stderr


def test_sbom_has_the_original_as_ancestor_and_each_diff(patched: World, face: Face) -> None:
    said = face("export", "mini", "--profile", "tiny", "--format", "cyclonedx")
    alpha = next(one for one in json.loads(said.stdout)["components"] if one["name"] == "alpha")
    (ancestor,) = alpha["pedigree"]["ancestors"]
    assert (ancestor["purl"], ancestor["hashes"]) == (
        "pkg:pypi/alpha@1.0",
        [{"alg": "SHA-256", "content": _sha256(patched.wheels / "alpha-1.0-py3-none-any.whl")}],
    )
    (patch,) = alpha["pedigree"]["patches"]
    assert patch["resolves"][0]["id"] == "says-so"
    assert '+__version__ = "1.0 patched"' in patch["diff"]["text"]["content"]


def test_dockerfile_makes_the_wheel_before_it_installs(patched: World, face: Face) -> None:
    said = face("export", "mini", "--profile", "tiny", "--platform", _platform(), "--format", "dockerfile")
    made = said.stdout.index("/tools/bin/python -m patchlock patch wheel alpha --version 1.0 --output /wheels")
    copied = said.stdout.index("COPY --from=source /wheels /wheels\n")
    assert made < copied < said.stdout.index("--find-links /wheels /lock.txt")


def test_sha_is_of_the_bytes_in_the_wheelhouse(patched: World, tmp_path: Path) -> None:
    for digest in (_alpha(patched).sha256, _alpha(patched).upstream.sha256):
        kept = wheelhouse.find(tmp_path / "cache", Sha256(digest))
        assert kept is not None
        assert _sha256(kept) == digest
