"""`bundle` and `--from`: what one machine gathers is all that another one needs, and nothing else is taken."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Patchlock, Said
from miniature import World, seal, this_platform
from test_update import change
from test_users_tree import git

from patchlock.core import bundles

Members = dict[str, bytes]
_ONLINE = {"UV_OFFLINE": "0", "UV_HTTP_RETRIES": "0"}
pytestmark = pytest.mark.slow


@pytest.fixture
def bundle(locked: World, patchlock: Patchlock, tmp_path: Path) -> Path:
    done = patchlock("bundle", "mini", "-o", "mini.bundle", "--json", env=_ONLINE)
    assert done.returncode == 0, done.stderr + done.stdout
    file = tmp_path / "mini.bundle"
    assert json.loads(done.stdout)["data"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    return file


@pytest.fixture
def there(locked: World, patchlock: Patchlock, tmp_path: Path) -> Callable[..., Said]:
    """Run on a machine that has the catalogue and nothing else, and no index."""
    env = {
        "PATCHLOCK_HOME": str(tmp_path / "there" / "home"),
        "PATCHLOCK_CACHE_DIR": str(tmp_path / "there" / "cache"),
        "UV_CACHE_DIR": str(tmp_path / "there" / "uv"),
        "UV_DEFAULT_INDEX": "https://index.invalid/simple",
        "UV_OFFLINE": "0",
    }
    return lambda *words: patchlock(*words, env=env)


def rewrite(bundle: Path, change: Callable[[Members], None], *, lists: bool = False) -> None:
    """Change the members, and the manifest too where somebody is thorough."""
    with tarfile.open(bundle) as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    change(members)
    if lists:
        manifest = json.loads(members["manifest.json"])
        manifest["pieces"] = {
            name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    with tarfile.open(bundle, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _wheel(members: Members) -> str:
    return next(name for name in members if "/alpha-1.0" in name)


def test_bundle_is_installed_run_and_left_alone_without_any_index(
    bundle: Path, there: Callable[..., Said], tmp_path: Path
) -> None:
    done = there("install", "mini", "--from", str(bundle))
    assert done.returncode == 0, done.stderr
    assert there("run", "mini").stdout == "computed on cpu\n"
    assert there("verify", "mini").returncode == 0
    again = there("install", "mini", "--from", str(bundle))
    assert (again.returncode, again.stdout) == (
        0,
        "mini is installed on tiny and up to date: nothing to do\nnote    not verified: no kernel was computed\n",
    )


@pytest.fixture
def second(locked: World, patchlock: Patchlock, tmp_path: Path) -> Path:
    """A bundle of a newer commit than the catalogue's."""
    public, file = tmp_path / "public", tmp_path / "second.bundle"
    shutil.copytree(locked.upstream, public)
    git(public, "init", "-q", "-b", "main")
    git(public, "add", "-A")
    git(public, "commit", "-q", "-m", "one")
    change(public, '"""An app."""', '"""A newer app."""')
    done = patchlock("bundle", "mini", "--source", str(public), "--commit", "main", "-o", str(file), env=_ONLINE)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(public)
    return file


def test_bundle_of_another_commit_installs_that_commit_once(
    second: Path, there: Callable[..., Said], tmp_path: Path
) -> None:
    done = there("install", "mini", "--from", str(second))
    assert done.returncode == 0, done.stderr
    app = tmp_path / "there" / "home" / "mini@tiny" / "source" / "app.py"
    assert app.read_text().startswith('"""A newer app."""')
    again = there("install", "mini", "--from", str(second))
    assert (again.returncode, again.stdout) == (
        0,
        "mini is installed on tiny and up to date: nothing to do\nnote    not verified: no kernel was computed\n",
    )


def test_second_bundle_updates_and_is_rolled_back(
    bundle: Path, second: Path, there: Callable[..., Said], tmp_path: Path
) -> None:
    assert there("install", "mini", "--from", str(bundle)).returncode == 0
    done = there("update", "mini", "--from", str(second))
    assert done.returncode == 0, done.stderr
    app = tmp_path / "there" / "home" / "mini@tiny" / "source" / "app.py"
    assert app.read_text().startswith('"""A newer app."""')
    assert there("rollback", "mini").returncode == 0
    assert app.read_text().startswith('"""An app."""')


def _flip(members: Members) -> None:
    name = _wheel(members)
    members[name] = members[name][:-1] + bytes([members[name][-1] ^ 1])


def _lose(members: Members) -> None:
    del members[_wheel(members)]


def _add(members: Members) -> None:
    members["cache/wheels/0123456789abcdef/evil-1-py3-none-any.whl"] = b"evil"


def _elsewhere(members: Members) -> None:
    members["installed/mini"] = b""


def _no_upstream(members: Members) -> None:
    del members["upstream.bundle"]


@pytest.mark.parametrize("lists", [False, True], ids=["as listed before", "as the manifest says"])
@pytest.mark.parametrize(
    ("change_members", "says"),
    [
        (_flip, "alpha-1.0"),
        (_lose, "alpha"),
        (_add, "cache/wheels/0123456789abcdef/evil-1-py3-none-any.whl is one piece too many"),
        (_elsewhere, "installed/mini is one piece too many"),
        (_no_upstream, "upstream.bundle is missing"),
    ],
    ids=["flipped", "missing", "too many", "elsewhere", "no upstream"],
)
def test_changed_bundle_is_refused_and_nothing_is_touched(
    bundle: Path,
    there: Callable[..., Said],
    tmp_path: Path,
    change_members: Callable[[Members], None],
    says: str,
    lists: bool,
) -> None:
    rewrite(bundle, change_members, lists=lists)
    done = there("install", "mini", "--from", str(bundle))
    assert done.returncode == 1
    assert "error[bundle]: the bundle was not used: " in done.stderr
    assert says in done.stderr
    assert "nothing was touched" in done.stderr
    assert not list((tmp_path / "there").rglob("*.whl"))
    assert not (tmp_path / "there" / "home" / "mini@tiny").exists()


def test_changed_bundle_is_refused_where_its_app_is_installed_too(bundle: Path, there: Callable[..., Said]) -> None:
    assert there("install", "mini", "--from", str(bundle)).returncode == 0
    rewrite(bundle, _flip)
    done = there("install", "mini", "--from", str(bundle))
    assert done.returncode == 1
    assert "error[bundle]: the bundle was not used: " in done.stderr
    assert "alpha-1.0" in done.stderr


def test_bundle_of_another_lock_app_or_profile_is_refused(
    locked: World, bundle: Path, there: Callable[..., Said], tmp_path: Path
) -> None:
    done = there("install", "other", "--from", str(bundle))
    assert "it is for mini on tiny, not for other; nothing was touched" in done.stderr
    assert f"`patchlock install mini --from {bundle}`" in done.stderr
    assert "`patchlock bundle other -o other.bundle`" in done.stderr
    done = there("install", "mini", "--profile", "big", "--from", str(bundle))
    assert "it is for mini on tiny, not for mini on big; nothing was touched" in done.stderr
    assert "`patchlock bundle mini --profile big -o mini.bundle`" in done.stderr
    path = locked.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"
    path.write_text(path.read_text().replace("via alpha", "via alpha, now", 1))
    seal(path)
    done = there("install", "mini", "--from", str(bundle))
    name = path.relative_to(locked.catalogue).as_posix()
    assert f"it is for another lock than {name}, which the catalogue has here" in done.stderr
    assert not (tmp_path / "there" / "cache" / "wheels").exists()


def test_killed_bundle_leaves_the_old_file_and_nothing_that_stays(
    bundle: Path, patchlock: Patchlock, tmp_path: Path
) -> None:
    whole, tries, kept = bundle.read_bytes(), 0, set[str]()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = patchlock.env(_ONLINE | {"TMPDIR": str(temporary)})
    while True:  # a little later each time, until it is through
        started = subprocess.Popen(
            [*patchlock.command, "bundle", "mini", "-o", "mini.bundle"],
            cwd=tmp_path,
            env=env,
            stderr=subprocess.DEVNULL,
        )
        try:
            started.wait(0.1 + 0.2 * tries)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        assert bundle.read_bytes() == whole
        kept.update(path.name for path in tmp_path.glob(".mini.bundle*"))
        if started.returncode == 0:
            break
        tries += 1
    assert tries > 0
    assert kept <= {".mini.bundle.new"}
    assert not list(tmp_path.glob(".mini.bundle*"))
    assert not list((tmp_path / "cache").glob("bundling/*"))
    assert not list(temporary.glob("patchlock-bundle-*"))


def test_file_name_is_quoted_where_the_next_command_is_told(
    locked: World, patchlock: Patchlock, there: Callable[..., Said], tmp_path: Path
) -> None:
    name = "ü $(touch gone) %s.bundle"
    done = patchlock("bundle", "mini", "-o", name, env=_ONLINE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"--from {shlex.quote(name)}\n")
    assert there("install", "mini", "--from", name).returncode == 0


def test_bundle_is_made_again_but_not_over_a_file_of_the_user(bundle: Path, patchlock: Patchlock) -> None:
    command = ("bundle", "mini", "-o", str(bundle))
    assert patchlock(*command, env=_ONLINE).returncode == 0
    bundle.write_text("mine\n")
    assert "exists already, and was not overwritten" in patchlock(*command, env=_ONLINE).stderr
    assert bundle.read_text() == "mine\n"


@pytest.mark.parametrize("has_tool", [True, False])
def test_bundle_for_an_app_that_the_catalogue_lacks_says_where_one_is(
    locked: World, face: Callable[..., Said], tmp_path: Path, has_tool: bool
) -> None:
    file = tmp_path / "tts.bundle"
    about: dict[str, object] = {"patchlock-bundle": 1, "app": "tts", "profile": "tiny", "platform": "p", "lock": ""}
    bundles.write(file, about, {"patchlock/install.sh": locked.app} if has_tool else {})
    remedy = "use the catalogue that the bundle was made from, or make it again with --with-tool"
    if has_tool:
        remedy = (
            f"the bundle has one that does: `tar -xf {file} patchlock tool`, "
            f"and then `./patchlock/install.sh tts --from {file}`"
        )
    assert face("install", "tts", "--from", str(file)).stderr == (
        f'error[unknown-app]: this catalogue has no app "tts" ({locked.catalogue}); {remedy}\n'
    )


def test_bundle_and_another_source_do_not_go_together(bundle: Path, there: Callable[..., Said]) -> None:
    done = there("install", "mini", "--from", str(bundle), "--source", "x")
    assert done.returncode == 2
    assert "a bundle has upstream, its commit and all packages" in done.stderr


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Make an archive as those of python-build-standalone are, of the Python that runs the tests."""
    archive, started = tmp_path / "a python.tar.gz", tmp_path / "starts-python"
    started.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" "$@"\n')
    started.chmod(0o755)
    with tarfile.open(archive, "w:gz") as made:
        made.add(ROOT / "installer" / "patchlock" / "py.typed", "python/lib/python3.11/site.py")
        made.add(started, "python/bin/python3")
    return archive


@pytest.mark.parametrize("name", ["a python.tar.gz", "python.pkg"])
def test_a_python_comes_out_of_a_bundle_and_onto_path(
    locked: World, patchlock: Patchlock, python: Path, tmp_path: Path, name: str
) -> None:
    if name.endswith(".pkg"):
        python.write_bytes(b"no tar file")
        python = python.rename(tmp_path / name)
    done = patchlock("bundle", "mini", "--python", str(python), "-o", "mini.bundle", env=_ONLINE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition("\nthere:\n  ")[2].splitlines()
    assert lines.pop().strip() == "patchlock install mini --profile tiny --from mini.bundle"
    python.unlink()
    script = "\n".join([*lines, "command -v python3"])
    said = subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert (tmp_path / "python" / name).is_file()
    if name.endswith(".pkg"):
        assert lines[1:] == ["  # unpack python/python.pkg, and put its Python on PATH"]
    else:
        assert said == f"{tmp_path}/python/python/bin/python3\n"


@pytest.mark.online
def test_bundle_with_the_tool_is_all_that_a_bare_machine_needs(
    patchlock: Patchlock, python: Path, tmp_path: Path
) -> None:
    for folder in ("profiles", "patches", "lockfiles/demo"):  # a catalogue of one's own, without patchlock itself
        shutil.copytree(ROOT / folder, tmp_path / "own" / folder)
    own = {"PATCHLOCK_CATALOGUE": str(tmp_path / "own")}
    assert patchlock("trust", str(tmp_path / "own")).returncode == 0
    made = patchlock(
        "bundle", "demo", "--profile", "cpu", "--with-tool", "--python", str(python), "-o", "demo.bundle", env=own
    )
    assert made.returncode == 0, made.stderr
    _, _, lines = made.stdout.partition("\nthere:\n")
    env = {"PATH": os.defpath, "HOME": str(tmp_path / "other")}
    done = subprocess.run(["sh", "-ec", lines], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "demo is installed and verified on cpu" in done.stdout
