"""Files of the catalogue: read into values, or every mistake at once with file, line, key and the nearest known word."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT
from miniature import APP, PROFILE, PYTHON
from packaging.requirements import Requirement
from packaging.version import Version

from patchlock.catalogue import reader
from patchlock.catalogue.reader import Catalogue
from patchlock.model.app import EmbeddedUpstream, GitUpstream
from patchlock.model.checks import (
    CommandCheck,
    ImportsCheck,
    LayersCheck,
    LayersPart,
    OnnxSessionCheck,
    PythonCheck,
    ServesCheck,
)
from patchlock.model.errors import CatalogueError, PatchlockError, UnknownAppError, UnknownProfileError, UsageError
from patchlock.model.origins import Origin
from patchlock.model.patch import Expect
from patchlock.model.platforms import PLATFORMS
from patchlock.model.refusals import RefusedPair
from patchlock.patches.ops._text import ReplaceText
from patchlock.patches.ops.requirements.ops import SetRequirement
from patchlock.patches.postconditions._requirements import HasRequirement

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHA256 = COMMIT + "0" * 24
PATCH = """
[[patch]]
id = "{id}"
why = "it must go"
source = "tests"
op = "replace-text"
paths = ["start.bat"]
old = "pip"
new = ""
{more}
[[patch.ensure]]
check = "lacks"
text = "pip"
"""
INDEX = f"""\
[index]
url = "https://index.test/cpu"

[[wheel]]
filename = "torch-2.1.1+cpu-cp311-cp311-win_amd64.whl"
sha256 = "{SHA256}"
requires = ["filelock", "sympy>=1.13"]
source = "tests"
"""


@pytest.fixture
def opened(tmp_path: Path) -> Catalogue:
    """Give a catalogue with the app `mini`, the profile `tiny` and the index `cpu`."""
    root = tmp_path / "catalogue"
    for name, text in {
        "patches/mini/app.toml": APP,
        "profiles/tiny.toml": PROFILE,
        "profiles/indexes/cpu.toml": INDEX,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Catalogue(root=root)


def _write(opened: Catalogue, name: str, text: str) -> None:
    (opened.root / name).write_text(text, encoding="utf-8")


def _mistakes(read: Callable[[], object]) -> list[str]:
    with pytest.raises(CatalogueError) as caught:
        read()
    return [str(problem) for problem in sorted(caught.value.problems, key=lambda p: (p.file, p.line))]


def test_app_is_read(opened: Catalogue) -> None:
    app = opened.app("mini")
    assert (app.name, app.title, app.branch, app.directory) == (
        "mini",
        "A miniature for tests",
        "main",
        PurePosixPath(),
    )
    assert app.upstream == EmbeddedUpstream(
        folder=PurePosixPath("patches/mini/upstream"), commit=app.upstream.commit, date="2026-01-01T00:00:00Z"
    )
    assert app.requirement_files == (PurePosixPath("requirements.txt"),)
    assert app.launch.command == ("python", "app.py")
    assert [check.id for check in app.checks] == ["imports", "says-where"]
    assert app.origin == Origin(file="patches/mini/app.toml", line=1)
    first, second = app.patches
    assert (first.id, first.op_name, first.paths, first.literal) == (
        "alpha-that-exists",
        "set-requirement",
        ("requirements.txt",),
        (),
    )
    assert (first.expect, first.profiles, first.after) == (Expect(), (), ())
    assert isinstance(first.op, SetRequirement)
    assert (first.op.name, str(first.op.specifier)) == ("alpha", "==1.0")
    assert first.ensures == (HasRequirement(name=first.op.name, specifier=first.op.specifier),)
    assert second.origin == Origin(file="patches/mini/app.toml", line=APP.split("\n").index('id = "on-the-cpu"'))


def test_every_optional_key_of_an_app_is_read(opened: Catalogue) -> None:
    more = """
[[constraint]]
requirement = "numpy<2"
why = "w"
source = "s"

[[refused]]
profile = "tiny"
platforms = ["macos-arm64"]
why = "w"
source = "s"
"""
    text = APP.replace('embedded = "upstream"', 'url = "https://git.test/x.git"').replace(
        'date = "2026-01-01T00:00:00Z"\n', ""
    )
    text = text.replace('branch = "main"', 'branch = "develop"').replace(
        "[launch]", '[launch]\nsays = "go"\nenvironment = { A = "1" }'
    )
    text = text.replace("[upstream]", '[upstream]\ndirectory = "apps/x"')
    more += PATCH.format(id="one", more='profiles = ["tiny"]\nliteral = ["pip"]\nexpect = { sites = 2, exact = true }')
    _write(opened, "patches/mini/app.toml", text + more + PATCH.format(id="two", more='after = ["one"]'))
    app = opened.app("mini")
    assert app.upstream == GitUpstream(url="https://git.test/x.git", commit=app.upstream.commit)
    assert (app.branch, app.launch.says, app.launch.environment) == ("develop", "go", {"A": "1"})
    assert app.directory == PurePosixPath("apps/x")
    assert [rule.requirement for rule in app.rules.constraints] == [Requirement("numpy<2")]
    here = Origin(file="patches/mini/app.toml", line=text.count("\n") + 7)
    assert app.refusals == (RefusedPair(profile="tiny", platforms=("macos-arm64",), why="w", source="s", origin=here),)
    one, two = app.patches[-2:]
    assert (one.op, one.profiles, one.literal, one.expect) == (
        ReplaceText(old="pip", new=""),
        ("tiny",),
        ("pip",),
        Expect(sites=2, exact=True),
    )
    assert two.after == ("one",)


def test_what_is_left_out_has_its_default(opened: Catalogue) -> None:
    _write(opened, "patches/mini/app.toml", APP.replace('branch = "main"\n', ""))
    app = opened.app("mini")
    assert (app.branch, app.launch.says, app.launch.environment, app.rules.constraints) == ("main", "", {}, ())


def test_every_kind_of_check_is_read(opened: Catalogue) -> None:
    more = """
[[check]]
id = "onnxruntime"
kind = "onnx-session"
provider = "CPUExecutionProvider"

[[check]]
id = "service"
kind = "serves"
command = ["python", "-m", "http.server", "{port}"]
path = "/"
prints = ""
timeout = 5

[[check]]
id = "sum"
kind = "python"
code = "import alpha; print(1 + 1)"
prints = "2"
timeout = 9

[[check]]
id = "layers"
kind = "layers"
module = "layers.py"
parts = [{ name = "pitch", needs = ["stft"] }, { name = "voice" }]
on-the-processor = ["tiny"]
timeout = 9
"""
    code = "def pitch(): ...\ndef voice(): ...\n"
    _write(opened, "patches/mini/app.toml", APP + more)
    _write(opened, "patches/mini/layers.py", code)
    assert opened.app("mini").checks == (
        ImportsCheck(id="imports", present=("alpha", "beta", "app"), absent=("deepspeed",)),
        CommandCheck(id="says-where", command=("python", "app.py"), prints="computed on cpu", timeout=60),
        OnnxSessionCheck(id="onnxruntime", provider="CPUExecutionProvider"),
        ServesCheck(id="service", command=("python", "-m", "http.server", "{port}"), path="/", prints="", timeout=5),
        PythonCheck(id="sum", code="import alpha; print(1 + 1)", prints="2", timeout=9),
        LayersCheck(
            id="layers",
            module="layers.py",
            parts=(LayersPart(name="pitch", needs=("stft",)), LayersPart(name="voice")),
            timeout=9,
            on_the_processor=("tiny",),
            code=code,
        ),
    )


LAYERS = """
[[check]]
id = "layers"
kind = "layers"
module = "layers.py"
parts = [{ name = "voice" }]
timeout = 9
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(None, '"layers.py" cannot be read from the app\'s folder', id="missing"),
        pytest.param("def voice(:", '"layers.py" is not Python in UTF-8: invalid syntax', id="no-python"),
        pytest.param("def voices(): ...", '"layers.py" has no function "voice"', id="no-such-part"),
    ],
)
def test_file_that_cannot_make_the_parts_is_a_mistake(opened: Catalogue, text: str | None, said: str) -> None:
    _write(opened, "patches/mini/app.toml", APP + LAYERS)
    if text is not None:
        _write(opened, "patches/mini/layers.py", text)
    with pytest.raises(CatalogueError) as raised:
        opened.app("mini")
    (problem,) = raised.value.problems
    assert (problem.file, problem.key) == ("patches/mini/app.toml", "check.layers")
    assert problem.what.startswith(said)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        pytest.param("[]", "it names no part", id="no-part"),
        pytest.param('[{ name = "voice", needs = ["sftf"] }]', 'there is no kernel "sftf"', id="no-such-kernel"),
    ],
)
def test_parts_are_checked(opened: Catalogue, parts: str, said: str) -> None:
    _write(opened, "patches/mini/app.toml", APP + LAYERS.replace('[{ name = "voice" }]', parts))
    _write(opened, "patches/mini/layers.py", "def voice(): ...")
    with pytest.raises(CatalogueError) as raised:
        opened.app("mini")
    assert [problem.what for problem in raised.value.problems] == [said]


def test_profile_is_read(opened: Catalogue) -> None:
    _write(opened, "profiles/tiny.toml", PROFILE + 'indexes = ["cpu"]\n[environment]\nA = "1"\n')
    profile = opened.profile("tiny")
    assert (profile.name, profile.python, profile.specificity) == ("tiny", Version(PYTHON), 0)
    assert profile.platforms == tuple(PLATFORMS.values())
    assert (profile.indexes, profile.environment) == (("cpu",), {"A": "1"})


def test_index_is_read(opened: Catalogue) -> None:
    more = """
[[wheel]]
filename = "x-1-py3-none-any.whl"
sha256 = "{SHA256}"
source = "tests"
url = "https://elsewhere.test/x.whl"
"""
    _write(opened, "profiles/indexes/cpu.toml", INDEX + more.replace("{SHA256}", SHA256))
    wheel, elsewhere = opened.index("cpu").wheels
    assert (elsewhere.url, elsewhere.requires) == ("https://elsewhere.test/x.whl", ())
    assert (wheel.name, wheel.version, wheel.sha256) == ("torch", Version("2.1.1+cpu"), SHA256)
    assert wheel.url == "https://index.test/cpu/torch-2.1.1%2Bcpu-cp311-cp311-win_amd64.whl"
    assert wheel.requires == (Requirement("filelock"), Requirement("sympy>=1.13"))


def test_names_are_listed_and_locks_named(opened: Catalogue) -> None:
    assert (opened.app_names(), opened.profile_names(), opened.index_names()) == (("mini",), ("tiny",), ("cpu",))
    app, platform = opened.app("mini"), PLATFORMS["macos-arm64"]
    folder = opened.root / "lockfiles" / "mini"
    assert opened.lock_path(app, opened.profile("tiny"), platform) == folder / "tiny.macos-arm64.txt"
    platforms = PROFILE[PROFILE.index("platforms") : PROFILE.index("specificity")]
    _write(opened, "profiles/tiny.toml", PROFILE.replace(platforms, 'platforms = ["linux-x86_64", "macos-arm64"]\n'))
    assert opened.lock_path(app, opened.profile("tiny"), platform) == folder / "tiny.macos-arm64.txt"
    _write(opened, "profiles/tiny.toml", PROFILE.replace(platforms, 'platforms = ["macos-arm64"]\n'))
    assert opened.lock_path(app, opened.profile("tiny"), platform) == folder / "tiny.txt"


@pytest.mark.parametrize(
    ("read", "kind", "sentence"),
    [
        (lambda c: c.app("mni"), UnknownAppError, 'there is no app "mni"; did you mean "mini"?'),
        (lambda c: c.app("zzz"), UnknownAppError, 'there is no app "zzz"; known: mini'),
        (lambda c: c.profile("tni"), UnknownProfileError, 'there is no profile "tni"; did you mean "tiny"?'),
    ],
    ids=["app", "app-none-near", "profile"],
)
def test_unknown_name_gets_the_nearest(
    opened: Catalogue, read: Callable[[Catalogue], object], kind: type[PatchlockError], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        read(opened)
    assert str(caught.value) == sentence


def test_find_takes_the_named_folder_or_the_checkout(opened: Catalogue, tmp_path: Path) -> None:
    assert reader.find(opened.root).root == opened.root.resolve()
    assert reader.find(None).root == ROOT
    with pytest.raises(UsageError) as caught:
        reader.find(tmp_path)
    assert str(caught.value) == f"that folder holds no catalogue ({tmp_path}); it needs profiles/ and patches/"
    (tmp_path / "profiles").mkdir()
    with pytest.raises(UsageError):
        reader.find(tmp_path)


def test_catalogue_of_the_wheel_is_found_beside_the_code(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "installer" / "patchlock", tmp_path / "patchlock", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "patchlock" / "_catalogue").mkdir()
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from patchlock.catalogue import reader; print(reader.find(None).root)"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == tmp_path / "patchlock" / "_catalogue"


def test_read_all_collects_the_mistakes_of_all_files(opened: Catalogue) -> None:
    assert [[found.name for found in kind] for kind in opened.read_all()] == [["mini"], ["tiny"]]
    (opened.root / "patches" / "other").mkdir()
    _write(opened, "patches/mini/app.toml", APP.replace('license = "MIT"', "license = 1"))
    _write(opened, "patches/other/app.toml", "[app]\ntitle =\n")
    _write(opened, "profiles/tiny.toml", PROFILE.replace("specificity = 0", 'specificity = "0"'))
    assert _mistakes(opened.read_all) == [
        "patches/mini/app.toml:3: app.license: it is a number, and must be a text",
        "patches/other/app.toml:2: it is not TOML: Invalid value (at line 2, column 8)",
        "profiles/tiny.toml:6: profile.specificity: it is a text, and must be a whole number",
    ]
