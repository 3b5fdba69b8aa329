"""The wheel carries the catalogue, so that patchlock works outside a checkout; and what a release says of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import make_pages
import pytest
import uv
from conftest import ROOT


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Build the wheel from the checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next((tmp_path / "dist").glob("*.whl"))


def test_wheel_has_every_file_of_the_catalogue_byte_for_byte(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        names = set(archive.namelist())
        for folder in ("profiles", "patches", "lockfiles"):
            for path in (p for p in (ROOT / folder).rglob("*") if p.is_file() and "__pycache__" not in p.parts):
                name = f"patchlock/_catalogue/{path.relative_to(ROOT).as_posix()}"
                assert archive.read(name) == path.read_bytes()
                names.discard(name)
    assert not [name for name in names if name.startswith("patchlock/_catalogue/")]
    assert {"patchlock/verify/_children/onnx_session.py", "patchlock/py.typed"} <= names


def test_readme_of_the_wheel_leads_to_what_is_in_the_repository(built: Path) -> None:
    with zipfile.ZipFile(built) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode("utf-8")
    assert re.findall(r"\]\((?!https:|#)[^)]*\)", text) == []
    ours = re.findall(r"\]\(https://github\.com/patchlock/patchlock/(?:blob|raw)/main/([^)#]*)\)", text)
    assert {"docs/images/demo.svg", "docs/install.md", "SECURITY.md"} <= set(ours)
    assert [path for path in ours if not (ROOT / path).exists()] == []


@pytest.mark.online
def test_installed_from_the_wheel_it_plans_the_demo_anywhere(built: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    venv = tmp_path / "venv"
    run = lambda *words: subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)  # noqa: E731
    assert run(uv.find_uv_bin(), "venv", "-q", "--python", sys.executable, str(venv)).returncode == 0
    lock = str(ROOT / "lockfiles" / "patchlock.txt")
    python = str(next(venv.glob("[bS]*/python*")))
    done = run(uv.find_uv_bin(), "pip", "sync", "-q", "--require-hashes", "--python", python, lock)
    assert done.returncode == 0, done.stderr
    # pip, unlike uv, compiles every `.py` file of the wheel, those of the cases too.
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", str(built))
    assert done.returncode == 0, done.stderr
    assert [*venv.rglob("_catalogue/**/cases/**/*.pyc")]
    patchlock = str(Path(python).parent / "patchlock")
    done = run(patchlock, "plan", "demo", "--profile", "cpu", "--diff")
    assert done.returncode == 0, done.stderr
    assert "-onnxruntime-gpu==1.16.3" in done.stdout
    done = run(patchlock, "check", "demo", "--offline")
    assert done.returncode == 0, done.stdout
    (catalogue,) = venv.rglob("_catalogue")
    for words in (
        ("lock", "demo", "--profile", "cpu", "--platform", "linux-x86_64", "--as-of", "2026-10-01T00:00:00Z"),
        ("index", "record", "pytorch-cpu"),
        ("scan", "--record", "torch.whl"),
        ("patch", "new", "--source", str(tmp_path), "--into", str(catalogue / "patches" / "demo" / "app.toml")),
    ):
        done = run(patchlock, *words)
        assert done.returncode == 2
        assert "this catalogue came with patchlock, whose updates replace it" in done.stderr
        assert f"copy it with `cp -r {catalogue} my-catalogue`, and add `--catalogue my-catalogue`" in done.stderr
    done = run(patchlock, "bundle", "demo", "--profile", "cpu", "--with-tool", "-o", "demo.bundle")
    assert done.stderr.startswith("error[usage]: a patchlock that was installed as a Python package does not have ")
    launcher = tmp_path / "installed" / "bin" / "patchlock"
    assert f"run `./install.sh` in a git clone of patchlock, and then `{launcher} bundle`; or " in done.stderr
    assert "_catalogue" not in done.stderr
    assert "the catalogue in use cannot be written to" in run(patchlock, "new-app", "https://github.com/a/b").stderr

    (installer,) = venv.rglob("patchlock-*.dist-info/INSTALLER")
    update = f"{python} -m pip install --force-reinstall"
    told = f"patchlock was installed from {built}. Bring that up to date, then run:\n  {update} {built}\n"
    assert run(patchlock, "self", "update").stdout == told
    address = installer.with_name("direct_url.json")
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    clone = tmp_path / "clone"
    address.write_text(json.dumps({"url": clone.as_uri(), "dir_info": {}}))
    told = f"patchlock was installed from {clone}. Update it with:\n  git -C {clone} pull\n  {update} {clone}\n"
    assert run(patchlock, "self", "update").stdout == told
    address.unlink()
    for name, told in (
        ("uv\n", f"Update it with: uv pip install --upgrade --python {python} patchlock\n"),
        ("pip\n", f"Update it with: {python} -m pip install --upgrade patchlock\n"),
        ("apt\n", "The package manager that installed it updates it.\n"),
    ):
        installer.write_text(name)
        assert run(patchlock, "self", "update").stdout == f"patchlock was not installed from a clone. {told}"


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.skipif(os.name == "nt", reason="releases are made on Linux")
def test_a_release_has_the_changelogs_section_of_its_version_as_notes() -> None:
    notes = lambda version: subprocess.run(  # noqa: E731
        [str(ROOT / ".ci" / "release-notes"), version], capture_output=True, text=True, check=False
    )
    done = notes(PROJECT["version"])
    assert (done.returncode, done.stderr) == (0, "")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, _, section = changelog.partition(f"\n## {PROJECT['version']} - ")
    section = section.partition("\n## ")[0].partition("\n")[2].strip()
    at = f"https://github.com/patchlock/patchlock/blob/v{PROJECT['version']}/"
    assert re.findall(r"\]\((?!https:)[^)]*\)", done.stdout) == []
    assert done.stdout.strip().replace(at, "") == section
    assert at in done.stdout
    done = notes("9.9.9")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "pyproject.toml has another version than 9.9.9: tag the commit that has it\n"


def test_one_address_is_named_everywhere() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    (link,) = (one["link"] for one in site["extra"]["social"])
    assert PROJECT["urls"]["Source"] == make_pages.REPOSITORY == link
    assert PROJECT["urls"]["Documentation"] == make_pages.SITE == site["site_url"]
