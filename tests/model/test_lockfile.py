"""Lockfiles: written and read without loss, refused where they are not ours, stale for every single reason."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.errors import LockFormatError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock, LockedPackage, Provenance, parse, render, require_sealed

COMMIT = CommitId("0123456789abcdef0123456789abcdef01234567")
A, B, C = (Sha256(digit * 64) for digit in "abc")
TORCH = "https://index.test/cpu/torch-2.1.1%2Bcpu-cp311-cp311-win_amd64.whl"
A_NAME = NormalizedName("av")
LOCK = Lock(
    provenance=Provenance(
        app="demo",
        profile="cpu",
        platform="windows-amd64",
        python="3.11",
        commit=COMMIT,
        as_of="2026-01-01T00:00:00Z",
        newer={A_NAME: "2026-02-01T00:00:00Z"},
        uv="0.13.1",
        patches=("one", "two"),
        inputs={"profiles/cpu.toml": A, "patches/demo/app.toml": B, "upstream:requirements.txt": C},
        resolver_input=A,
    ),
    packages=(
        LockedPackage(name=NormalizedName("av"), version=Version("12.0"), url="", sha256=B, why=""),
        LockedPackage(
            name=NormalizedName("torch"), version=Version("2.1.1+cpu"), url=TORCH, sha256=C, why="via # av · é"
        ),
    ),
)
SEAL = "SEAL"
TEXT = f"""\
# /// patchlock
# format = 1
# app = "demo"
# profile = "cpu"
# platform = "windows-amd64"
# python = "3.11"
# commit = "{COMMIT}"
# as-of = "2026-01-01T00:00:00Z"
# uv = "0.13.1"
# patches = ["one", "two"]
# resolver-input = "{A}"
# content = "{SEAL}"
#
# [newer]
# av = "2026-02-01T00:00:00Z"
#
# [inputs]
# "patches/demo/app.toml" = "{B}"
# "profiles/cpu.toml" = "{A}"
# "upstream:requirements.txt" = "{C}"
# ///
# Written by `patchlock lock demo --profile cpu`; any installer takes it:
# `pip install --require-hashes -r`, `uv pip sync --require-hashes`, `pip-sync`.
av==12.0 --hash=sha256:{B}
torch @ {TORCH} --hash=sha256:{C} # via # av · é
"""

SEAL = hashlib.sha256(TEXT.replace('# content = "SEAL"\n', "").encode()).hexdigest()
TEXT = TEXT.replace("SEAL", SEAL)

WORDS = st.text(max_size=12)
LINES = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64).map(Sha256)
NAMES = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,4})?", fullmatch=True).map(NormalizedName)
VERSIONS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,2}){0,2}(rc[0-9])?(\+[a-z0-9]{1,5})?", fullmatch=True).map(Version)
PACKAGES = st.builds(
    LockedPackage,
    name=NAMES,
    version=VERSIONS,
    url=st.just(""),
    sha256=DIGESTS,
    why=LINES.map(str.strip),
) | st.builds(
    lambda name, version, sha256: LockedPackage(
        name=name,
        version=version,
        url=f"https://x.test/{name.replace('-', '_')}-{str(version).replace('+', '%2B')}-py3-none-any.whl",
        sha256=sha256,
        why="",
    ),
    name=NAMES,
    version=VERSIONS,
    sha256=DIGESTS,
)
LOCKS = st.builds(
    Lock,
    provenance=st.builds(
        Provenance,
        app=NAMES,
        profile=NAMES,
        platform=WORDS,
        python=WORDS,
        commit=st.just(COMMIT),
        as_of=WORDS,
        newer=st.dictionaries(NAMES, WORDS, max_size=2),
        uv=WORDS,
        patches=st.lists(WORDS, max_size=3).map(tuple),
        inputs=st.dictionaries(WORDS, DIGESTS, max_size=3),
        resolver_input=DIGESTS,
    ),
    packages=st.lists(PACKAGES, max_size=4, unique_by=lambda p: p.name).map(
        lambda packages: tuple(sorted(packages, key=lambda p: p.name))
    ),
)


def test_lock_is_a_requirement_file_with_its_provenance() -> None:
    assert render(LOCK) == TEXT
    assert parse(TEXT, "x.txt") == LOCK


@given(lock=LOCKS)
def test_what_is_written_is_read_again(lock: Lock) -> None:
    assert parse(render(lock), "x.txt") == lock


@given(lock=LOCKS)
def test_lock_is_read_the_same_with_crlf(lock: Lock) -> None:
    assert parse(render(lock).replace("\n", "\r\n"), "x.txt") == lock


def test_order_of_the_inputs_does_not_matter() -> None:
    turned = dict(reversed(LOCK.provenance.inputs.items()))
    assert render(dataclasses.replace(LOCK, provenance=dataclasses.replace(LOCK.provenance, inputs=turned))) == TEXT


def test_each_line_is_a_requirement_with_one_hash() -> None:
    lines = [line for line in render(LOCK).splitlines() if not line.startswith("#")]
    assert [Requirement(line.partition(" --hash")[0]).name for line in lines] == ["av", "torch"]
    assert [line.count("--hash=sha256:") for line in lines] == [1, 1]


@pytest.mark.parametrize(
    ("before", "after", "line", "what"),
    [
        pytest.param(TEXT, "", 1, "it has no patchlock block at its top", id="empty"),
        pytest.param(TEXT, f"av==12.0 --hash=sha256:{B}\n", 1, "it has no patchlock block at its top", id="no-block"),
        pytest.param(
            "# /// patchlock", "\n# /// patchlock", 1, "it has no patchlock block at its top", id="block-elsewhere"
        ),
        pytest.param("# ///\n", "", 1, "it has no patchlock block at its top", id="block-without-end"),
        pytest.param(
            "format = 1", "format = 2", 1, "it has format 2, and this patchlock reads format 1", id="other-format"
        ),
        pytest.param(
            '# format = 1\n# app = "demo"',
            "# format = 2",
            1,
            "it has format 2, and this patchlock reads format 1",
            id="other-format-with-other-keys",
        ),
        pytest.param("# format = 1\n", "", 1, "it has no format, and this patchlock reads format 1", id="no-format"),
        pytest.param(
            '"cpu"',
            "cpu",
            1,
            "its patchlock block cannot be read: Invalid value (at line 3, column 11)",
            id="no-toml",
        ),
        pytest.param('# uv = "0.13.1"\n', "", 1, 'its patchlock block lacks the key "uv"', id="key-missing"),
        pytest.param(
            '["one", "two"]', "1", 1, "its patchlock block has a value of the wrong kind", id="patches-of-another-kind"
        ),
        pytest.param(
            "# [newer]",
            "# newer = 1\n# [x]",
            1,
            "its patchlock block has a value of the wrong kind",
            id="newer-of-another-kind",
        ),
        pytest.param(
            f"{B}\ntorch",
            f"{B} --hash=sha256:{A}\ntorch",
            24,
            "a line must be one distribution with exactly one sha256",
            id="two-hashes",
        ),
        pytest.param(
            f" --hash=sha256:{B}\ntorch",
            "\ntorch",
            24,
            "a line must be one distribution with exactly one sha256",
            id="no-hash",
        ),
        pytest.param(
            f"{C} # via",
            f"{C[1:]} # via",
            25,
            "a line must be one distribution with exactly one sha256",
            id="short-hash",
        ),
        pytest.param(
            f"sha256:{C} # via",
            f"md5:{C} # via",
            25,
            "a line must be one distribution with exactly one sha256",
            id="md5",
        ),
        pytest.param("av==", "av>=", 24, "a line must be one distribution with exactly one sha256", id="no-pin"),
        pytest.param(
            "av==",
            "<<<<<<< HEAD\nav==",
            24,
            "a line must be one distribution with exactly one sha256",
            id="merge-conflict",
        ),
        pytest.param(
            "av==",
            "--index-url https://x\nav==",
            24,
            "a line must be one distribution with exactly one sha256",
            id="option",
        ),
        pytest.param("12.0", "twelve", 24, "av has no version: Invalid version: 'twelve'", id="no-version"),
        pytest.param(
            "# via # av · é",
            "# wheel cp311-win_amd64",
            25,
            "torch has no wheel tags: Tag 'cp311-win_amd64' must have exactly three components",
            id="broken-tags",
        ),
        pytest.param(
            TORCH,
            "https://x.test/torch.zip",
            25,
            "torch has no version: neither its address nor [versions] names one",
            id="no-wheel",
        ),
    ],
)
def test_what_patchlock_did_not_write_is_refused(before: str, after: str, line: int, what: str) -> None:
    assert TEXT.count(before) == 1
    with pytest.raises(LockFormatError) as caught:
        parse(TEXT.replace(before, after), "lockfiles/demo/cpu.txt")
    remedy = "a lock is never written by hand: run `patchlock lock` for its app"
    assert str(caught.value) == f"{what} (lockfiles/demo/cpu.txt:{line}); {remedy}"


def test_who_uses_another_installer_is_told_of_the_pinned_build_tools() -> None:
    built = dataclasses.replace(LOCK, provenance=dataclasses.replace(LOCK.provenance, build_constraints=C))
    added = [line for line in render(built).splitlines() if line not in TEXT.splitlines() and "= " not in line]
    assert added == [
        "# Its sdists are built with what the `.build.txt` file beside it pins. Name that file too: uv's",
        "# `--build-constraints`, pip's `--build-constraint` (25.3 or later), PIP_BUILD_CONSTRAINT for `pip-sync`.",
    ]
    assert parse(render(built), "x.txt") == built


def test_changed_line_is_seen() -> None:
    assert parse(TEXT, "x.txt").is_intact
    assert not parse(TEXT.replace("av==12.0", "av==12.1"), "x.txt").is_intact
    assert not parse(TEXT.replace(f"av==12.0 --hash=sha256:{B}\n", ""), "x.txt").is_intact


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("2026-01-01", "2026-03-01", id="as-of"),
        pytest.param("2026-02-01", "2026-03-01", id="newer"),
        pytest.param(f'resolver-input = "{A}"', f'resolver-input = "{B}"', id="resolver-input"),
        pytest.param('"one", ', "", id="patches"),
        pytest.param('uv = "0.13.1"', 'uv = "0.13.2"', id="uv"),
    ],
)
def test_changed_header_is_seen(before: str, after: str) -> None:
    assert TEXT.count(before) == 1
    assert not parse(TEXT.replace(before, after), "x.txt").is_intact


def test_a_lock_without_a_seal_is_not_intact() -> None:
    assert not parse(TEXT.replace(f'# content = "{SEAL}"\n', ""), "x.txt").is_intact


def test_a_distribution_called_content_is_sealed_like_any_other() -> None:
    named = NormalizedName("content")
    newer = {named: "2026-02-01T00:00:00Z"}
    text = render(dataclasses.replace(LOCK, provenance=dataclasses.replace(LOCK.provenance, newer=newer)))
    assert '# content = "2026-02-01T00:00:00Z"' in text
    assert parse(text, "x.txt").is_intact
    assert not parse(text.replace("2026-02-01", "2026-03-01"), "x.txt").is_intact


def test_only_a_sealed_lock_passes() -> None:
    require_sealed(parse(TEXT, "x.txt"), "x.txt", "make it again")
    with pytest.raises(LockFormatError) as caught:
        require_sealed(parse(TEXT.replace("av==12.0", "av==12.1"), "x.txt"), "x.txt", "make it again")
    assert str(caught.value) == (
        "its lines were changed after it was made: they are not those of its seal (x.txt); make it again"
    )


@pytest.mark.parametrize(
    ("url", "why", "filename"),
    [
        ("", "requirements.txt:2 · via x · wheel cp311-cp311-win_amd64", "a_b-1.0-cp311-cp311-win_amd64.whl"),
        ("", "via x · sdist", "a_b-1.0.tar.gz"),
        ("", "via x", "a_b-1.0*"),
        (TORCH, "via x", "torch-2.1.1+cpu-cp311-cp311-win_amd64.whl"),
        (f"{TORCH}#egg=torch", "", "torch-2.1.1+cpu-cp311-cp311-win_amd64.whl"),
    ],
    ids=["wheel", "sdist", "not told", "address", "address with a fragment"],
)
def test_file_is_named(url: str, why: str, filename: str) -> None:
    package = LockedPackage(name=NormalizedName("a-b"), version=Version("1.0"), url=url, sha256=A, why=why)
    assert package.filename == filename
