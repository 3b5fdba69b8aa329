"""Sdists of a few lines for tests, some of which leave a mark when their code runs; and a build backend in a wheel."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from miniature import World, this_platform, wheel

from patchlock.catalogue.reader import Catalogue
from patchlock.locks.lock_request import Request
from patchlock.model.platforms import PLATFORMS

MAKER = """
import base64, hashlib, os, re, zipfile
def _row(path, text):
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(text)}\\n"
def build_wheel(folder, config_settings=None, metadata_directory=None):
    {mark}
    name, version = re.search(r"Name: (.*)\\nVersion: (.*)\\n", open("PKG-INFO").read()).groups()
    info, file = f"{name}-{version}.dist-info", f"{name}-{version}-py3-none-any.whl"
    files = {
        f"{name}.py": "BUILT = True\\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(_row(path, text) for path, text in files.items()) + f"{info}/RECORD,,\\n"
    with zipfile.ZipFile(os.path.join(folder, file), "w") as packed:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            packed.writestr(path, text)
    return file
"""


def sdist(folder: Path, name: str, version: str, files: dict[str, str]) -> Path:
    """Pack an sdist."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}-{version}/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def info(name: str, metadata: str = "1.1", extra: str = "") -> str:
    """Write a PKG-INFO."""
    return f"Metadata-Version: {metadata}\nName: {name}\nVersion: 1.0\n{extra}"


def legacy(name: str, mark: Path, egg: str = "") -> dict[str, str]:
    """Write an sdist with a `setup.py`."""
    setup = f"open({str(mark)!r}, 'a').write('x')\nfrom setuptools import setup\nsetup(**{{'name': '{name}'}})\n"
    return {"setup.py": setup, "PKG-INFO": info(name)} | ({f"{name}.egg-info/requires.txt": egg} if egg else {})


def in_tree(name: str, mark: Path, metadata: str = "2.1", extra: str = "") -> dict[str, str]:
    """Write an sdist that is its own backend, and so needs no other distribution to run its code."""
    system = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    backend = MAKER.replace("{mark}", f"open({str(mark)!r}, 'a').write('x')")
    return {"PKG-INFO": info(name, metadata, extra), "pyproject.toml": system, "backend.py": backend}


def made(name: str, version: str = "1.0") -> dict[str, str]:
    """Write an sdist that the backend `maker` builds."""
    system = '[build-system]\nrequires = ["maker"]\nbuild-backend = "maker"\n'
    return {"PKG-INFO": info(name).replace("1.0", version), "pyproject.toml": system}


def maker(folder: Path) -> Path:
    """Build the wheel of the backend `maker`."""
    return wheel(folder, "maker", "1.0", files={"maker.py": MAKER.replace("{mark}", "pass")})


def setuptools(folder: Path) -> Path:
    """Build a wheel of setuptools that runs an sdist's `setup.py`, and takes nothing from it."""
    backend = MAKER.replace("{mark}", "exec(open('setup.py').read())")
    legacy = "class __legacy__:\n    build_wheel = staticmethod(build_wheel)\n"
    files = {"setuptools/__init__.py": "def setup(**_): pass\n", "setuptools/build_meta.py": backend + legacy}
    return wheel(folder, "setuptools", "80.0", files=files)


def offer(world: World, *files: Path) -> None:
    """Put files into the index of a world."""
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    for path in files:
        project = root / path.name.split("-")[0].replace("_", "-")
        project.mkdir(exist_ok=True)
        page = project / "index.html"
        before = page.read_text() if page.is_file() else "<!DOCTYPE html>\n"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        row = f'<a href="{path.as_uri()}#sha256={digest}" data-upload-time="2025-06-01T00:00:00Z">{path.name}</a><br>\n'
        page.write_text(before + row)


def host() -> str:
    """Name the platform of this machine."""
    return this_platform().name


def ask(world: World, requirements: bytes, folder: Path, rules: str = "", platform: str = "") -> Request:
    """Let the app of a world ask for something on one platform, and give the request for its lock."""
    platform = platform or host()
    profile = world.profile.read_text()
    start = profile.index("platforms = ")
    end = profile.index("\n", start)
    world.profile.write_text(profile[:start] + f'platforms = ["{platform}"]' + profile[end:])
    (world.upstream / "requirements.txt").write_bytes(requirements)
    world.app.write_text(world.app.read_text().partition("\n# rules\n")[0] + f"\n# rules\n{rules}")
    world.name_commit(folder / "name")
    catalogue = Catalogue(root=world.catalogue)
    return Request(
        app=catalogue.app("mini"),
        profile=catalogue.profile("tiny"),
        platform=PLATFORMS[platform],
        catalogue=catalogue,
        home=folder / "installed",
        cache=folder / "cache",
        local_addresses=True,
    )
