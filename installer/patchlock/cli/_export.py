"""`export`: a lock in another shape."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output
from patchlock.model.errors import UsageError, nearest

if TYPE_CHECKING:
    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.lock_request import Request
    from patchlock.model.fits import Platform
    from patchlock.model.profile import Profile


@click.command("export")
@_options.pair
@click.option("--platform", metavar="PLATFORM", help="Another platform than this machine's, as in the lock's name.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["pylock", "cyclonedx", "dockerfile"]),
    required=True,
    help="pylock: PEP 751. cyclonedx: an SBOM, 1.6 as JSON. dockerfile: builds the app for Linux.",
)
@click.option("--base", default="", metavar="IMAGE", help="For a Dockerfile: the image to build on, with its digest.")
@click.option(
    "-o", "--output", "target", type=click.Path(path_type=Path, dir_okay=False), help="File to write (default: stdout)."
)
@click.option("--source", metavar="PATH-OR-URL", help="Take upstream from here: an offline clone, a mirror, a fork.")
@_options.common
def export_command(
    app: str,
    profile: str | None,
    platform: str | None,
    shape: str,
    base: str,
    target: Path | None,
    source: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> None:
    """Write a lock in another shape: PEP 751, an SBOM with our patches, or a Dockerfile.

    \b
    Example:
      patchlock export demo --format pylock -o pylock.toml
      patchlock export demo --format cyclonedx -o demo.cdx.json
      patchlock export demo --profile cpu --platform linux-aarch64 --format dockerfile
    """
    from patchlock.operations import export

    if base and shape != "dockerfile":
        raise UsageError("only a Dockerfile has a base image", remedy="leave --base out, or add --format dockerfile")
    if target is not None and shape == "pylock":
        _require_name(target)
    request = _request(_options.open_catalogue(catalogue), app, profile, platform, source, catalogue)
    match shape:
        case "pylock":
            text = export.as_pylock(request)
        case "cyclonedx":
            text = export.as_cyclonedx(request)
        case _:
            text = export.as_dockerfile(request, base)
    if target is not None:
        _write(target, text)
    if as_json:
        data = {"app": app, "profile": request.profile.name, "platform": request.platform.name, "format": shape}
        _output.succeed("export", data | ({"file": str(target)} if target else {"text": text}))
    elif target is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"{target}: {shape} of {app} × {request.profile.name} × {request.platform.name}", err=True)


def _require_name(target: Path) -> None:
    from packaging.pylock import is_valid_pylock_path

    if not is_valid_pylock_path(target):
        raise UsageError(
            f'no installer takes "{target.name}" for a lock',
            where="PEP 751",
            remedy="name the file pylock.toml, or pylock.NAME.toml without another dot in NAME",
        )


def _write(target: Path, text: str) -> None:
    from patchlock.core import atomic_files

    target.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.atomic_write(target, text)


def _request(
    opened: Catalogue, app: str, profile: str | None, platform: str | None, source: str | None, catalogue: Path | None
) -> Request:
    """Choose the pair: what fits this machine, unless another platform is named."""
    from patchlock.locks.lock_request import Request
    from patchlock.model.platforms import PLATFORMS

    if platform is None:
        return _options.request(catalogue, app, profile, source=source)
    if platform not in PLATFORMS:
        raise UsageError(f'there is no platform "{platform}"', remedy=nearest(platform, PLATFORMS))
    chosen = _profile(opened, profile, PLATFORMS[platform])
    return Request(
        app=opened.app(app),
        profile=chosen,
        platform=PLATFORMS[platform],
        catalogue=opened,
        home=_options.home(),
        cache=_options.cache(),
        source=source,
    )


def _profile(opened: Catalogue, name: str | None, platform: Platform) -> Profile:
    names = [name] if name is not None else opened.profile_names()
    fitting = [profile for profile in map(opened.profile, names) if platform in profile.platforms]
    chosen = [profile for profile in fitting if not profile.fits] or fitting
    if len(chosen) == 1:
        return chosen[0]
    if fitting:
        raise UsageError(
            f"{', '.join(profile.name for profile in fitting)} are all for {platform.name}",
            remedy="name one with --profile",
        )
    known = sorted({one.name for profile in map(opened.profile, names) for one in profile.platforms})
    raise UsageError(
        f"the profile {name} is not for {platform.name}" if name else f"no profile is for {platform.name}",
        remedy=nearest(platform.name, known),
    )
