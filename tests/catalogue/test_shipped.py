"""Every file of the catalogue that we ship: it reads, its facts have sources, its locks are fresh and well formed."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT, Patchlock
from shipped import APPS, CATALOGUE, PROFILES

from patchlock.locks.lock_request import Request, build_objections, lock_inputs, read_lock, read_upstream
from patchlock.model import lockfile
from patchlock.model.app import App, EmbeddedUpstream
from patchlock.model.fits import Platform
from patchlock.model.patch import OutcomeKind
from patchlock.model.profile import Profile
from patchlock.patches import engine
from patchlock.worktree import upstream_cache

LOCKED = [app for app in APPS if (ROOT / "lockfiles" / app.name).is_dir()]
"""Of the others there are patches only: `list` and `install` say that no lock is there yet."""
PAIRS = [
    pytest.param(app, profile, platform, id=f"{app.name}-{profile.name}-{platform.name}")
    for app in LOCKED
    for profile in PROFILES
    for platform in profile.platforms
    if not any(r.profile == profile.name and (not r.platforms or platform.name in r.platforms) for r in app.refusals)
]
LOCKS = sorted(path for path in (ROOT / "lockfiles").glob("*/*.txt") if not path.name.endswith(".build.txt"))


def _request(app: App, profile: Profile, platform: Platform, tmp_path: object) -> Request:
    return Request(
        app=app,
        profile=profile,
        platform=platform,
        catalogue=CATALOGUE,
        home=tmp_path / "home",
        cache=tmp_path / "cache",
    )


@pytest.mark.parametrize(("app", "profile", "platform"), PAIRS)
def test_pair_has_a_fresh_lock(app: App, profile: Profile, platform: Platform, tmp_path: object) -> None:
    request = _request(app, profile, platform, tmp_path)
    lock, _ = read_lock(request)
    inputs = lock_inputs(request, None)
    assert build_objections(request, lock) == ()
    assert lockfile.staleness_reasons(lock, commit=app.upstream.commit, python=str(profile.python), inputs=inputs) == ()
    assert lock.provenance.as_of
    assert lock.packages == tuple(sorted(lock.packages, key=lambda package: package.name))
    assert len({package.name for package in lock.packages}) == len(lock.packages)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_lock_names_no_index_and_belongs_to_a_pair(path: object) -> None:
    text = path.read_text()
    for vendor in ("https://download.pytorch.org/", "https://repo.radeon.com/"):
        text = text.replace(vendor, "")
    assert "://" not in text
    text = path.read_text()
    assert lockfile.render(lockfile.parse(text, path.name)) == text
    assert path in {CATALOGUE.lock_path(*pair.values) for pair in PAIRS}


@pytest.mark.parametrize(
    "app", [app for app in APPS if isinstance(app.upstream, EmbeddedUpstream)], ids=lambda a: a.name
)
def test_embedded_upstream_is_the_commit_that_is_named(app: App, tmp_path: object) -> None:
    made = upstream_cache.fetch(app, catalogue=ROOT, cache=tmp_path, source=None, revision=None)
    assert made.commit == app.upstream.commit


@pytest.mark.parametrize(
    "app", [app for app in APPS if isinstance(app.upstream, EmbeddedUpstream)], ids=lambda a: a.name
)
@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_every_patch_of_an_embedded_upstream_is_needed(app: App, profile: Profile, tmp_path: object) -> None:
    upstream = read_upstream(_request(app, profile, profile.platforms[0], tmp_path))
    assert upstream.patched.failures == ()
    assert {outcome.kind for outcome in upstream.patched.outcomes} == {OutcomeKind.NEEDED}
    wanted = [patch.id for patch in engine.for_profile(app.patches, profile.name)]
    assert [outcome.patch for outcome in upstream.patched.outcomes] == wanted


@pytest.mark.parametrize("name", CATALOGUE.index_names())
def test_recorded_index_names_each_file_once(name: str) -> None:
    index = CATALOGUE.index(name)
    assert len(index.wheels) > 3
    assert len({wheel.filename for wheel in index.wheels}) == len(index.wheels)
    assert all(wheel.url.startswith("https://") and wheel.source for wheel in index.wheels)


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_fact_has_a_source(app: App) -> None:
    sources = [app.source, *(p.source for p in app.patches), *(r.source for r in app.refusals)]
    assert all(re.match(r"https://|patches/", source) for source in sources)


def test_no_file_names_a_machine_or_a_package_registry() -> None:
    hosts = ["py" + "pi.org", "python" + "hosted.org", "deb." + "debian.org", "npm" + "js.org"]
    import subprocess

    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.split(b"\0")
    files = [ROOT / name.decode() for name in tracked if name]
    for path in files:
        text = path.read_bytes().decode("utf-8", errors="replace") if path.is_file() else ""
        assert not [host for host in hosts if host in text], path


@pytest.mark.upstream
@pytest.mark.parametrize(
    "app", [app for app in APPS if not isinstance(app.upstream, EmbeddedUpstream)], ids=lambda a: a.name
)
def test_patches_hold_on_the_real_upstream(app: App, patchlock: Patchlock, upstreams: dict[str, str]) -> None:
    done = patchlock("patch", "status", app.name, "--profile", "cpu", "--source", upstreams[app.upstream.url])
    assert done.returncode == 0, done.stdout
    assert "gone" not in done.stdout
