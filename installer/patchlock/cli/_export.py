"""`export`: a lock in another shape."""

from __future__ import annotations

from pathlib import Path

import click

from patchlock.cli import _options, _output
from patchlock.cli._paths import OutputFile, UserPath
from patchlock.model.errors import UsageError


class _Shape(click.Choice[str]):
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a format; of the one that every lockfile has already, say so."""
        if value.removesuffix(".txt") == "requirements":
            self.fail(f"a lockfile is one already: `{_INSTALLS_ONE}`", param, ctx)
        return super().convert(value, param, ctx)


_INSTALLS_ONE = "pip install --require-hashes -r lockfiles/APP/PROFILE.PLATFORM.txt"
_HEAD = rb'# `patchlock export |^created-by = "patchlock"|"name": "patchlock"'
"""Is at the top of each shape."""


@click.command("export")
@_options.pair
@click.option("--platform", metavar="PLATFORM", help="Another platform than this machine's, as in the lock's name.")
@click.option(
    "--format",
    "shape",
    type=_Shape(["pylock", "cyclonedx", "dockerfile", "compose"]),
    required=True,
    help="pylock: PEP 751. cyclonedx: an SBOM, 1.6 as JSON. dockerfile: builds the app for Linux. compose: runs that.",
)
@click.option(
    "--base",
    default="",
    metavar="IMAGE",
    help="For a Dockerfile: the image that the app is installed and runs on, with its digest.",
)
@click.option(
    "--from",
    "bundle",
    metavar="FILE",
    type=UserPath(exists=True, dir_okay=False),
    help="For a Dockerfile: build from this file of `patchlock bundle --with-tool`, without a network.",
)
@click.option("-o", "--output", "target", type=OutputFile(head=_HEAD), help="File to write (default: stdout).")
@click.option("--source", metavar="PATH-OR-URL", help="Take upstream from here: an offline clone, a mirror, a fork.")
@_options.common
def export_command(
    app: str,
    profile: str | None,
    platform: str | None,
    shape: str,
    base: str,
    bundle: Path | None,
    target: Path | None,
    source: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> None:
    """Write a lock as PEP 751, SBOM, Dockerfile or compose.yaml.

    \b
    Example:
      patchlock export demo --format pylock -o pylock.toml
      patchlock export demo --format cyclonedx -o demo.cdx.json
      patchlock export demo --profile cpu --platform linux-aarch64 --format dockerfile
    """
    from patchlock.operations import export

    if base and shape != "dockerfile":
        raise UsageError("only a Dockerfile has a base image", remedy="leave --base out, or add --format dockerfile")
    if bundle and shape != "dockerfile":
        raise UsageError(
            "only a Dockerfile is built from a bundle", remedy="leave --from out, or add --format dockerfile"
        )
    if target is not None and shape == "pylock":
        _require_name(target)
    request = _options.pair_request(catalogue, app, profile, platform, source=source)
    options = _output.given("from", "base", "source", "catalogue")
    match shape:
        case "pylock":
            text = export.as_pylock(request)
        case "cyclonedx":
            text = export.as_cyclonedx(request)
        case "compose":
            text = export.as_compose(request, options)
        case _:
            text = export.as_dockerfile(request, base, bundle, options)
    if target is not None:
        _write(target, text)
    if as_json:
        data = {"app": app, "profile": request.profile.name, "platform": request.platform.name, "format": shape}
        _output.succeed("export", data | ({"file": str(target)} if target else {"text": text}))
    elif target is None:
        _output.file_text(text)
    else:
        _output.echo(f"{target}: {shape} of {app} × {request.profile.name} × {request.platform.name}", err=True)


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
