"""What a wheel itself has decides between damage and a wrong RECORD; what cannot be asked is said, with its reason."""

from __future__ import annotations

import hashlib
from pathlib import Path

import miniature
import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.distributions import wheelhouse
from patchlock.environments import wheel_members
from patchlock.environments.wheel_members import UnavailableWheel
from patchlock.model import lockfile, platforms
from patchlock.model.digests import sha256
from patchlock.model.fits import Platform
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock, LockedPackage

NAME = canonicalize_name("alpha")
PLATFORM: Platform = next(iter(platforms.PLATFORMS.values()))


def lock(digest: Sha256, name: str = "alpha", version: str = "1.0", url: str = "", why: str = "wheel") -> Lock:
    """Make a lock of one package."""
    provenance = lockfile.Provenance(
        app="mini",
        profile="tiny",
        platform=PLATFORM.name,
        python="3.11",
        commit=CommitId("0" * 40),
        as_of="",
        newer={},
        uv="0",
        patches=(),
        inputs={},
        resolver_input=Sha256("0" * 64),
    )
    package = LockedPackage(name=canonicalize_name(name), version=Version(version), url=url, sha256=digest, why=why)
    return Lock(provenance=provenance, packages=(package,))


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Make the folders of an environment."""
    folder = tmp_path / "environment"
    (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Make a wheel with files in all schemes, and keep it in the cache."""
    files = {
        "alpha.py": "a = 1\n",
        "alpha-1.0.data/purelib/pure.py": "p = 1\n",
        "alpha-1.0.data/data/share/alpha.txt": "shared\n",
        "alpha-1.0.data/scripts/alpha": "#!python\n",
    }
    made = miniature.wheel(tmp_path / "made", "alpha", "1.0", files=files)
    path = wheelhouse.place(tmp_path / "cache", sha256(made.read_bytes()), made.name)
    path.parent.mkdir(parents=True)
    return made.rename(path)


def members(environment: Path, kept: Path, *paths: str, found: Lock | None = None) -> object:
    """Ask for files of alpha."""
    asked = found or lock(sha256(kept.read_bytes()))
    return wheel_members.members(environment, asked, PLATFORM, NAME, paths, cache=kept.parent.parent.parent)


def test_files_are_found_where_an_installer_puts_them(environment: Path, kept: Path) -> None:
    paths = ("alpha.py", "pure.py", "../../../share/alpha.txt", "../../../bin/alpha", "ghost.py")
    assert members(environment, kept, *paths) == {
        path: hashlib.sha256(text).hexdigest()
        for path, text in zip(paths[:3], (b"a = 1\n", b"p = 1\n", b"shared\n"), strict=True)
    }


def test_wheel_with_other_bytes_than_its_name_says_is_not_believed(environment: Path, kept: Path) -> None:
    asked = lock(sha256(kept.read_bytes()))
    with kept.open("ab") as file:
        file.write(b"x")
    answer = members(environment, kept, "alpha.py", found=asked)
    assert answer == UnavailableWheel(
        why=f"its wheel cannot be asked: {kept} is not the file that its name says: remove it"
    )


def test_wheel_made_on_this_machine_is_asked_instead_of_the_locked_file(environment: Path, kept: Path) -> None:
    listing = f"--no-index\n--find-links {kept.parent.as_uri()}\nalpha==1.0 --hash=sha256:{sha256(kept.read_bytes())}\n"
    (environment / "local.txt").write_text(listing)
    assert members(environment, kept, "alpha.py", found=lock(Sha256("1" * 64), why="sdist")) == {
        "alpha.py": hashlib.sha256(b"a = 1\n").hexdigest()
    }
    kept.unlink()
    answer = members(environment, kept, "alpha.py", found=lock(Sha256("1" * 64), why="sdist"))
    assert isinstance(answer, UnavailableWheel)
    assert "it was made on this machine" in answer.why


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://download.example/alpha-1.0-py3-none-any.whl", "the network is switched off"),
        ("https://download.example/alpha-1.0.tar.gz", "it was built on this machine from an sdist"),
        ("file:///nowhere/alpha-1.0-py3-none-any.whl", "No such file or directory"),
    ],
)
def test_reason_why_nothing_is_known_is_given(environment: Path, kept: Path, url: str, why: str) -> None:
    answer = members(environment, kept, "alpha.py", found=lock(Sha256("1" * 64), url=url))
    assert isinstance(answer, UnavailableWheel)
    assert why in answer.why


@pytest.mark.online
def test_part_of_a_wheel_on_the_index_is_enough(environment: Path, tmp_path: Path) -> None:
    # Its RECORD names a `.dist-info` folder that the wheel does not have, as published.
    digest = Sha256("eca06c9fce6ee3220845c4c54e58376586e041a6127e4d1958e12a3142084897")
    asked = lock(digest, "ruamel.yaml", "0.18.11")
    name = canonicalize_name("ruamel.yaml")
    answer = wheel_members.members(environment, asked, PLATFORM, name, ["ruamel/yaml/nodes.py"], cache=tmp_path)
    assert answer == {"ruamel/yaml/nodes.py": "1d98bad59b4ee34352feedf4650cfe97437dd0403d4663b536c819aa621f3771"}
