"""Write a Dockerfile that builds one pair, from upstream's commit, our patches and the lock; pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from patchlock.model import build_constraints
from patchlock.model.app import App, EmbeddedUpstream
from patchlock.model.errors import RefusedError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, patch_commands
from patchlock.model.profile import Profile

_PLATFORM = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
_TOOLS = "python:3.11-slim"
"""What patchlock itself runs in while the image is built; nothing of it is in the image."""
_PIP = "--no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all:"
_UV = (
    "--no-config --no-cache --compile-bytecode --require-hashes --python /environment/bin/python --only-binary :all:",
    "--require-build-hashes --preview-features build-dependency-hashes",
)
"""As `patchlock install` calls it, and compiled: who runs the app may not write there."""
_LOCK = "/lock.txt"
_BUILD = "/lock.build.txt"
_WHEELS = "/wheels"
"""What the lock has as we patch it."""


def document(
    app: App, profile: Profile, platform: Platform, lock: Lock, *, file: str, sha256: Sha256, base: str = ""
) -> str:
    """Write the Dockerfile; its build context is a checkout of patchlock.

    Args:
        app: the app.
        profile: the kind of machine.
        platform: where the image runs.
        lock: what is installed.
        file: the lockfile, as a POSIX path from the context.
        sha256: of that file; another one is refused by the build.
        base: the image to build on; it has the profile's Python as `python`. Default: Python's own slim image.

    Raises:
        RefusedError: no image can be for that platform.
    """
    if platform.os != "linux":
        raise RefusedError(
            f"an image holds Linux, and the lock is for {platform.name}",
            remedy="name a Linux platform of the profile with --platform",
        )
    target = _PLATFORM[platform.machine]
    base = base or f"python:{profile.python}-slim"
    sdists = [package.name for package in lock.packages if package.why.endswith("sdist")]
    parts = [
        _head(app, profile, platform, lock, base),
        _source(app, profile, platform, lock, file, target),
        _environment(_copied(file, sha256, lock), sdists, base, target, is_patched=bool(patch_commands(lock.packages))),
        _image(app, profile, base, target),
    ]
    return "\n".join(parts)


def _head(app: App, profile: Profile, platform: Platform, lock: Lock, base: str) -> str:
    command = f"patchlock export {app.name} --profile {profile.name} --platform {platform.name} --format dockerfile"
    lines = [
        "# syntax=docker/dockerfile:1",
        f"# {app.name} at {lock.provenance.commit[:12]} on {profile.name} ({platform.name}). Written by",
        f"# `{command}`.",
        "# The build context is a checkout of patchlock: docker build --file THIS-FILE .",
    ]
    if "@sha256:" not in base:
        lines.append(f"# {base} is a name that moves; for the same bytes every time, give it with its digest: --base.")
    cudnn = next((package for package in lock.packages if package.name.startswith("nvidia-cudnn-")), None)
    if cudnn:
        lines += [
            f"# CUDA and cuDNN {cudnn.version} are those of the lock: the base image needs none. The machine gives",
            "# its driver: docker run --gpus all.",
        ]
    return "\n".join(lines) + "\n"


def _run(*commands: str) -> str:
    return "RUN " + " \\\n    && ".join(commands)


def _apt(*packages: str) -> str:
    return _run(
        "apt-get update",
        f"apt-get install --yes --no-install-recommends {' '.join(packages)}",
        "rm -rf /var/lib/apt/lists/*",
    )


def _source(app: App, profile: Profile, platform: Platform, lock: Lock, file: str, target: str) -> str:
    lines = [
        "# Upstream at its commit, patched by patchlock, whose own packages are pinned by hash too.",
        f"FROM --platform={target} {_TOOLS} AS source",
        _apt("ca-certificates", "git"),
        "COPY lockfiles/patchlock.txt /patchlock/lockfiles/patchlock.txt",
        _run(
            "python -m venv /tools",
            f"/tools/bin/pip install {_PIP} -r /patchlock/lockfiles/patchlock.txt",
        ),
        "COPY installer /patchlock/installer",
        "COPY profiles /patchlock/profiles",
        "COPY patches /patchlock/patches",
        f"COPY {file} /patchlock/{file}",
    ]
    if lock.provenance.build_constraints:
        beside = build_constraints.filename_for(file)
        lines.append(f"COPY {beside} /patchlock/{beside}")
    if isinstance(app.upstream, EmbeddedUpstream):
        lines.append(f"COPY {app.upstream.folder} /app")
    else:
        lines.append(
            _run(
                "git init --quiet /app",
                f"git -C /app fetch --quiet --depth 1 {shlex.quote(app.upstream.url)} {lock.provenance.commit}",
                "git -C /app checkout --quiet FETCH_HEAD",
            )
        )
    pair = f"{app.name} --profile {profile.name}"
    check = f"lock {pair} --platform {platform.name} --check"
    made = [
        f"/tools/bin/python -m {command.replace(' wheels', f' {_WHEELS}')}" for command in patch_commands(lock.packages)
    ]
    lines += [
        "ENV PYTHONPATH=/patchlock/installer",
        _run(
            f"/tools/bin/python -m patchlock {check}",
            f"/tools/bin/python -m patchlock patch apply {pair} --source /app",
            "rm -rf /app/.git /app/.patchlock",
            *made,
        ),
    ]
    return "\n".join(lines) + "\n"


def _copied(file: str, sha256: Sha256, lock: Lock) -> Mapping[str, tuple[str, str]]:
    """List what the environment is made from: file in the image → path from the context, sha256."""
    pins = lock.provenance.build_constraints
    return {_LOCK: (file, sha256)} | ({_BUILD: (build_constraints.filename_for(file), pins)} if pins else {})


def _environment(
    copied: Mapping[str, tuple[str, str]], sdists: Sequence[str], base: str, target: str, *, is_patched: bool
) -> str:
    lines = [
        "# The environment: what the lock names, and nothing else; uv, from the tools above, stays outside.",
        f"FROM --platform={target} {base} AS environment",
    ]
    if sdists:
        lines += [f"# Compilers, as {', '.join(sdists)} may have C in them.", _apt("build-essential")]
    options = [*_UV, *(f"--no-binary {name}" for name in sdists)]
    options += [f"--build-constraints {_BUILD}"] if _BUILD in copied else []
    options += [f"--find-links {_WHEELS}"] if is_patched else []
    lines += [
        "COPY --from=source /tools/bin/uv /tools/bin/uv",
        *([f"COPY --from=source {_WHEELS} {_WHEELS}"] if is_patched else []),
        *(f"COPY {file} {path}" for path, (file, _) in copied.items()),
        _run(
            *(f'echo "{sha256}  {path}" | sha256sum --check --status' for path, (_, sha256) in copied.items()),
            "python -m venv --without-pip /environment",
            f"/tools/bin/uv pip sync {' '.join(options)} {_LOCK}",
        ),
    ]
    return "\n".join(lines) + "\n"


def _image(app: App, profile: Profile, base: str, target: str) -> str:
    variables = {
        "PATH": "/environment/bin:$PATH",
        "PYTHONNOUSERSITE": "1",
        **{name: _escaped(value) for name, value in {**profile.environment, **app.launch.environment}.items()},
    }
    listens = app.launch.listens
    command = list(app.launch.command)
    if listens is not None:
        variables |= {name: _escaped(value) for name, value in listens.environment.items()}
        command += listens.arguments
    folder = "/app" if str(app.directory) == "." else f"/app/{app.directory}"
    lines = [
        f"FROM --platform={target} {base}",
        _run("useradd --create-home --uid 1000 app"),
        "COPY --from=environment /environment /environment",
        "COPY --from=source --chown=app:app /app /app",
        *(f'ENV {name}="{value}"' for name, value in variables.items()),
        "USER app",
        f"WORKDIR {folder}",
        *(_exposed(listens.port) if listens is not None else ()),
        f"ENTRYPOINT {json.dumps(command, ensure_ascii=False)}",
    ]
    return "\n".join(lines) + "\n"


def _exposed(port: int) -> tuple[str, ...]:
    return (
        "# It listens on all addresses of its container; who reaches these is said when it is run. Only this computer:",
        f"# docker run --publish 127.0.0.1:{port}:{port} IMAGE. By --publish {port}:{port} it is open to the network.",
        f"EXPOSE {port}",
    )


def _escaped(value: str) -> str:
    """Write a value for double quotes of an ENV, where a dollar would name another variable."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
