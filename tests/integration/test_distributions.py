"""Patching a distribution: fetched by hash, judged by its cases, proved, packed; or refused with a sentence."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import PROFILE, index, wheel

from patchlock.catalogue.reader import Catalogue
from patchlock.distributions import wheel_patching, wheels
from patchlock.model.errors import DownloadError, PatchError, PatchlockError, UnknownDistributionError, UsageError
from patchlock.model.patch import OutcomeKind

BROKEN = """\
import heavy

def told(schema):
    if schema == {}:
        return "Any"
    return schema["type"]

def half(schema):
    return schema.get("type")
"""
PARTLY = BROKEN.replace('schema.get("type")', 'schema.get("type") if isinstance(schema, dict) else None')
FIXED = PARTLY.replace("schema == {}", "schema in ({}, True)")
VERSIONS = {"1.0": BROKEN, "1.5": PARTLY, "1.8": FIXED, "1.9": BROKEN.replace("schema == {}", "not schema")}
PATCH = """\
[distribution]
why = "a schema may be true"
source = "tests"
versions = ">=1,<2"
fixed-from = "1.8"
stubs = ["heavy"]

[[patch]]
id = "true"
why = "a schema may be true"
source = "tests"
op = "replace-expression"
paths = ["alpha/*.py"]
pattern = "schema == {}"
replacement = "schema in ({}, True)"
[[patch.ensure]]
check = "contains"
text = "schema in ({}, True)"

[[patch]]
id = "half"
why = "a schema may be true"
source = "tests"
op = "replace-text"
paths = ["alpha/*.py"]
old = "schema.get(\\"type\\")\\n"
new = "schema.get(\\"type\\") if isinstance(schema, dict) else None\\n"
[[patch.ensure]]
check = "contains"
text = "else None"
"""
CASES = """\
from alpha import core

def case_told():
    assert core.told(True) == "Any"

def case_half():
    assert core.half(True) is None

def control_types():
    return [core.told({}), core.told({"type": "str"}), core.half({"type": "str"})]
"""


@dataclasses.dataclass(frozen=True)
class Place:
    root: Path
    wheels: dict[str, Path]

    @property
    def file(self) -> Path:
        return self.root / "patches" / "distributions" / "alpha" / "patch.toml"

    @property
    def cases(self) -> Path:
        return self.file.with_name("cases.py")

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def patch(self, version: str = "1.0") -> wheel_patching.WheelPatchResult:
        read = Catalogue(root=self.root).distribution("alpha")
        return wheel_patching.patch(read, self.root, self.wheels[version], sha256=None)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = {
        version: wheel(tmp_path / "wheels", "alpha", version, files={"alpha/__init__.py": "", "alpha/core.py": text})
        for version, text in VERSIONS.items()
    }
    made |= {"2.0": wheel(tmp_path / "wheels", "alpha", "2.0"), "beta": wheel(tmp_path / "wheels", "beta", "1.0")}
    root = tmp_path / "catalogue"
    found = Place(root=root, wheels=made)
    found.file.parent.mkdir(parents=True)
    (root / "profiles").mkdir()
    (root / "profiles" / "tiny.toml").write_text(PROFILE)
    rows = "".join(
        f'\n[[wheel]]\nfilename = "{made[v].name}"\nsha256 = "{_sha256(made[v])}"\nsource = "tests"\n'
        for v in ("1.0", "1.8")
    )
    found.file.write_text(PATCH + rows)
    found.cases.write_text(CASES)
    monkeypatch.setenv("UV_DEFAULT_INDEX", index(tmp_path / "index", list(made.values())))
    monkeypatch.setenv("PATCHLOCK_CATALOGUE", str(root))
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("version", "kind", "failed", "outcomes", "notices"),
    [
        ("1.0", OutcomeKind.NEEDED, ["case_told", "case_half"], ["needed", "needed"], ("fixed upstream from 1.8 on",)),
        ("1.5", OutcomeKind.PARTLY_FIXED, ["case_told"], ["needed", "fixed upstream"], ("fixed upstream from 1.8 on",)),
        ("1.8", OutcomeKind.FIXED_UPSTREAM, [], [], ()),
    ],
)
def test_cases_decide_what_became_of_it(
    place: Place, version: str, kind: OutcomeKind, failed: list[str], outcomes: list[str], notices: tuple[str, ...]
) -> None:
    made = place.patch(version)
    assert made.kind is kind
    assert [result.id for result in made.before if not result.passed] == failed
    assert [outcome.kind.value for outcome in made.outcomes] == outcomes
    assert made.notices == notices
    if kind is OutcomeKind.FIXED_UPSTREAM:
        assert (made.after, made.packed) == ((), None)
    else:
        assert all(result.passed for result in made.after)
        assert made.packed is not None


def test_patched_wheel_has_the_patched_file(place: Place, tmp_path: Path) -> None:
    made = place.patch()
    assert made.packed is not None
    written = wheel_patching.write(made.packed, tmp_path / "new" / "folder")
    again = wheels.read(written, made.packed.sha256)
    text = {str(path): data.decode() for path, data in again.contents().items()}
    assert text == {"alpha/__init__.py": "", "alpha/core.py": FIXED}
    assert [path.name for path in written.parent.iterdir()] == [made.packed.filename]


@pytest.mark.parametrize(
    ("fixed", "version", "notice"),
    [
        (
            'fixed-from = "1.5"',
            "1.5",
            "the catalogue says that it is fixed from 1.5 on, but the cases of this version fail",
        ),
        (
            'fixed-from = "1.9"',
            "1.8",
            "the catalogue says that it is fixed from 1.9 on, but this version has it fixed already",
        ),
        ("", "1.8", "the catalogue knows no version that has it fixed; now there is one"),
    ],
)
def test_version_number_decides_nothing(place: Place, fixed: str, version: str, notice: str) -> None:
    place.edit(place.file, 'fixed-from = "1.8"', fixed)
    made = place.patch(version)
    assert made.notices == (notice,)
    assert (made.packed is None) == (version == "1.8")


def test_patch_that_finds_no_place_while_a_case_fails_is_refused(place: Place) -> None:
    with pytest.raises(PatchError) as caught:
        place.patch("1.9")
    name = place.wheels["1.9"].name
    assert str(caught.value) == (
        f"the patched {name} does not do what it must, so it was not made ({place.cases}); correct the patches\n"
        "  case_told: TypeError: 'bool' object is not subscriptable"
    )


def test_patch_that_changes_a_control_is_refused(place: Place) -> None:
    place.edit(place.file, 'replacement = "schema in ({}, True)"', 'replacement = "schema in ({}, True) or True"')
    with pytest.raises(PatchError) as caught:
        place.patch()
    assert caught.value.evidence == (
        'control_types: it gave ["Any", "str", "str"] before, and now ["Any", "Any", "str"]',
    )


def test_patch_that_breaks_the_package_is_refused(place: Place) -> None:
    place.edit(place.file, "else None", "else missing_name")
    place.edit(place.file, 'text = "else missing_name"', 'text = "else"')
    with pytest.raises(PatchError) as caught:
        place.patch()
    assert caught.value.evidence == ("case_half: NameError: name 'missing_name' is not defined",)


def test_ensure_that_does_not_hold_is_refused(place: Place) -> None:
    place.edit(place.file, 'text = "else None"', 'text = "something else"')
    with pytest.raises(PatchError) as caught:
        place.patch()
    assert caught.value.where == f"patches/distributions/alpha/patch.toml, {place.wheels['1.0'].name}"
    assert caught.value.evidence[0].startswith("half: alpha/core.py: ")


def test_control_that_fails_on_the_original_proves_nothing(place: Place) -> None:
    place.edit(place.cases, 'core.told({"type": "str"})', "core.gone()")
    with pytest.raises(PatchError) as caught:
        place.patch()
    assert str(caught.value) == (
        f"the controls fail on {place.wheels['1.0'].name} as upstream made it, so its cases prove nothing "
        f"({place.cases}); correct them, or `versions`\n"
        "  control_types: AttributeError: module 'alpha.core' has no attribute 'gone'"
    )


@pytest.mark.parametrize(
    ("version", "error", "sentence"),
    [
        ("2.0", UnknownDistributionError, "the patches of alpha are for <2,>=1, not for 2.0"),
        ("beta", UsageError, "beta-1.0-py3-none-any.whl is a wheel of beta, not of alpha"),
    ],
)
def test_wheel_that_it_is_not_for_is_refused(
    place: Place, version: str, error: type[PatchlockError], sentence: str
) -> None:
    with pytest.raises(error) as caught:
        place.patch(version)
    assert caught.value.what == sentence


# --- the command ------------------------------------------------------------------------------------------------------


def test_command_fetches_patches_and_writes(place: Place, tmp_path: Path, patchlock: Patchlock) -> None:
    done = patchlock("patch", "wheel", "Alpha", "--version", "1.0", "--output", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "out").iterdir()
    assert (
        f"""\
alpha 1.0: needed
  a schema may be true

cases
  case_told      fails, then passes: TypeError: 'bool' object is not subscriptable
  case_half      fails, then passes: AttributeError: 'bool' object has no attribute 'get'
  control_types  passes

patches
  true  needed  alpha/core.py:4
  half  needed  alpha/core.py:9

note: fixed upstream from 1.8 on

version  {written.name.split("-")[1]}
wheel    {written}
sha256   {_sha256(written)}
"""
        == done.stdout
    )
    assert "alpha-1.0-py3-none-any.whl" in done.stderr


def test_command_answers_in_json(place: Place, tmp_path: Path, patchlock: Patchlock) -> None:
    arguments = ("patch", "wheel", "alpha", "--wheel", str(place.wheels["1.5"]), "--output", str(tmp_path), "--json")
    first, second = (json.loads(patchlock(*arguments).stdout) for _ in range(2))
    assert first == second
    data = first["data"]
    assert (data["name"], data["version"], data["outcome"]) == ("alpha", "1.5", "partly fixed")
    assert data["original"] == {
        "filename": "alpha-1.5-py3-none-any.whl",
        "sha256": _sha256(place.wheels["1.5"]),
        "in_catalogue": False,
    }
    assert [(c["id"], c["control"], c["before"], c["after"]) for c in data["cases"]] == [
        ("case_told", False, False, True),
        ("case_half", False, True, True),
        ("control_types", True, True, True),
    ]
    assert data["wheel"]["sha256"] == _sha256(tmp_path / data["wheel"]["filename"])
    assert data["wheel"]["version"].startswith("1.5+patchlock.")


def test_what_upstream_has_fixed_is_left_alone(place: Place, tmp_path: Path, patchlock: Patchlock) -> None:
    done = patchlock("patch", "wheel", "alpha", "--version", "1.8", "--output", str(tmp_path / "out"), "--json")
    data = json.loads(done.stdout)["data"]
    assert data["outcome"] == "fixed upstream"
    assert (data["wheel"]["version"], data["wheel"]["sha256"]) == ("1.8", _sha256(place.wheels["1.8"]))
    assert Path(data["wheel"]["path"]).read_bytes() == place.wheels["1.8"].read_bytes()
    assert not (tmp_path / "out").exists()


def test_file_that_the_catalogue_does_not_name_comes_with_the_hash_of_the_index(
    place: Place, tmp_path: Path, patchlock: Patchlock
) -> None:
    done = patchlock("patch", "wheel", "alpha", "--version", "1.5", "--output", str(tmp_path / "out"))
    assert "note: the catalogue does not name this file: its hash is what came" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("gamma",), 1, 'there is no patch for a distribution "gamma"'),
        (("alpha",), 2, "neither a version nor a wheel is named; add `--version`; tried are 1.0, 1.8"),
        (("alpha", "--version", "new"), 2, '"new" is not a version; tried are 1.0, 1.8'),
        (("alpha", "--version", "2.0"), 1, "the patches of alpha are for <2,>=1, not for 2.0"),
        (("alpha", "--version", "1.7"), 1, "the index has no wheel of alpha 1.7"),
    ],
)
def test_wrong_command_is_told(
    place: Place, patchlock: Patchlock, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = patchlock("patch", "wheel", *arguments)
    assert done.returncode == code
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_file_must_be_the_one_that_the_catalogue_names(place: Place, tmp_path: Path, patchlock: Patchlock) -> None:
    false = tmp_path / place.wheels["1.0"].name
    false.write_bytes(place.wheels["1.5"].read_bytes())
    done = patchlock("patch", "wheel", "alpha", "--wheel", str(false))
    assert done.stderr.splitlines()[-1].startswith("error[hash-mismatch]: alpha-1.0-py3-none-any.whl is not the file")
    done = patchlock("patch", "wheel", "alpha", "--wheel", str(false), "--version", "1.0")
    assert (done.returncode, "cannot both be given; leave one out" in done.stderr) == (2, True)


def test_index_must_have_the_file_that_the_catalogue_names(place: Place, tmp_path: Path) -> None:
    place.edit(place.file, _sha256(place.wheels["1.0"]), "0" * 64)
    read = Catalogue(root=place.root).distribution("alpha")
    with pytest.raises(DownloadError) as caught:
        wheel_patching.obtain(read, read.wheels[0].version, tmp_path / "cache", tell=lambda *_: None)
    assert caught.value.what == (
        "the index does not have alpha-1.0-py3-none-any.whl with the sha256 that the catalogue names"
    )


def test_several_wheels_of_a_version_must_be_named(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [wheel(tmp_path / "two", "alpha", "1.0", tag=f"py3-none-{tag}") for tag in ("win_amd64", "any")]
    monkeypatch.setenv("UV_DEFAULT_INDEX", index(tmp_path / "index-of-two", made))
    read = dataclasses.replace(Catalogue(root=place.root).distribution("alpha"), wheels=())
    with pytest.raises(DownloadError) as caught:
        wheel_patching.obtain(read, wheels.Version("1.0"), tmp_path / "cache", tell=lambda *_: None)
    assert caught.value.what == "the index has 2 wheels of alpha 1.0, and one must be named"
    assert caught.value.evidence == ("alpha-1.0-py3-none-any.whl", "alpha-1.0-py3-none-win_amd64.whl")


def test_check_tells_of_every_known_wheel(place: Place, tmp_path: Path) -> None:
    place.edit(place.cases, "core.told(True)", "core.told(True) + 'x' * (not hasattr(core, 'FIXED'))")
    read = Catalogue(root=place.root).distribution("alpha")
    told: list[str] = []
    results = wheel_patching.check(read, place.root, tmp_path / "cache", told.append)
    names = [place.wheels[version].name for version in ("1.0", "1.8")]
    assert [result.filename for result in results] == told == names
    assert all(isinstance(result.problem, PatchError) and result.made is None for result in results)
    place.cases.write_text(CASES)
    kept = tmp_path / "cache" / "wheels" / _sha256(place.wheels["1.8"])[:16] / names[1]
    kept.write_bytes(b"damaged")
    fresh = wheel_patching.check(read, place.root, tmp_path / "cache", told.append)
    assert fresh[0].made is not None
    assert fresh[0].made.kind is OutcomeKind.NEEDED
    assert fresh[1].made is not None
    assert fresh[1].made.kind is OutcomeKind.FIXED_UPSTREAM
    assert kept.read_bytes() == place.wheels["1.8"].read_bytes()
