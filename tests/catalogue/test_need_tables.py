"""`[[need]]` and `profiles/needs/`: what is read, and each mistake with its sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import ROOT
from miniature import APP, PROFILE
from packaging.specifiers import SpecifierSet

from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import CatalogueError
from patchlock.model.package_managers import DISTRIBUTIONS, MANAGERS

RESOURCE = """\
[need]
kind = "program"
title = "FFmpeg"
source = "https://ffmpeg.org"

[find]
any = ["ffmpeg"]
windows = ["ffmpeg.exe"]

[version]
arguments = ["-version"]
pattern = 'version (\\d+)'

[packages]
apt = ["ffmpeg"]

[commands]
macos = "make it"
"""

NEED = """
[[need]]
name = "ffmpeg"
why = "it reads songs"
source = "s"
versions = ">=5"
required = false
platforms = ["linux-x86_64"]
"""


def _catalogue(root: Path, *, app: str = "", profile: str = "", resource: str = RESOURCE) -> Catalogue:
    for file, text in {
        "profiles/tiny.toml": PROFILE + profile,
        "profiles/needs/ffmpeg.toml": resource,
        "patches/mini/app.toml": APP + app,
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
    return Catalogue(root=root)


def _problems(catalogue: Catalogue) -> list[str]:
    with pytest.raises(CatalogueError) as caught:
        catalogue.read_all()
    return [
        f"{Path(p.file).stem} {p.key}: {p.what}" + (f"; {p.remedy}" if p.remedy else "") for p in caught.value.problems
    ]


def test_needs_of_apps_and_profiles_are_read(tmp_path: Path) -> None:
    catalogue = _catalogue(tmp_path, app=f'{NEED}profiles = ["tiny"]\n', profile=NEED)
    (need,) = catalogue.app("mini").needs
    assert (need.name, need.versions, need.required) == ("ffmpeg", SpecifierSet(">=5"), False)
    assert (need.platforms, need.profiles) == (("linux-x86_64",), ("tiny",))
    assert catalogue.profile("tiny").needs[0].why == "it reads songs"


def test_resource_says_what_is_sought_on_each_system(tmp_path: Path) -> None:
    found = _catalogue(tmp_path).resource("ffmpeg")
    assert (found.sought("linux"), found.sought("windows")) == (("ffmpeg",), ("ffmpeg.exe",))
    assert (found.packages, found.commands) == ({"apt": ("ffmpeg",)}, {"macos": "make it"})


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param('"ffmpeg"', '"fmpeg"', 'app need[0].name: there is no profiles/needs/fmpeg.toml; did you mean "ffmpeg"?', id="name"),
        pytest.param('why = "it reads songs"', "", 'app need[0].why: the key "why" is missing; write why = "a text"', id="why"),
        pytest.param('">=5"', '"5"', 'app need[0].versions: "5" is not a version specifier such as ">=1.2,<2"', id="versions"),
        pytest.param('"linux-x86_64"', '"linux"', 'app need[0].platforms: there is no platform "linux"; did you mean "linux-aarch64" or "linux-x86_64"?', id="platform"),
        pytest.param("required", 'profiles = ["tin"]\nrequired', 'app need[0].profiles: there is no profile "tin"; did you mean "tiny"?', id="profile"),
        pytest.param("required = false", 'required = "no"', "app need[0].required: it is a text, and must be true or false", id="required"),
        pytest.param("required", "requires", 'app need[0].requires: the key "requires" is unknown; did you mean "required"?', id="key"),
        pytest.param("\n[[need]]", f"{NEED}\n[[need]]", 'app need[1].name: "ffmpeg" is needed twice; make one table of them', id="twice"),
    ],
)  # fmt: skip
def test_mistake_in_a_need(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert sentence in _problems(_catalogue(tmp_path, app=NEED.replace(before, after, 1)))


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param('"program"', '"programm"', 'ffmpeg need.kind: there is no kind "programm"; did you mean "program"?', id="kind"),
        pytest.param('title = "FFmpeg"', "", 'ffmpeg need.title: the key "title" is missing; write title = "a text"', id="title"),
        pytest.param('any = ["ffmpeg"]\nwindows = ["ffmpeg.exe"]', "", 'ffmpeg find: it names nothing to look for; write any = ["…"], or one list for each system', id="nothing-to-find"),
        pytest.param("windows", "window", 'ffmpeg find.window: the key "window" is unknown; did you mean "windows"?', id="system"),
        pytest.param("apt", "atp", 'ffmpeg packages.atp: the key "atp" is unknown; did you mean "apt"?', id="manager"),
        pytest.param('apt = ["ffmpeg"]', 'apt = ["-y ffmpeg"]', 'ffmpeg packages.apt: "-y ffmpeg" is not the name of a package', id="package"),
        pytest.param("macos =", "mac =", 'ffmpeg commands.mac: the key "mac" is unknown; did you mean "macos"?', id="command"),
        pytest.param("(\\d+)", "\\d+", "ffmpeg version.pattern: it needs a group around the version", id="no-group"),
        pytest.param("(\\d+)", "(\\d+", "ffmpeg version.pattern: it is not a regular expression: missing ), unterminated subpattern at position 8", id="no-pattern"),
        pytest.param('arguments = ["-version"]', "", "ffmpeg version: arguments and pattern belong together", id="no-arguments"),
        pytest.param('"program"', '"library"', "ffmpeg version.arguments: only a program can be asked; leave [version] out", id="version-of-a-library"),
        pytest.param('"program"', '"version"', 'ffmpeg find.any: there is no version "ffmpeg"; known: adrenalin, jetson-linux, kernel, macos, nvidia-driver, windows', id="version"),
        pytest.param('"program"', '"rule"', 'ffmpeg find.any: there is no rule "ffmpeg"; known: ascii-paths, no-store-python, unscanned-folder', id="rule"),
    ],
)  # fmt: skip
def test_mistake_in_a_resource(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert sentence in _problems(_catalogue(tmp_path, resource=RESOURCE.replace(before, after)))


CATALOGUE = Catalogue(root=ROOT)


@pytest.mark.parametrize("name", CATALOGUE.resource_names())
def test_shipped_resource_has_a_home_page_and_known_managers(name: str) -> None:
    found = CATALOGUE.resource(name)
    assert found.source.startswith("https://")
    assert set(found.packages) <= {*MANAGERS, *DISTRIBUTIONS}
    assert found.kind not in {"program", "library"} or found.packages or found.commands or "windows" in found.find


def test_every_need_that_we_ship_names_a_resource() -> None:
    apps, profiles = CATALOGUE.read_all()
    named = {need.name for one in (*apps, *profiles) for need in one.needs}
    assert named <= set(CATALOGUE.resource_names())


# --- memory -----------------------------------------------------------------------------------------------------------

MEMORY = """
[[memory]]
for = "speech"
ram = 5_000_000_000
device = 2_100_000_000
source = "s"
profiles = ["tiny"]
"""


def test_what_an_app_takes_of_memory_is_read(tmp_path: Path) -> None:
    (need,) = _catalogue(tmp_path, app=MEMORY).app("mini").memory
    assert (need.what, need.ram, need.device, need.profiles) == ("speech", 5 * 10**9, 21 * 10**8, ("tiny",))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(
            "ram = 5_000_000_000",
            "ram = 5",
            "app memory[0].ram: 5 is not a number of bytes that an app takes; write it in bytes: 4_000_000_000",
            id="in-gigabytes",
        ),
        pytest.param(
            "ram = 5_000_000_000\ndevice = 2_100_000_000\n",
            "",
            "app memory[0]: it says neither ram nor device; write device = 4_000_000_000, or ram, in bytes",
            id="of-nothing",
        ),
        pytest.param(
            '"tiny"', '"tyni"', 'app memory[0].profiles: there is no profile "tyni"; did you mean "tiny"?', id="profile"
        ),
    ],
)
def test_a_mistake_about_memory_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert _problems(_catalogue(tmp_path, app=MEMORY.replace(old, new))) == [told]
