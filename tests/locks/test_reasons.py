"""Why a distribution is in a lock, read from the lock's comments."""

from __future__ import annotations

from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.locks.reasons import chains, reason, with_files
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import LockedPackage


def package(name: str, why: str) -> LockedPackage:
    return LockedPackage(name=canonicalize_name(name), version=Version("1"), url="", sha256=Sha256("0" * 64), why=why)


def test_comment_is_taken_apart() -> None:
    text = "requirements.txt:4 (patch av-new, av-old) · profile tiny:10 · app:27 · via b, c-d · wheel cp311-cp311-win_amd64"
    found = reason(package("av", text), "mini", "tiny")
    assert found.asked == ("requirements.txt:4 (patch av-new, av-old)",)
    assert found.bounds == ("profiles/tiny.toml:10", "patches/mini/app.toml:27")
    assert found.via == ("b", "c-d")
    assert found.file == "wheel cp311-cp311-win_amd64"


def test_messages_name_files_where_the_comment_is_short() -> None:
    text = "requirements.txt:4 (patch av-new) · profile tiny:10 · app:27 · shared audio:3 · via b · sdist"
    (found,) = with_files([package("av", text)], "mini", "tiny")
    assert found.why == (
        "requirements.txt:4 (patch av-new) · profiles/tiny.toml:10 · patches/mini/app.toml:27 · "
        "patches/shared/audio.toml:3 · via b · sdist"
    )


def test_comment_may_say_nothing() -> None:
    found = reason(package("av", ""), "mini", "tiny")
    assert (found.asked, found.bounds, found.via, found.file) == ((), (), (), "")


def told(name: str, **comments: str) -> list[str]:
    found = {canonicalize_name(one): reason(package(one, why), "mini", "tiny") for one, why in comments.items()}
    return [f"{one.asked}: {' > '.join(one.names)}" for one in chains(found, canonicalize_name(name))]


def test_shortest_way_from_each_requirement_is_given_shortest_first() -> None:
    comments = {"a": "r.txt:1 · wheel py3-none-any", "b": "via a", "c": "r.txt:9 · via a, b", "d": "via b, c"}
    assert told("d", **comments) == ["r.txt:9: c > d", "r.txt:1: a > b > d"]
    assert told("a", **comments) == ["r.txt:1: a"]


def test_a_circle_ends() -> None:
    assert told("b", a="r.txt:1 · via b", b="via a") == ["r.txt:1: a > b"]


def test_an_asker_that_is_not_locked_ends_its_way() -> None:
    assert told("a", a="via gone", b="r.txt:2 · via a") == []
