"""`bundle`: one file with all that an install needs, for machines without a network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from patchlock.cli import _launcher, _options, _output, _progress
from patchlock.cli._paths import OutputFile, UserPath
from patchlock.core import command_lines

if TYPE_CHECKING:
    from patchlock.locks.lock_request import Request
    from patchlock.model.progress import Progress
    from patchlock.operations.bundle import BundleHeader

_HEAD = rb'"patchlock-bundle": \d'
"""Is in the manifest, which comes first."""


@click.command("bundle")
@_options.pair
@click.option("--platform", metavar="PLATFORM", help="Another platform than this machine's, as in the lock's name.")
@click.option("-o", "--output", "target", type=OutputFile(head=_HEAD), required=True, help="File to write.")
@_options.upstream
@click.option("--with-models", is_flag=True, help="Include the models that the app downloads.")
@click.option("--with-tool", is_flag=True, help="Include patchlock itself: its files, its packages and uv.")
@click.option(
    "--python",
    "python",
    type=UserPath(exists=True, dir_okay=False),
    help="Include this archive with a Python for the target machine, such as a tar file with python/bin/python3.",
)
@_options.edited_lock
@_options.common
def bundle_command(
    app: str,
    profile: str | None,
    platform: str | None,
    target: Path,
    source: str | None,
    revision: str | None,
    with_models: bool,
    with_tool: bool,
    python: Path | None,
    accept_edited_lock: bool,
    local_addresses: bool,
    catalogue: Path | None,
    as_json: bool,
) -> None:
    """Write one file with everything an offline install needs.

    `install --from FILE` takes it without a network.

    \b
    Example:
      patchlock bundle demo --profile cpu -o demo.bundle
      patchlock bundle demo --profile cpu --platform linux-aarch64 --with-tool -o demo.bundle
    """
    import dataclasses

    from patchlock.operations import bundle

    if with_tool:
        _require_clone()
    request = _options.pair_request(catalogue, app, profile, platform, source=source)
    request = dataclasses.replace(
        request, revision=revision, accept_edited_lock=accept_edited_lock, local_addresses=local_addresses
    )
    made = bundle.make(
        request,
        target,
        _progress.progress(as_json),
        with_models=with_models,
        with_tool=with_tool,
        python=python,
    )
    if as_json:
        data = {"app": app, "profile": request.profile.name, "platform": request.platform.name}
        _output.succeed("bundle", data | dataclasses.asdict(made) | {"file": str(made.file)})
        return
    click.echo(
        f"{made.file}: {app} × {request.profile.name} × {request.platform.name}, {made.packages} packages, "
        f"{_output.size(made.bytes)}\n"
        f"sha256 {made.sha256}\n"
        f"{_there(request, made.file.name, with_tool, python)}"
    )


def _require_clone() -> None:
    """Refuse to bundle a patchlock without the files that start it on a machine that has nothing.

    Raises:
        UsageError: it runs from a wheel.
    """
    from patchlock import __version__
    from patchlock.catalogue import location
    from patchlock.model.errors import UsageError

    own = location.catalogue_root(None)
    if not location.is_bundled(own):
        return
    prepare = ".\\install.cmd" if os.name == "nt" else "./install.sh"
    raise UsageError(
        "a patchlock that was installed as a Python package does not have the files for --with-tool",
        where=f"patchlock {__version__} in {own.parent}",
        remedy=f"run `{prepare}` in a git clone of patchlock, and then "
        f"`{command_lines.program(str(_launcher.path(_options.home())))} bundle`; or leave --with-tool out",
    )


def _there(request: Request, file: str, with_tool: bool, python: Path | None) -> str:
    """Say how the other machine installs from a bundle; a Python and patchlock itself may first come out of it."""
    app, file, is_windows = request.app.name, command_lines.quoted(file), request.platform.os == "windows"
    lines = [f"patchlock install {app} --profile {request.profile.name} --from {file}"]
    folders = []
    if with_tool and not is_windows:
        folders = ["patchlock", "tool"]
        lines = [
            "export UV_OFFLINE=1 UV_FIND_LINKS=$PWD/tool PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/tool",
            f"./patchlock/install.sh {app} --from {file}",
        ]
    if python is not None:
        folders.append("python")
        lines = [*_python_on_path(python, is_windows=is_windows), *lines]
    if folders:
        lines = [f"tar -xf {file} {' '.join(folders)}", *lines]
    return f"there: {lines[0]}" if len(lines) == 1 else "\n  ".join(["there:", *lines])


def _python_on_path(archive: Path, *, is_windows: bool) -> list[str]:
    """Say how a Python gets out of its archive and onto PATH: as commands, if a tar file shows where it is."""
    import re
    import tarfile

    try:
        with tarfile.open(archive) as opened:
            files = [PurePosixPath(one.name) for one in opened if not one.isdir()]
    except (OSError, tarfile.TarError):
        files = []
    places = [file.parent for file in files if re.fullmatch(r"python(3(\.\d+)?|\.exe)", file.name)]
    if not places:
        return [f"# unpack python/{archive.name}, and put its Python on PATH"]
    folder = PurePosixPath("python") / min(places, key=lambda place: len(place.parts))
    path = f'$env:PATH = "$PWD/{folder};$env:PATH"' if is_windows else f'export PATH="$PWD/{folder}:$PATH"'
    return [f"tar -xf {command_lines.quoted(f'python/{archive.name}')} -C python", path]


@dataclass(frozen=True, kw_only=True)
class OpenBundle:
    """A bundle that a command takes everything from."""

    file: Path
    header: BundleHeader

    def require_app(self, root: Path) -> None:
        """Refuse a bundle for an app that the catalogue does not have, as that of another bundle does not.

        Raises:
            UnknownAppError: says how to take the catalogue that comes with patchlock in the bundle, if it does.
        """
        from patchlock.catalogue import app_summaries
        from patchlock.core import bundles
        from patchlock.model.errors import UnknownAppError

        app, file = self.header.app, command_lines.quoted(str(self.file))
        if app in app_summaries.app_names(root):
            return
        remedy = "use the catalogue that the bundle was made from, or make it again with --with-tool"
        if any(name.startswith("patchlock/") for name in bundles.read_manifest(self.file).pieces):
            remedy = (
                f"the bundle has one that does: `tar -xf {file} patchlock tool`, "
                f"and then `./patchlock/install.sh {app} --from {file}`"
            )
        raise UnknownAppError(f'this catalogue has no app "{app}"', where=str(root), remedy=remedy)

    def require_lock(self, request: Request) -> None:
        """Refuse one that was made from another lock; see `operations.bundle.require_lock`."""
        from patchlock.operations import bundle

        bundle.require_lock(request, self.header, self.file)

    def revision(self, request: Request) -> str | None:
        """Give the commit that the bundle has, where that is not the catalogue's."""
        return self.header.commit if self.header.commit not in {"", request.app.upstream.commit} else None

    def take(self, request: Request, progress: Progress) -> tuple[Request, bool]:
        """Bring its pieces to where an install looks for them; see `operations.bundle.take`."""
        from patchlock.operations import bundle

        return bundle.take(request, self.file, self.header, progress)


def open_bundle(file: Path | None, app: str, profile: str | None, *others: object) -> OpenBundle | None:
    """Open the bundle of an option, and keep this process and its children from using a network; None without one.

    Args:
        file: of the option.
        app: that is asked for.
        profile: the same, or None.
        others: options that say where something is to come from, too.

    Raises:
        BundleError: it is none, or for something else.
        UsageError: another option would take something from elsewhere.
    """
    if file is None:
        return None
    from patchlock.model.errors import UsageError
    from patchlock.operations import bundle

    if any(others):
        raise UsageError(
            "a bundle has upstream, its commit and all packages",
            remedy="leave --source, --commit, --fallback and --repair out, or --from",
        )
    header = bundle.read_header(file, app, profile)
    os.environ["UV_OFFLINE"] = "1"
    return OpenBundle(file=file, header=header)
