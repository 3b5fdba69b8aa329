"""`lock --check --online` resolves again: what was edited and sealed by hand does not come out so."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, seal, this_platform

NONE = "0" * 64


def _check(patchlock: Patchlock, *words: str) -> tuple[int, str, str, str]:
    done = patchlock("lock", "mini", "--platform", this_platform().name, "--check", "--json", *words)
    [pair] = json.loads(done.stdout)["data"]["pairs"]
    return done.returncode, pair["state"], pair["code"], pair["detail"]


def _path(world: World) -> Path:
    return world.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"


EDITS: dict[str, tuple[Callable[[str], str], str]] = {
    "version": (
        lambda text: re.sub(r"gamma==2\.0 --hash=sha256:[0-9a-f]+", f"gamma==3.0 --hash=sha256:{NONE}", text),
        "gamma 3.0 → 2.0",
    ),
    "one-more": (lambda text: text + f"zeta==1.0 --hash=sha256:{NONE}\n", "zeta 1.0 → nothing"),
    "one-less": (lambda text: re.sub(r"beta==.*\n", "", text), "beta nothing → 1.5"),
    "why": (lambda text: text.replace("requirements.txt:3", "requirements.txt:2"), "beta has other reason"),
    "address": (
        lambda text: text.replace("gamma==2.0 ", "gamma @ https://evil.example/gamma-2.0-py3-none-any.whl "),
        "gamma has other address",
    ),
    "patches": (lambda text: text.replace('["alpha-that-exists", ', "["), "patches: "),
}


@pytest.mark.parametrize(("edit", "said"), EDITS.values(), ids=list(EDITS))
def test_lock_that_was_edited_and_sealed_again(
    locked: World, patchlock: Patchlock, edit: Callable[[str], str], said: str
) -> None:
    path = _path(locked)
    text = path.read_text()
    path.write_text(edit(text))
    assert path.read_text() != text
    seal(path)
    assert _check(patchlock)[:2] == (0, "fresh")
    code, state, error, detail = _check(patchlock, "--online")
    assert (code, state, error) == (1, "failed", "drift")
    assert detail.startswith(f"resolving it again gives another lock; {said}")
    path.write_text(text)
    assert _check(patchlock, "--online") == (0, "fresh", "", "")


def test_other_bytes_under_a_known_name(locked: World, patchlock: Patchlock) -> None:
    path = _path(locked)
    path.write_text(re.sub(r"(beta==1\.5 --hash=sha256:)[0-9a-f]+", rf"\g<1>{NONE}", path.read_text()))
    seal(path)
    code, state, error, detail = _check(patchlock, "--online")
    assert (code, state, error) == (1, "failed", "record-changed")
    assert f"under the same name there is sha256 {NONE} in the lock before" in detail
    done = patchlock("lock", "--check", "--online", "mini")
    assert "--accept-changed" in done.stdout
    assert "to renew" not in done.stderr


def test_address_with_a_secret_is_refused_without_a_network(locked: World, patchlock: Patchlock) -> None:
    path = _path(locked)
    path.write_text(path.read_text().replace("gamma==2.0 ", "gamma @ http://u:s3cret@h/gamma-2.0-py3-none-any.whl "))
    seal(path)
    code, state, error, detail = _check(patchlock)
    assert (code, state, error) == (1, "failed", "lock-format")
    assert "it has a user, a password or a query, which may be secrets" in detail
    assert "s3cret" not in detail


def test_another_uv_with_the_same_answer_is_no_difference(locked: World, patchlock: Patchlock) -> None:
    path = _path(locked)
    path.write_text(re.sub(r'# uv = ".*"', '# uv = "0.1.2"', path.read_text()))
    seal(path)
    assert _check(patchlock, "--online") == (0, "fresh", "", "")


def test_lock_that_cannot_be_resolved_again_is_not_to_be_made_again(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    away = ("--source", "http://127.0.0.1:9/none.git")
    done = patchlock(
        "lock",
        "mini",
        "--platform",
        this_platform().name,
        "--check",
        "--online",
        *away,
        env={"PATCHLOCK_CACHE_DIR": str(tmp_path / "empty")},
    )
    assert done.returncode == 1
    assert "failed     the upstream of mini could not be fetched" in done.stdout
    assert "to renew" not in done.stderr, "it would fail the same"


def test_stale_lock_is_not_resolved(locked: World, patchlock: Patchlock) -> None:
    locked.profile.write_text(locked.profile.read_text() + "\n# more\n")
    assert _check(patchlock, "--online") == _check(patchlock)
    assert _check(patchlock)[1] == "stale"


def test_online_goes_with_check(locked: World, patchlock: Patchlock) -> None:
    done = patchlock("lock", "mini", "--online")
    assert (done.returncode, done.stderr) == (
        2,
        "error[usage]: --online says how --check does its work; add --check\n",
    )
