"""`--json` of every command: one envelope, in which `ok`, `error` and the exit code say the same."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from conftest import ROOT, Said
from loopback import LoopbackIndex
from miniature import APP, World, this_platform
from test_authoring_commands import case
from test_new_app import URL, git, upstream

from patchlock.cli._commands import patchlock as every_command

Face = Callable[..., Said]
Words = tuple[str, ...]
CODES = re.findall(r"^\| `([a-z-]+)` \|", (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
PATCH = APP[APP.index('[[patch]]\nid = "on-the-cpu"') : APP.index("[[check]]")]


def _paths(group: click.Group, *before: str) -> list[Words]:
    context = click.Context(group)
    found: list[Words] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        found += _paths(command, *before, name) if isinstance(command, click.Group) else [(*before, name)]
    return found


def _envelope(said: Said) -> dict[str, object]:
    told: dict[str, object] = json.loads(said.stdout)
    assert list(told) == ["patchlock", "command", "ok", "data", "error"]
    assert told["ok"] is (told["error"] is None)
    assert told["ok"] is (said.returncode == 0)
    return told


@pytest.mark.parametrize("path", _paths(every_command), ids=" ".join)
def test_mistake_on_the_command_line_is_an_error_of_the_envelope(path: Words, face: Face) -> None:
    told = _envelope(face(*path, "--json", "--no-such-option"))
    error = told["error"]
    assert told["command"] == " ".join(path)
    assert isinstance(error, dict)
    # What follows the app that `run` starts is the app's.
    assert (told["data"], error["code"]) == (None, "unknown-app" if path == ("run",) else "usage")
    assert error["remedy"]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("--json", ""),
        ("infoo --json", ""),
        ("--catalogue /nonexist list --json", ""),
        ("self nope --json", "self"),
        ("patch nope --json", "patch"),
        ("index --json", "index"),
        ("help list --json", "help"),
        ("completions bash --json", "completions"),
        ("list --json=1", "list"),
    ],
)
def test_line_without_a_command_that_has_json_fails_in_the_envelope(line: str, command: str, face: Face) -> None:
    told = _envelope(face(*line.split()))
    assert told["command"] == command
    assert isinstance(told["error"], dict)
    assert told["error"]["code"] == "usage"


@dataclasses.dataclass(frozen=True)
class Stage:
    """What a scene plays on."""

    world: World
    folder: Path
    face: Face
    index: LoopbackIndex


@pytest.fixture
def stage(locked: World, tmp_path: Path, face: Face) -> Iterator[Stage]:
    index = LoopbackIndex()
    yield Stage(world=locked, folder=tmp_path, face=face, index=index)
    index.close()


def _failing_patch(world: World) -> None:
    world.app.write_text(world.app.read_text().replace('value = "cuda"', 'value = "no CUDA here"'))


def plan(stage: Stage) -> Words:
    _failing_patch(stage.world)
    return ("plan", "mini", "--profile", "tiny")


def plan_on_a_machine_that_lacks_something(stage: Stage) -> Words:
    need = stage.world.catalogue / "profiles" / "needs" / "no-such-program.toml"
    shutil.copytree(ROOT / "profiles" / "needs", need.parent)
    text = (need.parent / "ffmpeg.toml").read_text()
    need.write_text(text.replace('"ffmpeg"', '"no-such-program"'))
    asked = '\n[[need]]\nname = "no-such-program"\nwhy = "w"\nsource = "https://example.com/why"\n'
    stage.world.app.write_text(stage.world.app.read_text() + asked)
    return ("plan", "mini", "--profile", "tiny")


def patch_status(stage: Stage) -> Words:
    _failing_patch(stage.world)
    return ("patch", "status", "mini", "--profile", "tiny")


def patch_test(stage: Stage) -> Words:
    case(stage.world, "on-the-cpu", "one", before__a_py='x = "cuda"\n', after__a_py='x = "tpu"\n')
    return ("patch", "test", "mini")


def patch_update(stage: Stage) -> Words:
    theirs = upstream(stage.folder / "theirs", {"app.py": 'a = 1\nb = 2\nc = "cuda"\n'})
    git(stage.folder, "clone", "-q", str(theirs), "clone")
    (stage.folder / "own.toml").write_text(PATCH)
    words = ("--source", "clone", "--patches", "own.toml")
    assert stage.face("patch", "apply", *words).returncode == 0
    mine = stage.folder / "clone" / "app.py"
    mine.write_text(mine.read_text().replace("a = 1", "a = 'mine'"))
    (theirs / "app.py").write_text('a = "theirs"\nb = 2\nc = "cuda"\n')
    git(theirs, "commit", "-q", "-a", "-m", "y")
    return ("patch", "update", *words)


def check(stage: Stage) -> Words:
    stage.world.app.write_text(
        stage.world.app.read_text().replace('source = "https://example.com/why"', 'source = "hearsay"')
    )
    return ("check", "mini", "--offline")


def doctor(stage: Stage) -> Words:
    says = "Failed to initialize NVML: Driver/library version mismatch"
    return ("doctor", "--catalogue", str(ROOT), "--says", says)


def new_app(stage: Stage) -> Words:
    clone = upstream(stage.folder / "clone", {"requirements.txt": "alpha==9.0,!=8\n", "app.py": ""})
    return ("new-app", URL, "--source", str(clone), "--into", "mine", "--catalogue", str(ROOT), "--explain", "0")


def lock(stage: Stage) -> Words:
    stage.world.app.write_text(stage.world.app.read_text().replace('"==1.0"', '"==7.0"'))
    return ("lock", "mini", "--platform", this_platform().name, "--explain", "0")


def lock_check(stage: Stage) -> Words:
    stage.world.app.write_text(stage.world.app.read_text() + "\n")
    return ("lock", "--check")


def lock_diff(stage: Stage) -> Words:
    stage.world.app.write_text(stage.world.app.read_text().replace('"==1.0"', '"==2.0"'))
    return ("lock", "mini", "--platform", this_platform().name, "--diff")


def index_record(stage: Stage) -> Words:
    index = stage.index
    index.file("alpha-1.0-py3-none-any.whl.metadata", b"Name: alpha\nVersion: 1.0\n")
    fragment = f"#sha256={'a' * 64}"
    index.html(f'<a href="../alpha-1.0-py3-none-any.whl{fragment}" data-core-metadata="true">alpha</a>')
    path = stage.world.catalogue / "profiles" / "indexes" / "vendor.toml"
    path.parent.mkdir()
    keep = 'distributions = ["alpha"]\npythons = ["3.11"]\nplatforms = ["linux-x86_64"]\n'
    path.write_text(f'[index]\nurl = "{index.url}"\n\n[index.keep]\n{keep}')
    return ("index", "record", "vendor", "--check")


def verify(stage: Stage) -> Words:
    assert stage.face("install", "mini", "--profile", "tiny").returncode == 0
    damaged = next((stage.folder / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages/alpha.py"))
    damaged.unlink()
    return ("verify", "mini", "--quick")


@pytest.mark.parametrize(
    ("arrange", "code"),
    [
        (plan, "patch"),
        (plan_on_a_machine_that_lacks_something, "not-ready"),
        (patch_status, "patch"),
        (patch_test, "patch"),
        (patch_update, "edits-meet"),
        (check, "check"),
        (doctor, "trouble"),
        (new_app, "unsatisfiable"),
        (lock, "locks"),
        (lock_check, "locks"),
        (lock_diff, "drift"),
        (index_record, "drift"),
        (verify, "verify"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_a_command_finds_wrong_is_an_error_beside_its_data(
    stage: Stage, arrange: Callable[[Stage], Words], code: str
) -> None:
    words = arrange(stage)
    told = _envelope(stage.face(*words, "--json"))
    error, data = told["error"], told["data"]
    assert isinstance(error, dict), data
    assert error["code"] == code
    assert code in CODES
    assert error["what"]
    assert error["remedy"]
    assert data


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("list", "--all"),
        ("info", "mini"),
        ("status",),
        ("outdated",),
        ("cache",),
        ("detect",),
        ("doctor",),
        ("doctor", "mini"),
        ("doctor", "mini", "--says", "the cat sat on the keyboard"),
        ("models", "mini"),
        ("plan", "mini"),
        ("verify", "mini", "--quick"),
        ("check", "mini", "--offline"),
        ("check", "--offline"),
        ("check", "demo", "--offline", "--catalogue", str(ROOT)),
        ("lock", "--check"),
        ("matrix",),
        ("matrix", "--groups", "2"),
        ("why", "mini", "alpha"),
        ("install", "mini"),
        ("uninstall", "mini", "--dry-run"),
        ("self", "remove", "--dry-run"),
        ("run", "mini"),
    ],
    ids=" ".join,
)
def test_what_is_printed_of_an_installed_app_is_as_the_schemas_say(
    installed: Face, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The face holds each output against its schema; what is printed of nothing installed stands in other tests."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/rocm/lib")
    assert _envelope(installed(*words, "--json"))["data"] is not None


@pytest.fixture
def installed(locked: World, face: Face) -> Face:
    assert face("install", "mini", "--profile", "tiny").returncode == 0
    return face


def test_doctor_of_an_app_that_is_not_there_says_so(face: Face, locked: World) -> None:
    done = face("doctor", "mini")
    assert (done.returncode, done.stderr) == (
        1,
        (
            "error[not-installed]: mini is not installed; `patchlock plan mini` says what this machine lacks for it, "
            "`patchlock install mini` installs it\n"
        ),
    )
    assert face("doctor", "minj").stderr.startswith('error[unknown-app]: there is no app "minj"')
