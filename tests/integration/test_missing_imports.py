"""What a program imports at its start and no package brings is named before anything is downloaded; only what is sure."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Said
from miniature import World, index, lock_here, wheel
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.distributions import wheel_facts, wheelhouse
from patchlock.distributions.wheel_facts import Place
from patchlock.model.checks import ImportsCheck
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage, Original
from patchlock.operations import check_catalogue
from patchlock.operations.missing_imports import KnownModules, on_device

Face = Callable[..., Said]

WHEELS = {
    "alpha": {"alpha/__init__.py": "", "alpha/part/deep.py": "", "alpha/fast.cpython-311-x86_64-linux-gnu.so": ""},
    "six": {"six.py": ""},
    "space-one": {"space/one/__init__.py": ""},
    "space-two": {"space/two.py": ""},
    "linked": {"linked.pth": "inner", "inner/hidden.py": ""},
    "native": {"native.abi3.so": "", "_native.pyd": ""},
}
IS_THERE = """alpha alpha.part alpha.part.deep alpha.fast six six.moves.urllib space space.one space.two hidden native
_native os os.path tomllib distutils.util"""
WRITES = '''
[[patch]]
id = "late"
why = "it shows"
source = "https://example.org/"
op = "add-file"
paths = ["late.py"]
content = """
def late():
    import gradium.more, alpha, app
    try:
        import spac
    except ImportError:
        pass
"""
ensure = [{check = "contains", text = "gradium"}]
'''
IS_MISSING = "gradium alpha.more alpha.part.more alpha.fast2 space.three spac hidde"


def _package(name: str, sha256: str, version: str = "1.0", original: Original | None = None) -> LockedPackage:
    named = canonicalize_name(name)
    return LockedPackage(name=named, version=Version(version), url="", sha256=Sha256(sha256), why="", original=original)


def _known(folder: Path, name: str, files: dict[str, str], version: str = "1.0", tag: str = "py3-none-any") -> Sha256:
    """Make a wheel and keep what is known of it."""
    path = wheel(folder / "made", name, version, files=dict(files), tag=tag)
    sha256 = Sha256(hashlib.sha256(path.read_bytes()).hexdigest())
    wheel_facts.store(folder / wheel_facts.FOLDER, sha256, Place(filename=path.name, url=path.as_uri()))
    return sha256


@pytest.fixture
def packages(tmp_path: Path) -> list[LockedPackage]:
    return [_package(name, _known(tmp_path, name, files)) for name, files in WHEELS.items()]


@pytest.mark.parametrize("module", IS_THERE.split())
def test_module_of_a_wheel_is_found(packages: list[LockedPackage], tmp_path: Path, module: str) -> None:
    assert not KnownModules(packages, tmp_path).lack(module)


@pytest.mark.parametrize("module", IS_MISSING.split())
def test_module_of_no_wheel_is_missing(packages: list[LockedPackage], tmp_path: Path, module: str) -> None:
    assert KnownModules(packages, tmp_path).lack(module)


def test_nothing_is_missing_while_a_package_is_unknown(packages: list[LockedPackage], tmp_path: Path) -> None:
    known = KnownModules([*packages, _package("unread", "f" * 64)], tmp_path)
    assert not any(known.lack(module) for module in IS_MISSING.split())
    assert known.is_anything_known()
    assert not KnownModules([_package("unread", "f" * 64)], tmp_path).is_anything_known()


ASKED = """import alpha
def size():
    if torch.cuda.is_available():
        import gradium
    if torch.backends.mps.is_available():
        import spac, six
        if torch.cuda.is_available():
            import hidde
        try:
            import caught
        except ImportError:
            pass
    else:
        from delta.more import x
def idle():
    if torch.backends.mps.is_available():
        import never
print(size())
"""


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("mps", ["spac:6"]),
        ("xpu", ["delta.more:14"]),
        ("cpu", []),
        ("cuda", []),
    ],
)
def test_import_below_a_test_for_a_device_counts_where_that_is_there(
    packages: list[LockedPackage], tmp_path: Path, kind: str, wanted: list[str]
) -> None:
    files = {PurePosixPath("app.py"): b"import own\n", PurePosixPath("own.py"): ASKED.encode()}
    found = on_device(kind, files, KnownModules(packages, tmp_path), ("python", "app.py"), "")
    assert [f"{one.module}:{one.line}" for one in found] == wanted


def test_lock_that_lacks_what_another_one_has_is_found_without_upstream(
    packages: list[LockedPackage], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = {"lockfiles/a/x.txt": packages[1:], "lockfiles/a/y.txt": packages}
    pairs: list[Any] = [SimpleNamespace(lock_name=name, cache=tmp_path) for name in locks]
    monkeypatch.setattr(check_catalogue, "is_possible", lambda _: True)
    monkeypatch.setattr(
        check_catalogue.relock, "current", lambda one: SimpleNamespace(packages=tuple(locks[one.lock_name]))
    )
    app: Any = SimpleNamespace(checks=(ImportsCheck(id="imports", present=("alpha", "own", "six"), absent=()),))

    (found,) = check_catalogue.imports(app, pairs)

    told = "nothing in the lock brings alpha, which a [[check]] imports; lockfiles/a/y.txt has it"
    assert (found.what, found.problems) == ("imports of lockfiles/a/x.txt", (told,))


def test_wheel_that_was_fetched_is_read_where_it_lies(packages: list[LockedPackage], tmp_path: Path) -> None:
    path = wheel(tmp_path / "more", "late", "1.0", files={"late/__init__.py": ""})
    sha256 = Sha256(hashlib.sha256(path.read_bytes()).hexdigest())
    place = wheelhouse.place(tmp_path, sha256, path.name)
    place.parent.mkdir(parents=True)
    shutil.copyfile(path, place)
    known = KnownModules([*packages, _package("late", sha256)], tmp_path)
    assert (known.lack("late"), known.lack("gradium")) == (False, True)


def test_wheel_of_the_same_release_for_another_machine_tells_what_it_has(
    packages: list[LockedPackage], tmp_path: Path
) -> None:
    _known(tmp_path, "vendor", {"vendor/__init__.py": ""}, "2.7", "cp311-cp311-macosx_11_0_arm64")
    for version, is_missing in (("2.7+cpu", True), ("2.8", False)):
        known = KnownModules([*packages, _package("vendor", "e" * 64, version)], tmp_path)
        assert (known.lack("vendor"), known.lack("gradium")) == (False, is_missing)


def test_sdist_may_bring_any_name_that_is_in_it(packages: list[LockedPackage], tmp_path: Path) -> None:
    place = tmp_path / "sdists" / ("d" * 64) / "old-1.0.tar.gz"
    place.parent.mkdir(parents=True)
    with tarfile.open(place, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("old-1.0/src/old/__init__.py"), io.BytesIO())
        archive.addfile(tarfile.TarInfo("old-1.0/native/fast.c"), io.BytesIO())
    known = KnownModules([*packages, _package("old", "d" * 64)], tmp_path)
    assert [known.lack(module) for module in ("old", "fast", "gradium")] == [False, False, True]


def test_patched_wheel_may_have_a_module_more(tmp_path: Path) -> None:
    sha256 = _known(tmp_path, "alpha", WHEELS["alpha"])
    original = Original(version=Version("1.0"), url="", sha256=sha256, patches=("more",))
    known = KnownModules([_package("alpha", "c" * 64, "1.0+patched", original)], tmp_path)
    assert [known.lack(module) for module in ("alpha.more", "gradium")] == [False, True]


def test_plan_and_install_name_them_before_anything_is_fetched(world: World, face: Face, tmp_path: Path) -> None:
    """Beta requires delta for an extra, which nobody asks for; the program imports it, and a patch writes another."""
    made = wheel(world.wheels, "beta", "1.6", requires=("delta; extra == 'fast'",))
    index(tmp_path / "world" / "index", [made])
    app = world.upstream / "app.py"
    app.write_bytes(app.read_bytes().replace(b"import alpha\n", b"import alpha\nimport delta\n"))
    world.name_commit(tmp_path / "named")
    world.app.write_text(world.app.read_text() + WRITES)
    assert face(*lock_here()).returncode == 0
    told = (
        "it imports at its start what no package of the lock brings: delta (app.py:3); patches make it import what no "
        "package of the lock brings: gradium.more (late.py:2); beta requires delta in some cases"
    )
    said = face("plan", "mini")
    assert (said.returncode, f"warning: {told}" in said.stderr) == (0, True), said.stderr
    data = json.loads(face("plan", "mini", "--json").stdout)["data"]
    assert data["missing_imports"] == [
        {"module": "delta", "path": "app.py", "line": 3},
        {"module": "gradium.more", "path": "late.py", "line": 2},
    ]
    said = face("install", "mini")
    assert (said.returncode, f"warning: {told}" in said.stderr.partition("environment ")[0]) == (1, True), said.stderr
