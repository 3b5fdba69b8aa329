"""The patches of distributions that we ship: they read, and hold on the real wheels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import uv
from conftest import ROOT
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.distributions import wheel_patching
from patchlock.model.errors import UnknownDistributionError
from patchlock.model.patch import OutcomeKind

CATALOGUE = Catalogue(root=ROOT)
NAMES = CATALOGUE.distribution_names()
KNOWN = [
    pytest.param(name, wheel, id=wheel.filename) for name in NAMES for wheel in CATALOGUE.distribution(name).wheels
]


def test_there_are_some() -> None:
    assert "gradio-client" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_fact_has_a_source(name: str) -> None:
    read = CATALOGUE.distribution(name)
    assert read.wheels, "nobody has tried it"
    assert all(re.match(r"https://", source) for source in [read.source, *(patch.source for patch in read.patches)])
    assert all(wheel.source for wheel in read.wheels)


@pytest.mark.parametrize("name", NAMES)
def test_cases_have_controls(name: str) -> None:
    text = (ROOT / CATALOGUE.distribution(name).cases).read_text(encoding="utf-8")
    assert re.search(r"^def control_", text, re.MULTILINE)
    assert re.search(r"^def case_", text, re.MULTILINE)


@pytest.mark.online
@pytest.mark.parametrize(("name", "wheel"), KNOWN)
def test_patches_hold_on_every_known_wheel(name: str, wheel: object, tmp_path: Path) -> None:
    read = CATALOGUE.distribution(name)
    obtained = wheel_patching.obtain(read, wheel.version, tmp_path, tell=lambda *_: None)
    assert obtained.is_known
    made = wheel_patching.patch(read, ROOT, obtained.path, sha256=obtained.sha256)
    partly = read.partly_fixed_from is not None and wheel.version >= read.partly_fixed_from
    assert made.kind is (OutcomeKind.PARTLY_FIXED if partly else OutcomeKind.NEEDED)
    assert made.packed is not None
    assert all(result.passed for result in made.after)
    assert {result.value for result in made.before if result.is_control} == {
        result.value for result in made.after if result.is_control
    }
    again = wheel_patching.patch(read, ROOT, obtained.path, sha256=obtained.sha256)
    assert again.packed is not None
    assert again.packed.sha256 == made.packed.sha256


@pytest.mark.online
@pytest.mark.parametrize(
    ("version", "failed"),
    [
        ("0.7.0", 11),
        ("1.3.0", 11),
        ("1.7.2", 11),
        ("1.8.0", 10),
        ("2.7.2", 10),
    ],
)
def test_boolean_schemas_before_the_patch(version: str, failed: int, tmp_path: Path) -> None:
    """What upstream's releases really do with each form of a boolean schema."""
    read = CATALOGUE.distribution("gradio-client")
    obtained = wheel_patching.obtain(read, Version(version), tmp_path, tell=lambda *_: None)
    made = wheel_patching.patch(read, ROOT, obtained.path, sha256=obtained.sha256)
    wrong = [result.id for result in made.before if not result.passed]
    assert len(wrong) == failed
    assert ("case_additional_properties_true" in wrong) == (Version(version) < Version("1.8.0"))
    assert "case_additional_properties_false" in wrong


def test_older_gradio_client_is_not_for_it(tmp_path: Path) -> None:
    read = CATALOGUE.distribution("gradio-client")
    with pytest.raises(UnknownDistributionError, match=r"^the patches of gradio-client are for .*, not for 0.6.1"):
        wheel_patching.obtain(read, Version("0.6.1"), tmp_path, tell=lambda *_: None)


@pytest.mark.online
def test_patched_gradio_client_installs_for_an_exact_pin(tmp_path: Path) -> None:
    import subprocess
    import sys

    read = CATALOGUE.distribution("gradio-client")
    obtained = wheel_patching.obtain(read, Version("1.3.0"), tmp_path / "cache", tell=lambda *_: None)
    made = wheel_patching.patch(read, ROOT, obtained.path, sha256=obtained.sha256)
    assert made.packed is not None
    written = wheel_patching.write(made.packed, tmp_path / "wheels")
    command = [uv.find_uv_bin(), "pip", "install", "--no-deps", "--no-index", "--find-links", written.parent]
    subprocess.run([*command, "--target", tmp_path / "site", "gradio-client==1.3.0"], check=True, capture_output=True)
    code = (
        "import base64, hashlib, sys, importlib.metadata as metadata\n"
        "[found] = metadata.distributions(path=[sys.argv[1]])\n"
        "hashed = [file for file in found.files if file.hash]\n"
        "for file in hashed:\n"
        "    digest = hashlib.sha256(file.locate().read_bytes()).digest()\n"
        "    assert base64.urlsafe_b64encode(digest).decode().rstrip('=') == file.hash.value, file\n"
        "print(found.version, len(hashed) > 15)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, tmp_path / "site"], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(made.packed.version), "True"]
