"""Locks: the same bytes from the same inputs, every reason for staleness named, vendor wheels without asking the vendor."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Patchlock, Said
from miniature import World, index, lock_here, wheel

from patchlock.core import uv

Face = Callable[..., Said]


def _pair(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Give what `lock --json` says of its first pair; where it says nothing of pairs, its error is what the test shows."""
    told = json.loads(done.stdout)
    assert told["error"] is None or told["error"]["code"] == "locks", f"{told['error']} {done.stderr}"
    first: dict[str, Any] = told["data"]["pairs"][0]
    return first


def locks(world: World) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((world.catalogue / "lockfiles").glob("*/*"))}


def test_the_same_inputs_give_the_same_bytes_with_any_cache(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("lock", "mini").returncode == 0
    first = locks(world)
    assert len(first) == 4
    done = patchlock("lock", "mini")
    assert {line.split()[5] for line in done.stdout.splitlines()} == {"unchanged"}
    shutil.rmtree(world.catalogue / "lockfiles")
    cold = {"UV_CACHE_DIR": str(tmp_path / "cold"), "PATCHLOCK_CACHE_DIR": str(tmp_path / "cold-too")}
    assert patchlock("lock", "mini", env=cold).returncode == 0
    assert locks(world) == first


def test_settings_of_the_user_do_not_change_a_lock(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("lock", "mini").returncode == 0
    first = locks(world)
    (tmp_path / "uv.toml").write_text('[pip]\nprerelease = "allow"\nupgrade-package = ["alpha"]\n')
    newer = tmp_path / "newer"
    newer.mkdir()
    wheel(newer, "beta", "7.0")
    hostile = {
        "UV_FIND_LINKS": str(newer),
        "UV_INDEX": index(tmp_path / "other", [newer / "beta-7.0-py3-none-any.whl"]),
        "UV_EXCLUDE_NEWER": "2020-01-01T00:00:00Z",
        "UV_CONSTRAINT": str(tmp_path / "none.txt"),
        "UV_PRERELEASE": "allow",
        "UV_TORCH_BACKEND": "cu118",
    }
    assert patchlock("lock", "mini", env=hostile).returncode == 0
    assert locks(world) == first


def test_files_uploaded_after_upstreams_commit_are_not_considered(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    page = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "beta" / "index.html"
    new = wheel(world.wheels, "beta", "2.0")
    row = page.read_text().splitlines()[1].replace("beta-1.5", "beta-2.0").replace("2025-06-01", "2026-06-01")
    page.write_text(page.read_text() + "\n" + re.sub("sha256=[0-9a-f]+", f"sha256={sha256_of(new)}", row))
    assert patchlock("lock", "mini").returncode == 0
    assert all(b"\nbeta==1.5 " in data for data in locks(world).values())
    assert patchlock("lock", "mini", "--as-of", "2026-07-01T00:00:00Z").returncode == 0
    assert all(b"\nbeta==2.0 " in data for data in locks(world).values())
    kept = locks(world)
    assert patchlock("lock", "mini").returncode == 0
    assert locks(world) == kept
    assert patchlock("lock", "mini", "--as-of", "commit").returncode == 0
    assert all(b"\nbeta==1.5 " in data for data in locks(world).values())


@pytest.mark.parametrize(
    "wanted", ["", '\n[[constraint]]\nrequirement = "beta>=9"\nwhy = "w"\nsource = "s"\n'], ids=["made", "not-made"]
)
def test_cut_off_before_the_commit_is_told(world: World, patchlock: Patchlock, wanted: str) -> None:
    """It was frozen for a commit from which the app has moved."""
    text = world.app.read_text() + wanted
    world.app.write_text(text.replace("[upstream]\n", '[upstream]\nas-of = "2025-07-01T00:00:00Z"\n'))
    told = patchlock("lock", "mini", "--platform", "linux-x86_64", "--explain", "0")
    assert told.returncode == bool(wanted)
    assert (
        "as-of in patches/mini/app.toml leaves out files uploaded after 2025-06-30, and its commit is of 2026-01-01: "
        "remove as-of, or write a later day, and run `patchlock lock mini --as-of commit`\n"
    ) in told.stdout + told.stderr
    world.app.write_text(text)
    told = patchlock("lock", "mini", "--as-of", "commit", "--platform", "linux-x86_64", "--explain", "0")
    assert "leaves out" not in told.stdout + told.stderr


def test_as_of_that_was_written_after_the_lock_is_told_until_it_is_taken(world: World, patchlock: Patchlock) -> None:
    told = (
        "the lock keeps its cut-off, 2026-01-01T00:00:00Z, and as-of in patches/mini/app.toml is 2026-02-01T00:00:00Z: "
        "to lock with that, run `patchlock lock mini --as-of commit`"
    )
    assert patchlock(*lock_here()).returncode == 0
    text = world.app.read_text()
    world.app.write_text(text.replace("[upstream]\n", '[upstream]\nas-of = "2026-02-01T00:00:00Z"\n'))
    assert _pair(patchlock(*lock_here("--json")))["warnings"] == [told]
    assert _pair(patchlock(*lock_here("--as-of", "commit", "--json")))["warnings"] == []
    assert _pair(patchlock(*lock_here("--json")))["warnings"] == []


def sha256_of(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda w: w.profile, "profiles/tiny.toml has changed since the lock was made"),
        (lambda w: w.app, "patches/mini/app.toml has changed since the lock was made"),
        (lambda w: w.upstream / "requirements.txt", "upstream's requirements.txt has changed since the lock was made"),
    ],
    ids=["profile", "patch", "upstream-requirements"],
)
@pytest.mark.parametrize("comment", [b"", b"# more\n"], ids=["value", "comment"])
def test_one_changed_character_is_named(
    world: World, patchlock: Patchlock, change: object, reason: str, comment: bytes
) -> None:
    assert patchlock("lock", "mini").returncode == 0
    assert patchlock("lock", "--check").returncode == 0
    path = change(world)
    data = path.read_bytes()
    at = data.index(b"tests") if b"tests" in data else data.index(b"why not")
    path.write_bytes(data + comment if comment else data[:at] + b"T" + data[at + 1 :])
    done = patchlock("lock", "--check", env={"UV_OFFLINE": "1", "PATH": "/nowhere"})
    assert done.returncode == 1
    head, *pairs = done.stdout.splitlines()
    assert (head, len(pairs)) == (f"stale  {reason}", 4)
    assert all(pair.startswith("  mini × tiny × ") for pair in pairs)
    assert done.stderr.strip() == "to renew: patchlock lock mini"


def test_new_python_and_new_commit_are_named(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    text = world.app.read_text()
    commit = re.search(r'commit = "([0-9a-f]{40})"', text)
    assert commit is not None
    world.app.write_text(text.replace(commit[1], "a" * 40))
    pair = json.loads(patchlock("lock", "--check", "--json").stdout)["data"]["pairs"][0]
    assert pair["detail"] == (
        f"upstream is at commit aaaaaaaaaaaa, the lock was made for {commit[1][:12]}; "
        "patches/mini/app.toml has changed since the lock was made"
    )


def test_lockfiles_of_no_pair_are_told(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    folder = world.catalogue / "lockfiles"
    (folder / "gone").mkdir()
    names = ["gone/tiny.linux-x86_64.txt", "mini/other.txt", "mini/tiny.txt", "stray.txt"]
    for name in names:
        (folder / name).write_bytes((folder / "mini" / "tiny.linux-x86_64.txt").read_bytes())
    (folder / "development.txt").write_text("")
    done = patchlock("lock", "--check")
    assert done.returncode == 1
    detail = "failed  it belongs to no pair of app and profile; remove it"
    assert done.stdout.splitlines()[4:] == [detail, *(f"  lockfiles/{name}" for name in names)]
    assert "to renew" not in done.stderr
    checked = patchlock("check")
    assert checked.returncode == 1
    assert [line.split() for line in checked.stdout.splitlines()[2:6]] == [
        [*(("lockfiles",) if number == 0 else ()), f"lockfiles/{name}:", *detail.split()[1:]]
        for number, name in enumerate(names)
    ]
    strays = json.loads(patchlock("check", "--json").stdout)["data"]["strays"]["problems"]
    assert [one.partition(":")[0] for one in strays] == [f"lockfiles/{name}" for name in names]
    assert patchlock("lock", "--check", "mini").returncode == 0
    assert patchlock("check", "mini").returncode == 0


def test_lock_of_a_pair_that_is_refused_now_is_removed_by_lock(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    table = '\n[[refused]]\nprofile = "tiny"\nplatforms = ["linux-x86_64"]\nwhy = "no"\nsource = "https://example.com/why"\n'
    world.app.write_text(world.app.read_text() + table)
    file = world.catalogue / "lockfiles" / "mini" / "tiny.linux-x86_64.txt"
    edited = file.read_bytes()
    checked = patchlock("lock", "--check", "mini")
    different = patchlock("lock", "mini", "--diff")
    for said in (checked, different):
        assert "the lockfile belongs to no pair any more; `patchlock lock` removes it: " in said.stdout
        assert said.returncode == 1
    file.write_bytes(edited.replace(b"# via", b"# mine via"))
    kept = patchlock("lock", "mini")
    assert (kept.returncode, file.is_file()) == (1, True)
    assert re.search(r"lockfiles/mini/tiny\.linux-x86_64\.txt was edited and stays: remove it yourself", kept.stdout)
    file.write_bytes(edited)
    done = patchlock("lock", "mini")
    assert (done.returncode, file.is_file()) == (0, False)
    assert re.search(r"removed: \S*lockfiles/mini/tiny\.linux-x86_64\.txt", done.stdout)
    again = patchlock("lock", "--check", "mini")
    assert again.returncode == 0
    assert again.stderr.endswith("3 fresh, 1 refused\n")


def test_refused_pair_that_is_named_fails_and_says_which_table_to_delete(world: World, patchlock: Patchlock) -> None:
    text = world.app.read_text()
    table = '\n[[refused]]\nprofile = "tiny"\nPLATFORMSwhy = "no"\nsource = "https://example.com/why"\n'
    line = text.count("\n") + 2
    world.app.write_text(text + table.replace("PLATFORMS", ""))
    done = patchlock("lock", "mini", "--profile", "tiny")
    assert done.returncode == 1
    assert "cannot run on tiny on linux-x86_64: no (https://example.com/why)" in done.stdout
    told = f"to lock it, delete the [[refused]] table at patches/mini/app.toml:{line}, and run this again"
    assert told in done.stdout
    error = json.loads(patchlock("lock", "mini", "--profile", "tiny", "--json").stdout)["error"]
    assert (error["code"], len(error["evidence"])) == ("locks", 4)
    assert patchlock("lock", "mini", "--profile", "tiny", "--check").returncode == 1
    assert patchlock("lock", "mini").returncode == 0  # nobody has named what is refused
    diff = patchlock("lock", "mini", "--profile", "tiny", "--diff", "--markdown")
    assert diff.returncode == 1
    assert "It cannot be locked:\n\n```\nmini cannot run on tiny on linux-x86_64: no\n" in diff.stdout
    error = json.loads(patchlock("lock", "mini", "--profile", "tiny", "--diff", "--json").stdout)["error"]
    assert (error["code"], len(error["evidence"])) == ("locks", 4)
    assert patchlock("lock", "mini", "--diff").returncode == 0
    world.app.write_text(text + table.replace("PLATFORMS", 'platforms = ["linux-x86_64"]\n'))
    assert patchlock("lock", "mini", "--profile", "tiny").returncode == 0  # it has locks for the other platforms
    assert patchlock(*lock_here("--profile", "tiny")).returncode == 1


def test_patch_of_a_requirement_that_finds_nothing_is_named(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "others.txt").write_text("betta\n")  # which the lock does not ask of
    world.name_commit(tmp_path)
    patch = (
        '[[patch]]\nid = "older-beta"\nwhy = "beta 2 is broken"\nsource = "https://example.com/why"\n'
        'op = "set-requirement"\npaths = ["PATH"]\nname = "NAME"\nspecifier = "<2"\n'
        '[[patch.ensure]]\ncheck = "requirement"\nname = "NAME"\nspecifier = "<2"\n\n'
    )
    app = world.app.read_text()
    line = app[: app.index("[[patch]]")].count("\n") + 1
    told = f"older-beta finds nothing to patch (patches/mini/app.toml:{line}); correct its name or paths, or remove it"
    for path, name, warnings in (
        ("requirements.txt", "beta", []),
        ("requirements.txt", "betta", [told]),
        ("requirement.txt", "beta", [told]),
        ("*.txt", "betta", []),
    ):
        table = patch.replace("PATH", path).replace("NAME", name)
        world.app.write_text(app.replace("[[patch]]", table + "[[patch]]", 1))
        assert _pair(patchlock(*lock_here("--json")))["warnings"] == warnings, (path, name)
        assert json.loads(patchlock("plan", "mini", "--json").stdout)["data"]["warnings"] == warnings, (path, name)


def test_patch_that_now_takes_an_older_version_than_upstreams_is_named_as_the_commit_moves(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    patch = (
        '[[patch]]\nid = "newer-beta"\nwhy = "beta 1.4 was deleted"\nsource = "https://example.com/why"\n'
        'op = "set-requirement"\npaths = ["requirements.txt"]\nname = "beta"\nspecifier = "==1.5"\n'
        '[[patch.ensure]]\ncheck = "requirement"\nname = "beta"\nspecifier = "==1.5"\n\n'
    )
    app = world.app.read_text()
    line = app[: app.index("[[patch]]")].count("\n") + 1
    world.app.write_text(app.replace("[[patch]]", patch + "[[patch]]", 1))
    told = (
        f"the patch newer-beta (patches/mini/app.toml:{line}) takes an older version than upstream, which now has "
        "`beta==1.6` (requirements.txt:3): see whether upstream's works now"
    )
    for version, warnings in (("==1.4", []), ("==1.6", [told])):
        (world.upstream / "requirements.txt").write_bytes(f"\nalpha==9.0\nbeta{version}\n".encode())
        world.name_commit(tmp_path)
        assert (told in patchlock(*lock_here("--diff")).stderr) is bool(warnings)
        (different,) = json.loads(patchlock(*lock_here("--diff", "--json")).stdout)["data"]["pairs"]
        assert different["warnings"] == warnings
        assert _pair(patchlock(*lock_here("--json")))["warnings"] == warnings
    assert _pair(patchlock(*lock_here("--json")))["warnings"] == []


def test_older_major_version_than_before_is_told(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    made = [wheel(world.wheels, "beta", one) for one in ("1.5", "3.0")]
    made.append(wheel(world.wheels, "epsilon", "1.0", requires=("beta<2",)))
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), made)
    told = (
        "beta is locked in 1.5, and was in 3.0 before: `patchlock why mini beta --profile tiny --alternatives` says why"
    )
    for more, warnings in (("", []), ("epsilon\n", [told]), ("epsilon\n", []), ("", []), ("beta<2\n", [])):
        (world.upstream / "requirements.txt").write_bytes(f"alpha==9.0\nbeta\n{more}".encode())
        world.name_commit(tmp_path)
        assert _pair(patchlock(*lock_here("--json")))["warnings"] == warnings, more


@pytest.mark.parametrize("as_of", ["2026-01-31T02:00:00.5+02:00", "2026-01-30"], ids=["zone", "day"])
def test_time_with_another_zone_and_day_are_written_in_utc(world: World, patchlock: Patchlock, as_of: str) -> None:
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--as-of", as_of)
    assert done.returncode == 0
    assert b'\n# as-of = "2026-01-31T00:00:00Z"\n' in locks(world)["tiny.linux-x86_64.txt"]


def test_two_distributions_that_write_the_same_files_are_refused(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "profiles" / "policy", world.catalogue / "profiles" / "policy")
    made = [wheel(world.wheels, name, "1.0") for name in ("onnxruntime", "onnxruntime-gpu")]
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), made)
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\nonnxruntime\nonnxruntime-gpu\n")
    world.name_commit(tmp_path)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert (pair["state"], pair["code"]) == ("failed", "policy")
    assert (
        "onnxruntime 1.0 (requirements.txt:3) and onnxruntime-gpu 1.0 (requirements.txt:4) both write" in pair["detail"]
    )
    assert not locks(world)


@pytest.mark.parametrize(
    ("asked", "remedy"),
    [
        pytest.param("torchcodec", "pin torch==2.10.0 with a patch", id="cut-off"),
        pytest.param("torchcodec<0.12", "pin torch==2.10.0 with a patch", id="cut-off-and-bound"),
        pytest.param("torchcodec<0.10", "drop torchcodec, or pin another torch", id="bound"),
    ],
)
def test_companion_of_torch_is_advised_as_the_cut_off_and_the_app_allow(
    world: World, patchlock: Patchlock, tmp_path: Path, asked: str, remedy: str
) -> None:
    shutil.copytree(ROOT / "profiles" / "policy", world.catalogue / "profiles" / "policy")
    versions = {"torch": ("2.10.0", "2.11.0"), "torchcodec": ("0.9.0", "0.10.0", "0.12.0")}
    made = [wheel(world.wheels, name, version) for name, of in versions.items() for version in of]
    folder = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    index(folder, made)
    page = folder / "torchcodec" / "index.html"
    old, new = page.read_text().rsplit("<br>", 1)
    page.write_text(f"{old}<br>{new.replace('2025-06-01', '2026-06-01')}")
    (world.upstream / "requirements.txt").write_text(f"alpha==9.0\nbeta\ntorch\n{asked}\n")
    world.name_commit(tmp_path)

    detail = _pair(patchlock("lock", "mini", "--json"))["detail"]

    assert f"; {remedy}" in detail
    assert ": the cut-off, or what the app asks for, leaves no torchcodec for torch 2.11.0 (" in detail


def test_constraint_that_bounds_nothing_is_refused(world: World, patchlock: Patchlock) -> None:
    extra = '\n[[constraint]]\nrequirement = "nowhere<2"\nwhy = "x"\nsource = "tests"\n'
    world.app.write_text(world.app.read_text() + extra)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert pair["code"] == "policy"
    assert "the [[constraint]] on nowhere in patches/mini/app.toml:" in pair["detail"]
    assert "bounds nothing; correct its name, or remove it" in pair["detail"]


def test_an_sdist_is_not_built_unless_it_is_allowed(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    sdist = world.wheels / "delta-1.0.tar.gz"
    sdist.write_bytes(b"never opened")
    (root / "delta").mkdir()
    row = (
        f'<a href="{sdist.as_uri()}#sha256={sha256_of(sdist)}" data-upload-time="2025-06-01T00:00:00Z">{sdist.name}</a>'
    )
    (root / "delta" / "index.html").write_text(row)
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\ndelta\n")
    world.name_commit(tmp_path)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert pair["code"] == "unsatisfiable"
    assert "delta" in pair["detail"]


@pytest.mark.online
@pytest.mark.parametrize("tool", ["pip", "uv", "pip-sync"])
def test_every_installer_takes_a_real_lock_as_it_is(tool: str, tmp_path: Path) -> None:
    platforms = {"linux": "linux-x86_64", "darwin": "macos-arm64", "win32": "windows-amd64"}
    lock = ROOT / "lockfiles" / "demo" / f"cpu.{platforms[sys.platform]}.txt"
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the lock is for Python 3.11")
    venv.create(tmp_path / "env", with_pip=False)
    python = str(tmp_path / "env" / "bin" / "python")
    scripts = Path(sys.executable).parent
    command = {
        "pip": [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            "-q",
            "--dry-run",
            "--require-hashes",
            "-r",
        ],
        "uv": [str(scripts / "uv"), "pip", "sync", "-q", "--require-hashes", "--python", python],
        "pip-sync": [str(scripts / "pip-sync"), "-q", "--dry-run", "--python-executable", python],
    }[tool]
    if tool == "pip-sync":  # it asks the pip of that environment what is installed; Debian's venv brings none
        install = [str(scripts / "uv"), "pip", "install", "-q", "--python", python, "pip"]
        assert subprocess.run(install, check=False).returncode == 0
    done = subprocess.run([*command, str(lock)], capture_output=True, text=True, check=False)
    # pip-sync --dry-run ends with 1 where it would change something, and lists what.
    assert done.returncode == (1 if tool == "pip-sync" else 0), done.stderr
    if tool == "pip-sync":
        assert "Would install" in done.stdout
        assert "onnxruntime==" in done.stdout


def test_lock_that_was_changed_or_belongs_elsewhere_is_not_fresh(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    folder = world.catalogue / "lockfiles" / "mini"
    linux, mac = folder / "tiny.linux-x86_64.txt", folder / "tiny.macos-arm64.txt"
    linux.write_text("".join(line for line in linux.read_text().splitlines(True) if not line.startswith("beta")))
    mac.write_bytes((folder / "tiny.windows-amd64.txt").read_bytes())
    done = patchlock("lock", "--check", "--json")
    pairs = {pair["pair"].split()[-1]: pair for pair in json.loads(done.stdout)["data"]["pairs"]}
    assert done.returncode == 1
    assert (pairs["linux-x86_64"]["state"], pairs["linux-x86_64"]["detail"]) == (
        "stale",
        "its lines were changed since it was written",
    )
    assert pairs["macos-arm64"]["state"] == "failed"
    place = "lockfiles/mini/tiny.macos-arm64.txt"
    assert pairs["macos-arm64"]["detail"] == f"it is the lock of mini on tiny on windows-amd64 ({place})"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        (b"-e .", '"." is a place, not a version'),
        (b"git+https://example.invalid/x/y.git#egg=y", "y@ git+https://example.invalid/x/y.git"),
        (b"z @ https://example.invalid/z-1-py3-none-any.whl", "https://example.invalid/z-1-py3-none-any.whl"),
    ],
    ids=["editable", "vcs", "url"],
)
def test_requirement_that_names_a_place_is_told_with_its_line(
    world: World, patchlock: Patchlock, tmp_path: Path, line: bytes, place: str
) -> None:
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\n" + line + b"\n")
    world.name_commit(tmp_path)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert (pair["state"], pair["code"]) == ("failed", "requirements")
    assert "a lock names files by their sha256 (requirements.txt:3)" in pair["detail"]
    assert place.rsplit("@ ", maxsplit=1)[-1] in pair["detail"]


def test_requirement_over_two_lines(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\r\nbeta \\\r\n  >=1\r\n")
    world.name_commit(tmp_path)
    done = patchlock("lock", "mini")
    assert done.returncode == 0, done.stdout


def test_two_wheels_that_write_one_file_are_refused_unless_the_app_says_why(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    made = [wheel(world.wheels, name, "1.0", files={"both/x.py": name}) for name in ("first", "second")]
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), made)
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\nfirst\nsecond\n")
    world.name_commit(tmp_path)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert (pair["state"], pair["code"]) == ("failed", "policy")
    assert "first 1.0 (requirements.txt:3) and second 1.0 (requirements.txt:4) both write both/x.py" in pair["detail"]
    exception = '\n[[exception]]\nrule = "one-owner"\ndistributions = ["first", "second"]\nwhy = "w"\nsource = "s"\n'
    world.app.write_text(world.app.read_text() + exception)
    assert _pair(patchlock("lock", "mini", "--json"))["state"] == "written"
    world.app.write_text(world.app.read_text() + exception.replace("second", "third"))
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert "the [[exception]] from one-owner for first, third in patches/mini/app.toml:" in pair["detail"]
    assert "excuses nothing; remove it" in pair["detail"]


def test_wheel_whose_metadata_is_of_another_version_is_refused(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    made = wheel(tmp_path / "made", "delta", "1.0")
    forged = made.rename(world.wheels / "delta-2.0-py3-none-any.whl")
    index(Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")), [forged])
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\ndelta\n")
    world.name_commit(tmp_path)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert (pair["state"], pair["code"]) == ("failed", "policy")
    assert pair["detail"] == (
        "delta-2.0-py3-none-any.whl is malformed: its METADATA says that it is delta 1.0; report it to its publisher, "
        "and pin another version of delta with a patch (mini × tiny × linux-x86_64)"
    )


def test_yanked_version_that_upstream_pins_is_locked_and_named(world: World, patchlock: Patchlock) -> None:
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    page = root / "alpha" / "index.html"
    page.write_text(page.read_text().replace("data-upload-time", 'data-yanked="wrong build" data-upload-time'))
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert pair["state"] == "written"
    assert ["was yanked by its project: wrong build" in warning for warning in pair["warnings"]] == [True]


def test_pair_that_the_system_stops_is_named_and_the_others_are_locked(world: World, patchlock: Patchlock) -> None:
    other = world.profile.with_name("other.toml")
    other.write_text(world.profile.read_text().replace("specificity = 0", "specificity = 1"))
    (world.catalogue / "lockfiles" / "mini" / "other.linux-x86_64.txt" / "taken").mkdir(parents=True)
    done = patchlock("lock", "mini", "--platform", "linux-x86_64", "--json")
    states = {pair["file"]: pair["state"] for pair in json.loads(done.stdout)["data"]["pairs"]}
    assert states == {
        "lockfiles/mini/other.linux-x86_64.txt": "failed",
        "lockfiles/mini/tiny.linux-x86_64.txt": "written",
    }
    assert done.returncode == 1


def test_check_judges_a_lock_by_the_tables_of_today(world: World, patchlock: Patchlock) -> None:
    assert patchlock("lock", "mini").returncode == 0
    assert patchlock("lock", "mini", "--check").returncode == 0
    table = world.catalogue / "profiles" / "policy" / "broken-pairs.toml"
    table.parent.mkdir()
    table.write_text('[[pair]]\nfirst = "alpha"\nsecond = "beta"\nwhy = "w"\nremedy = "drop beta"\nsource = "s"\n')
    done = patchlock("lock", "mini", "--check")
    assert done.returncode == 1
    assert "does not work beside beta 1.5" in done.stdout
    assert "w (s); drop beta" in done.stdout


def test_version_whose_wheels_were_deleted_is_named_where_nothing_fits(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    page = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://")) / "av" / "index.html"
    page.parent.mkdir()
    page.write_text(f'<!DOCTYPE html><a href="av-11.0.0.tar.gz#sha256={"1" * 64}">av-11.0.0.tar.gz</a>')
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta\nav==11.0.0\n")
    world.name_commit(tmp_path)
    pair = _pair(patchlock("lock", "mini", "--json"))
    assert pair["code"] == "unsatisfiable"
    assert (
        "av 11.0.0 has no wheel, only an sdist; allow its build with a [[build]] table, or use another version"
        in pair["detail"]
    )


def test_another_uv_that_gives_the_same_lines_leaves_a_lock_as_it_is(
    locked: World, face: Face, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = locks(locked)
    monkeypatch.setattr(uv, "version", lambda: "0.13.99")
    done = face("lock", "mini")
    assert {line.split()[5] for line in done.stdout.splitlines()} == {"unchanged"}
    assert locks(locked) == first


def test_another_uv_that_gives_other_lines_is_named(locked: World, face: Face, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = uv.version()
    monkeypatch.setattr(uv, "version", lambda: "0.13.99")
    requirements = locked.upstream / "requirements.txt"
    requirements.write_bytes(requirements.read_bytes() + b"gamma>=1\r\n")
    locked.name_commit(locked.catalogue.parent)
    (pair,) = json.loads(face(*lock_here("--json")).stdout)["data"]["pairs"]
    resolvers = f"uv 0.13.99 resolved it, and uv {pinned} the lock before"
    assert pair["warnings"] == [f"{resolvers}: differences may come from uv; to rule that out, lock with uv=={pinned}"]
