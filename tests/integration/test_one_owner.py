"""One file, one owner, and no file outside: two wheels that write one path are refused before anything is switched."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import Patchlock
from indexes import serving
from miniature import World, lock_here, seal, this_platform, wheel
from sdists import offer

from patchlock.model import environment_layout

EXCEPTION = """
[[exception]]
rule = "one-owner"
distributions = ["alpha", "beta", "gamma"]
why = "both are the same"
source = "tests"
"""


def _swap(world: World, files: Mapping[str, str | bytes], *, is_listed: bool = True) -> None:
    """Put another beta into the index and the lock, as somebody does who seals a lock by hand."""
    (Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta" / "index.html").unlink()
    made = wheel(world.wheels, "beta", "1.5", files={"beta.py": "\n", **(files if is_listed else {})})
    if not is_listed:
        with zipfile.ZipFile(made, "a") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
    offer(world, made)
    path = world.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    path.write_text(re.sub(r"(beta==1\.5 --hash=sha256:)[0-9a-f]+", rf"\g<1>{digest}", path.read_text()))
    seal(path)


def _nothing_is_switched(tmp_path: Path) -> bool:
    return not list((tmp_path / "installed").glob("mini@tiny/current"))


@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "not in its RECORD"])
@pytest.mark.parametrize("text", ["evil = 1\n", '__version__ = "9.9"\n'], ids=["another size", "the same size"])
def test_a_wheel_that_overwrites_the_module_of_another_one_is_not_installed(
    locked: World, patchlock: Patchlock, tmp_path: Path, is_listed: bool, text: str
) -> None:
    _swap(locked, {"gamma.py": text}, is_listed=is_listed)
    done = patchlock("install", "mini")
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert re.fullmatch(
        r"error\[wheel\]: beta 1\.5 \(requirements\.txt:3\) and gamma 2\.0 \(via alpha\) both write gamma\.py with "
        r"different bytes, so which one counts is chance \(\S+\); nothing was switched to it: drop one of them from the "
        r"lock, or declare an \[\[exception\]\] with its reason, and lock again",
        line,
    )
    assert _nothing_is_switched(tmp_path)


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        pytest.param({"gamma.py": '__version__ = "2.0"\n'}, "", id="the same bytes"),
        pytest.param({"gamma/__init__.py": "\n"}, "", id="another path"),
        pytest.param({"gamma.py": "other = 1\n"}, EXCEPTION, id="excepted with a reason"),
    ],
)
def test_what_does_no_harm_is_installed(
    locked: World, patchlock: Patchlock, files: dict[str, str | bytes], rule: str
) -> None:
    _swap(locked, files)
    if rule:
        locked.app.write_text(locked.app.read_text() + rule)
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    deep = patchlock("verify", "mini", "--deep")
    assert "ok      present   one-owner: no package has overwritten a file of another one\n" in deep.stdout
    assert deep.returncode == 0, deep.stdout


def test_deep_sees_what_an_install_by_an_older_patchlock_left(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert patchlock("install", "mini").returncode == 0
    [packages] = (tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages")
    record = packages / "beta-1.5.dist-info" / "RECORD"
    record.write_text(record.read_text() + "gamma.py,,\n")
    done = patchlock("verify", "mini", "--deep", "--json")
    checks = {check["id"]: check for check in json.loads(done.stdout)["data"]["checks"]}
    assert checks["one-owner"]["passed"] is False
    assert "both write gamma.py with different bytes" in checks["one-owner"]["detail"]
    assert "run `patchlock lock mini --profile tiny`" in json.loads(done.stdout)["error"]["remedy"]


NAMES = {
    "leaves": ("../../escape.py", "leaves the folder"),
    "absolute": ("/escape.py", "is an absolute path"),
    "backslash": ("a\\..\\escape.py", "has a backslash in its name"),
    "scripts": ("beta-1.5.data/scripts/../../escape", "leaves the folder"),
}


@pytest.mark.parametrize(("name", "why"), NAMES.values(), ids=list(NAMES))
def test_a_wheel_with_a_member_outside_is_not_installed(
    locked: World, patchlock: Patchlock, tmp_path: Path, name: str, why: str
) -> None:
    """uv would drop the member without a word."""
    _swap(locked, {name: "x = 1\n"})
    pages = Path(locked.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    with serving(pages, locked.wheels, prefix="/pypi") as address:
        env = {"UV_DEFAULT_INDEX": address, "UV_OFFLINE": "0", "UV_CACHE_DIR": str(tmp_path / "cold")}
        done = patchlock("install", "mini", env=env)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert line.startswith(f"error[wheel]: beta-1.5-py3-none-any.whl has a file that {why}: {name!r} (")
    assert line.endswith("; do not install it; report it to its authors")
    assert _nothing_is_switched(tmp_path)
    assert not list(tmp_path.rglob("escape*"))


OURS = ["lock.txt", "receipt.toml", "constraints.txt", "catalogue/apps.toml", "pyvenv.cfg"]


@pytest.mark.parametrize("name", OURS)
def test_a_wheel_that_writes_files_of_patchlock_is_not_installed(
    locked: World, patchlock: Patchlock, tmp_path: Path, name: str
) -> None:
    _swap(locked, {f"beta-1.5.data/data/{name}": "x\n"})
    done = patchlock("install", "mini")
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert line.startswith("error[wheel]: the wheel of beta 1.5 has files that do not belong into an environment: ")
    assert f"/{name} (" in line
    assert _nothing_is_switched(tmp_path)


def test_every_file_of_patchlock_in_a_generation_is_reserved(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert patchlock("install", "mini").returncode == 0
    [made] = (tmp_path / "installed").glob("mini@tiny/environments/*")
    there = {path.name for path in made.iterdir()} - {"bin", "lib", "include", "share"}
    assert {"lock.txt", "receipt.toml", "ledger.json"} <= there
    assert [name for name in sorted(there) if not environment_layout.is_reserved(name)] == []


SCRIPTS = {"outside": "../../escape", "python": "python"}
NOT_LOCKED = [name for name, _ in NAMES.values()] + [f"beta-1.5.data/data/{name}" for name in OURS]


@pytest.mark.parametrize("name", SCRIPTS.values(), ids=list(SCRIPTS))
def test_a_wheel_with_a_script_outside_is_not_locked(locked: World, patchlock: Patchlock, name: str) -> None:
    text = f"[other]\npip = a:b\n[console_scripts]\nfine = beta:x\n{name} = beta:x\n"
    _swap(locked, {"beta-1.5.dist-info/entry_points.txt": text})
    [pair] = json.loads(patchlock(*lock_here("--json")).stdout)["data"]["pairs"]
    assert pair["detail"].startswith(
        f"the wheel of beta 1.5 (requirements.txt:3) has files that do not belong into an environment: {name}; use"
    )


def test_a_second_owner_by_way_of_the_data_folder_is_not_locked(locked: World, patchlock: Patchlock) -> None:
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    _swap(locked, {f"beta-1.5.data/data/lib/{python}/site-packages/gamma.py": "evil = 1\n"})
    [pair] = json.loads(patchlock(*lock_here("--json")).stdout)["data"]["pairs"]
    assert "both write" in pair["detail"]
    assert "gamma.py with different bytes" in pair["detail"]


@pytest.mark.parametrize("name", NOT_LOCKED)
def test_a_wheel_with_a_member_outside_is_not_locked(locked: World, patchlock: Patchlock, name: str) -> None:
    _swap(locked, {name: "x = 1\n"})
    done = patchlock(*lock_here("--json"))
    [pair] = json.loads(done.stdout)["data"]["pairs"]
    assert (done.returncode, pair["state"], pair["code"]) == (1, "failed", "policy")
    assert pair["detail"].startswith(
        f"the wheel of beta 1.5 (requirements.txt:3) has files that do not belong into an environment: {name}; use another version; "
        "report it to its authors"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../../escape", "Script path must resolve to a file within the scripts directory: ../../escape"),
        ("python", "Scripts must not use the reserved name `python`, got: `python`"),
    ],
)
def test_a_wheel_with_a_script_outside_is_not_installed(
    locked: World, patchlock: Patchlock, tmp_path: Path, name: str, why: str
) -> None:
    _swap(locked, {"beta-1.5.dist-info/entry_points.txt": f"[console_scripts]\n{name} = beta:x\n"})
    done = patchlock("install", "mini")
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert line == (
        f"error[wheel]: the wheel of beta has a script that does not belong into an environment: {why} (uv pip install); "
        "do not install it; report it to its authors"
    )
    assert _nothing_is_switched(tmp_path)
