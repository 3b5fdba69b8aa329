"""An app that needs files of other repositories: they come at upstream's commits, are patched, locked, moved, bundled."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from conftest import Patchlock
from miniature import World, lock_here
from test_users_tree import git

from patchlock.model.app import Submodule
from patchlock.model.identities import CommitId
from patchlock.worktree import upstream_cache

FOLDER = "third_party/tones"
TONES = 'from third_party.tones.inner import scale\n\nDEVICE = "cuda"\nHEIGHT = scale.STEP + 1\n\n\ndef play():\n    return HEIGHT\n'
APP = """\
import alpha
from third_party.tones import tones

DEVICE = "cuda"

if __name__ == "__main__":
    assert not (DEVICE + tones.DEVICE).count("cu"), "no CUDA here"
    print("computed on", DEVICE, tones.HEIGHT)
"""


def repository(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return commit(folder, files)


def commit(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "change")
    return folder


def add_submodule(folder: Path, other: Path, path: str, url: str) -> None:
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), path)
    git(folder, "config", "-f", ".gitmodules", f"submodule.{path}.url", url)
    commit(folder, {})


@pytest.fixture
def public(world: World, tmp_path: Path) -> Path:
    """Make a public repository of the miniature, with a submodule that has one; the app's file names it."""
    inner = repository(tmp_path / "inner", {"scale.py": "STEP = 1\n", "__init__.py": ""})
    tones = repository(tmp_path / "tones", {"tones.py": TONES, "__init__.py": ""})
    add_submodule(tones, inner, "inner", "../inner")
    wanted = {path.name: path.read_text() for path in world.upstream.iterdir()}
    folder = repository(tmp_path / "public", wanted | {"app.py": APP})
    add_submodule(folder, tones, FOLDER, "../tones")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
    names_upstream(world, folder)
    return folder


def names_upstream(world: World, folder: Path, more: str = f'submodules = ["{FOLDER}"]') -> None:
    head = git(folder, "rev-parse", "HEAD").strip()
    table = f'[upstream]\nurl = "{folder}"\nbranch = "main"\ncommit = "{head}"\n{more}\n\n'
    world.app.write_text(re.sub(r"\[upstream\]\n.*?\n\n", table, world.app.read_text(), flags=re.DOTALL))


def moved_on(public: Path, tmp_path: Path, files: dict[str, str]) -> None:
    """Let the submodule, and then upstream, have a newer commit."""
    commit(tmp_path / "tones", files)
    git(public / FOLDER, "fetch", "-q", str(tmp_path / "tones"), "main")
    git(public / FOLDER, "checkout", "-q", "FETCH_HEAD")
    commit(public, {})


def test_submodules_are_installed_patched_locked_and_updated(
    public: Path, world: World, tmp_path: Path, patchlock: Patchlock
) -> None:
    assert patchlock(*lock_here()).returncode == 0
    lock = next((world.catalogue / "lockfiles").rglob("*.txt")).read_text()
    assert f'"upstream:{FOLDER}"' in lock
    done = patchlock("install", "mini", "--json")
    assert done.returncode == 0, done.stdout
    source = Path(json.loads(done.stdout)["data"]["folder"]) / "source"
    assert patchlock("run", "mini").stdout == "computed on cpu 2\n"
    assert (source / FOLDER / "tones.py").read_text() == TONES.replace("cuda", "cpu")
    assert git(source, "rev-parse", "HEAD^") == git(public, "rev-parse", "HEAD")
    assert git(source, "status", "--porcelain").split() == [
        "M",
        "app.py",
        "M",
        "requirements.txt",
        "M",
        f"{FOLDER}/tones.py",
    ]

    tones = source / FOLDER / "tones.py"
    tones.write_text(tones.read_text() + "# mine\n")
    moved_on(public, tmp_path, {"tones.py": TONES.replace("+ 1", "+ 5"), "more.py": "NEW = 1\n"})
    done = patchlock("update", "mini")
    assert done.returncode == 0, done.stderr
    assert patchlock("run", "mini").stdout == "computed on cpu 6\n"
    assert tones.read_text() == TONES.replace("cuda", "cpu").replace("+ 1", "+ 5") + "# mine\n"
    assert (source / FOLDER / "more.py").exists()

    assert patchlock("rollback", "mini").returncode == 0
    assert patchlock("run", "mini").stdout == "computed on cpu 2\n"
    assert tones.read_text() == TONES.replace("cuda", "cpu") + "# mine\n"
    assert not (source / FOLDER / "more.py").exists()


def test_a_bundle_brings_submodules_where_nothing_can_be_reached(
    public: Path, tmp_path: Path, patchlock: Patchlock
) -> None:
    assert patchlock(*lock_here()).returncode == 0
    file = tmp_path / "mini.bundle"
    done = patchlock("bundle", "mini", "-o", str(file))
    assert done.returncode == 0, done.stderr
    for folder in (public, tmp_path / "tones", tmp_path / "inner"):
        folder.rename(folder.with_name(f"{folder.name}-gone"))
    elsewhere = {"PATCHLOCK_HOME": str(tmp_path / "other-home"), "PATCHLOCK_CACHE_DIR": str(tmp_path / "other-cache")}
    done = patchlock("install", "mini", "--from", str(file), env=elsewhere)
    assert done.returncode == 0, done.stderr
    assert patchlock("run", "mini", env=elsewhere).stdout == "computed on cpu 2\n"

    # What it brought is found as if it had been downloaded.
    for command in (
        "plan mini",
        "patch diff mini",
        "patch status mini",
        "export mini --format cyclonedx",
        f"bundle mini -o {tmp_path / 'again.bundle'}",
        "install mini --reinstall",
    ):
        done = patchlock(*command.split(), env=elsewhere)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert patchlock("run", "mini", env=elsewhere).stdout == "computed on cpu 2\n"
    done = patchlock("update", "mini", env=elsewhere)
    assert (done.returncode, "\nerror[upstream]: " in done.stderr) == (1, True), "what is newest, only upstream knows"


def test_a_clone_of_the_users_keeps_its_submodules(
    public: Path, world: World, tmp_path: Path, patchlock: Patchlock
) -> None:
    text = world.app.read_text() + (
        '[[patch]]\nid = "tones"\nwhy = "w"\nsource = "https://example.com/why"\nop = "replace-expression"\n'
        f'paths = ["{FOLDER}/tones.py"]\nliteral = ["HEIGHT"]\npattern = "scale.STEP + 1"\nreplacement = "7"\n'
        'after = ["on-the-cpu"]\n'
        '[[patch.ensure]]\ncheck = "no-string"\nvalue = "nothing"\n'
    )
    world.app.write_text(text)
    clone = tmp_path / "clone"
    allowed = ("-c", "protocol.file.allow=always")
    subprocess.run(["git", *allowed, "clone", "-q", "--recurse-submodules", str(public), str(clone)], check=True)
    before = (clone / FOLDER / "tones.py").read_text()
    done = patchlock("patch", "apply", "mini", "--profile", "tiny", "--source", str(clone))
    assert done.returncode == 0, done.stderr
    assert f"{FOLDER} is a repository of its own, which only an install patches" in " ".join(done.stdout.split())
    assert (clone / FOLDER / "tones.py").read_text() == before
    assert 'DEVICE = "cpu"' in (clone / "app.py").read_text()

    # A clone that has them is also where an install takes them from.
    for folder in (tmp_path / "tones", tmp_path / "inner"):
        folder.rename(folder.with_name(f"{folder.name}-gone"))
    assert patchlock(*lock_here(), "--source", str(clone)).returncode == 0
    done = patchlock("install", "mini", "--source", str(clone))
    assert done.returncode == 0, done.stderr
    assert patchlock("run", "mini").stdout == "computed on cpu 7\n"


def test_a_submodule_that_is_not_there_is_named(
    public: Path, world: World, tmp_path: Path, patchlock: Patchlock
) -> None:
    names_upstream(world, public, 'submodules = ["third_party/tune"]')
    done = patchlock(*lock_here())
    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    assert f"{git(public, 'rev-parse', 'HEAD')[:12]} of mini has no submodule third_party/tune" in told
    assert f"correct `submodules` in [upstream]; it has {FOLDER}" in told

    names_upstream(world, public)
    (tmp_path / "inner").rename(tmp_path / "gone")
    shutil.rmtree(public / ".git" / "modules")
    shutil.rmtree(tmp_path / "tones" / ".git" / "modules")
    for path in (*public.rglob("third_party/**/.git"), tmp_path / "tones" / "inner" / ".git"):
        path.unlink()
    done = patchlock(*lock_here())
    assert done.returncode == 1
    assert "the submodule inner could not be fetched at commit" in " ".join(done.stdout.split())
    assert not list((world.catalogue / "lockfiles").rglob("*.txt"))


def test_new_app_proposes_the_submodules_that_the_code_asks_for(
    public: Path, tmp_path: Path, patchlock: Patchlock
) -> None:
    add_submodule(public, repository(tmp_path / "docs", {"a.md": "x"}), "docs", "../docs")
    url = "https://example.com/owner/tuner"
    done = patchlock("new-app", url, "--source", str(public), "--into", str(tmp_path / "mine"), "--profile", "tiny")
    written = next((tmp_path / "mine").rglob("app.toml"), None)
    assert written is not None, done.stdout + done.stderr
    assert f'submodules = ["{FOLDER}"]' in written.read_text()


@pytest.mark.parametrize(
    ("written", "place", "asked"),
    [
        ("../b.git", "https://host.test/me/a.git", "https://host.test/me/b.git"),
        ("./b", "https://host.test/me/a/", "https://host.test/me/a/b"),
        ("git@host.test:me/b.git", "https://host.test/me/a", "https://host.test/me/b.git"),
        ("ssh://git@host.test/me/b.git", "https://host.test/me/a", "https://host.test/me/b.git"),
        ("https://other.test/b", "https://host.test/me/a", "https://other.test/b"),
        ("/etc/secret.git", "https://host.test/me/a", ""),
        ("file:///etc/secret.git", "https://host.test/me/a", ""),
        ("ext::sh -c whoami", "https://host.test/me/a", ""),
        ("--upload-pack=whoami", "https://host.test/me/a", ""),
    ],
)
def test_an_address_is_completed_or_never_asked(tmp_path: Path, written: str, place: str, asked: str) -> None:
    other = repository(tmp_path / "other", {"a": "a"})
    folder = repository(tmp_path / "one", {"a": "a"})
    add_submodule(folder, other, "lib", written)
    head = CommitId(git(folder, "rev-parse", "HEAD").strip())
    at = CommitId(git(other, "rev-parse", "HEAD").strip())
    expected = [Submodule(name="lib", path=PurePosixPath("lib"), url=asked, commit=at)] if asked else []
    assert list(upstream_cache.submodules(folder, head, place)) == expected
