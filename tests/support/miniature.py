"""A world in small for tests: wheels of one line, an index of files, a catalogue with one app and one profile."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from patchlock.catalogue.reader import Catalogue
from patchlock.hardware import probes
from patchlock.model import lockfile
from patchlock.model.errors import UpstreamError
from patchlock.model.fits import Platform
from patchlock.model.platforms import platform_of
from patchlock.worktree import upstream_cache

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
WHEN = "2026-01-01T00:00:00Z"


@functools.cache
def this_platform() -> Platform:
    """Give the platform of the machine that runs the tests."""
    platform = platform_of(probes.probe())
    assert platform is not None
    return platform


def lock_here(*options: str) -> tuple[str, ...]:
    """Name the words that lock the miniature for this machine's platform alone, which is all that an install reads."""
    return ("lock", "mini", "--platform", this_platform().name, *options)


def seal(path: Path) -> None:
    """Seal a lock that a test has changed, as if patchlock had written it so."""
    text = path.read_text(encoding="utf-8")
    path.write_text(lockfile.render(lockfile.parse(text, path.name)), encoding="utf-8", newline="\n")


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    requires: tuple[str, ...] = (),
    files: Mapping[str, str | bytes] | None = None,
    tag: str = "py3-none-any",
) -> Path:
    """Build a real wheel of a few lines (PEP 427)."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    content: dict[str, str | bytes] = {f"{module}.py": f'__version__ = "{version}"\n'} if files is None else {**files}
    content |= {
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    rows = []
    for path, text in content.items():
        data = text if isinstance(text, bytes) else text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}")
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    path = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in content.items():
            archive.writestr(zipfile.ZipInfo(file, date_time=(2026, 1, 1, 0, 0, 0)), text)
    return path


def index(folder: Path, wheels: list[Path]) -> str:
    """Write an index of these wheels (PEP 503) and give its address."""
    rows: dict[str, list[str]] = {}
    for path in wheels:
        project = path.name.split("-")[0].replace("_", "-").lower()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        rows.setdefault(project, []).append(
            f'<a href="{path.as_uri()}#sha256={digest}" data-upload-time="2025-06-01T00:00:00Z">{path.name}</a>'
        )
    for project, links in rows.items():
        (folder / project).mkdir(parents=True, exist_ok=True)
        (folder / project / "index.html").write_text("<!DOCTYPE html>\n" + "<br>\n".join(links), encoding="utf-8")
    return folder.as_uri()


PROFILE = f"""\
[profile]
title = "A machine for tests"
source = "https://example.com/why"
python = "{PYTHON}"
platforms = ["linux-x86_64", "linux-aarch64", "windows-amd64", "macos-arm64"]
specificity = 0
"""

APP = """\
[app]
title = "A miniature for tests"
license = "MIT"
source = "https://example.com/why"
python = ">=3.10"
requirements = ["requirements.txt"]

[upstream]
embedded = "upstream"
branch = "main"
date = "2026-01-01T00:00:00Z"
commit = "0000000000000000000000000000000000000000"

[launch]
command = ["python", "app.py"]

[[patch]]
id = "alpha-that-exists"
why = "alpha 9 was deleted from the index"
source = "https://example.com/why"
op = "set-requirement"
paths = ["requirements.txt"]
name = "alpha"
specifier = "==1.0"

[[patch.ensure]]
check = "requirement"
name = "alpha"
specifier = "==1.0"

[[patch]]
id = "on-the-cpu"
why = "there is no CUDA here"
source = "https://example.com/why"
op = "replace-expression"
paths = ["**/*.py"]
literal = ["cuda"]
pattern = '"cuda"'
replacement = '"cpu"'

[[patch.ensure]]
check = "no-string"
value = "cuda"

[[check]]
id = "imports"
kind = "imports"
present = ["alpha", "beta", "app"]
absent = ["deepspeed"]

[[check]]
id = "says-where"
kind = "command"
command = ["python", "app.py"]
prints = "computed on cpu"
timeout = 60
"""

UPSTREAM = {
    "requirements.txt": b"\xef\xbb\xbf# needed\r\nalpha==9.0  # why not\r\nbeta>=1\r\n",
    "app.py": (
        b'"""An app."""\nimport alpha\n\nDEVICE = "cuda"\n\nif __name__ == "__main__":\n'
        b'    assert not DEVICE.startswith("cu"), "no CUDA here"\n    print("computed on", DEVICE)\n'
    ),
    "README.md": b"# miniature\n",
}


@dataclasses.dataclass(frozen=True)
class World:
    """A catalogue, an index and the environment that points to both."""

    catalogue: Path
    env: dict[str, str]
    wheels: Path

    @property
    def app(self) -> Path:
        """The file of the app `mini`."""
        return self.catalogue / "patches" / "mini" / "app.toml"

    @property
    def upstream(self) -> Path:
        """The embedded upstream of `mini`."""
        return self.app.parent / "upstream"

    @property
    def profile(self) -> Path:
        """The file of the profile `tiny`."""
        return self.catalogue / "profiles" / "tiny.toml"

    def name_commit(self, folder: Path, name: str = "mini") -> str:
        """Write the commit of an app's embedded upstream into its file, as its message says."""
        app = Catalogue(root=self.catalogue).app(name)
        try:
            return upstream_cache.fetch(
                app, catalogue=self.catalogue, cache=folder / "naming", source=None, revision=None
            ).commit
        except UpstreamError as error:
            found = re.search(r'write commit = "([0-9a-f]{40})"', error.remedy)
            assert found is not None
            file = self.app.parent.parent / name / "app.toml"
            file.write_text(re.sub(r'commit = "[0-9a-f]{40}"', f'commit = "{found[1]}"', file.read_text()))
            return found[1]


def build(folder: Path) -> World:
    """Make a world in a folder."""
    wheels = folder / "wheels"
    made = [
        wheel(wheels, "alpha", "1.0", requires=("gamma<3",)),
        wheel(wheels, "alpha", "2.0"),
        wheel(wheels, "beta", "1.5"),
        wheel(wheels, "gamma", "2.0"),
        wheel(wheels, "gamma", "3.0"),
    ]
    world = World(
        catalogue=folder / "catalogue",
        wheels=wheels,
        env={"UV_DEFAULT_INDEX": index(folder / "index", made), "PATCHLOCK_CATALOGUE": str(folder / "catalogue")},
    )
    world.upstream.mkdir(parents=True)
    world.profile.parent.mkdir(parents=True)
    (world.catalogue / "lockfiles").mkdir()
    for name, data in UPSTREAM.items():
        (world.upstream / name).write_bytes(data)
    world.app.write_text(APP)
    world.profile.write_text(PROFILE)
    world.name_commit(folder)
    return world
