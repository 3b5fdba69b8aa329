"""Write a Dockerfile that builds one pair, from upstream's commit, our patches and the lock; pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName

from patchlock.model import build_constraints, telemetry, toml_text
from patchlock.model.addresses import without_secrets
from patchlock.model.app import App, EmbeddedUpstream, joined_ref
from patchlock.model.errors import RefusedError
from patchlock.model.fits import Platform
from patchlock.model.identities import Sha256
from patchlock.model.lockfile import Lock, patch_commands
from patchlock.model.profile import Profile


@dataclass(frozen=True, kw_only=True)
class ImageBundle:
    """A bundle that an image is built from."""

    file: str
    """Its name in the build context."""
    sha256: Sha256


_OF_CHECKOUT = ("# The build context is a checkout of patchlock: docker build --file THIS-FILE .",)
_OF_CATALOGUE = (
    "# The build context is the catalogue's folder. In it, with CHECKOUT for a checkout of patchlock, run:",
    "#   cp -r CHECKOUT/installer . && cp CHECKOUT/lockfiles/patchlock.txt lockfiles/",
    "#   docker build --file THIS-FILE .",
)
_PLATFORM = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}
_TOOLS = "python:3.11-slim"
"""What patchlock itself runs in while the image is built; nothing of it is in the image."""
_WITH_GIT = "python:3.11"
"""The same where nothing can be installed: it has git and compilers."""
_PIP = "--no-cache-dir --disable-pip-version-check --no-deps --require-hashes --only-binary :all:"
_UV = (
    "--no-cache --compile-bytecode --require-hashes --python /environment/bin/python --only-binary :all:",
    "--require-build-hashes --preview-features build-dependency-hashes",
)
"""As `patchlock install` calls it, and compiled: who runs the app may not write there."""
Builds = Mapping[NormalizedName, Sequence[Requirement]]
"""Distribution → what its build requires."""
_LOCK = "/lock.txt"
_BUILD = "/lock.build.txt"
_CONFIG = "/lock.uv.toml"
"""What builds require, also what an sdist itself does not ask for; pins alone install nothing."""
_WHEELS = "/wheels"
"""What the lock has as we patch it."""


def document(
    app: App,
    profile: Profile,
    platform: Platform,
    lock: Lock,
    *,
    file: str,
    sha256: Sha256,
    base: str = "",
    packages: Sequence[str] = (),
    bundle: ImageBundle | None = None,
    is_in_checkout: bool = True,
    options: Sequence[str] = (),
) -> str:
    """Write the Dockerfile; its build context is a checkout of patchlock, another catalogue, or a bundle's folder.

    Args:
        app: the app.
        profile: the kind of machine.
        platform: where the image runs.
        lock: what is installed.
        file: the lockfile, as a POSIX path from the context.
        sha256: of that file; another one is refused by the build.
        base: the image that the app is installed and runs on; it has the lock's Python as `python`, which the build
            makes sure of. Default: Python's own image.
        packages: of Debian, that the app needs.
        bundle: takes the place of the checkout, of upstream and of the indexes: no step but that of the packages asks
            a network.
        is_in_checkout: whether the catalogue is that of a checkout of patchlock, which the build needs, too.
        options: further words of the command that writes it.

    Raises:
        RefusedError: no image can be for that platform.
    """
    require_linux(platform)
    target = _PLATFORM[platform.machine]
    sdists = [package.name for package in lock.packages if package.why.endswith("sdist")]
    rules = profile.rules + app.rules.of(profile.name)
    builds = {one.name: one.build for one in rules.of_builds(lock.packages) if one.build}
    python = [_python_check(lock.provenance.python)] if base else []
    # Where nothing can be installed, the image that has compilers builds.
    builder = base or f"python:{profile.python}" + ("" if sdists and bundle else "-slim")
    base = base or f"python:{profile.python}-slim"
    context = _OF_CHECKOUT if is_in_checkout else _OF_CATALOGUE
    if bundle is not None:
        context = (f"# The build context is a folder with {bundle.file}: docker build --file THIS-FILE .",)
    head = _head(app, profile, platform, lock, base, context, options)
    image = _image(app, profile, base, target, packages)
    if bundle is not None:
        source = _source_of_bundle(app, profile, lock, sha256, bundle, target)
        return "\n".join([head, source, _environment_of_bundle(lock, sdists, builds, builder, target, python), image])
    copied = _copied(file, sha256, lock)
    is_patched = bool(patch_commands(lock.packages))
    environment = _environment(copied, sdists, builds, base, target, python, is_patched=is_patched)
    return "\n".join([head, _source(app, profile, platform, lock, file, target), environment, image])


def require_linux(platform: Platform) -> None:
    """Refuse a platform that no image can be for.

    Raises:
        RefusedError: it is not Linux.
    """
    if platform.os != "linux":
        raise RefusedError(
            f"an image holds Linux, and the lock is for {platform.name}",
            remedy="name a Linux platform of the profile with --platform",
        )


def _command(app: App, profile: Profile, platform: Platform, *words: str) -> str:
    pair = (app.name, "--profile", profile.name, "--platform", platform.name)
    return without_secrets(shlex.join(["patchlock", "export", *pair, "--format", *words]))


def _python_check(version: str) -> str:
    code = f'import sys; "%s.%s" % sys.version_info[:2] == "{version}" or sys.exit("the lock is for Python {version}")'
    return f"python -c {shlex.quote(code)}"


def _head(
    app: App,
    profile: Profile,
    platform: Platform,
    lock: Lock,
    base: str,
    context: Sequence[str],
    options: Sequence[str],
) -> str:
    lines = [
        "# syntax=docker/dockerfile:1",
        f"# {app.name} at {lock.provenance.commit[:12]} on {profile.name} ({platform.name}). Written by",
        f"# `{_command(app, profile, platform, 'dockerfile', *options)}`.",
        *context,
    ]
    if "@sha256:" not in base:
        lines.append(f"# {base} is a name that moves; for the same bytes every time, give it with its digest: --base.")
    cudnn = next((package for package in lock.packages if package.name.startswith("nvidia-cudnn-")), None)
    if cudnn:
        lines += [
            f"# CUDA and cuDNN {cudnn.version} are those of the lock: the base image needs none. The machine gives",
            "# its driver.",
        ]
    if devices := DEVICES.get(profile.back_end):
        lines.append(f"# {devices.title}: docker run {devices.options}.")
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
        "# Upstream at its commit, patched by patchlock, whose own packages are pinned by hash. Nothing of TOOLS is in",
        "# your image. Behind a mirror: docker build --build-arg TOOLS=IMAGE --build-arg PIP_INDEX_URL=URL",
        "# --build-arg UV_DEFAULT_INDEX=URL.",
        f"ARG TOOLS={_TOOLS}",
        f"FROM --platform={target} ${{TOOLS}} AS source",
        "ARG PIP_INDEX_URL",
        "ARG UV_DEFAULT_INDEX",
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
                *_submodules(app.submodules),
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


def _submodules(folders: Sequence[PurePosixPath]) -> Sequence[str]:
    """Bring the submodules that the app needs; their files are patched like its own where no `.git` divides them."""
    if not folders:
        return ()
    names = shlex.join(map(str, folders))
    return (
        f"git -C /app submodule update --quiet --init --recursive --depth 1 -- {names}",
        "find /app -name .git -prune -exec rm -rf {} +",
    )


def _checkout_of_bundle(app: App, lock: Lock) -> Sequence[str]:
    commit = lock.provenance.commit
    if app.submodules:
        ref = joined_ref(commit, app.submodules)
        return f"git -C /app fetch --quiet /bundle/upstream.bundle {ref}", "git -C /app checkout --quiet FETCH_HEAD"
    return (f"git -C /app checkout --quiet {commit}",)


def _copied(file: str, sha256: Sha256, lock: Lock) -> Mapping[str, tuple[str, str]]:
    """List what the environment is made from: file in the image → path from the context, sha256."""
    pins = lock.provenance.build_constraints
    return {_LOCK: (file, sha256)} | ({_BUILD: (build_constraints.filename_for(file), pins)} if pins else {})


def _environment(
    copied: Mapping[str, tuple[str, str]],
    sdists: Sequence[str],
    builds: Builds,
    base: str,
    target: str,
    python: Sequence[str],
    *,
    is_patched: bool,
) -> str:
    lines = [
        "# The environment: what the lock names, and nothing else; uv, from the tools above, stays outside.",
        f"FROM --platform={target} {base} AS environment",
        "ARG UV_DEFAULT_INDEX",
    ]
    if sdists:
        lines += [f"# Compilers, as {', '.join(sdists)} may have C in them.", _apt("build-essential")]
    configured, config = _configuration(builds)
    options = [config, *_UV, *(f"--no-binary {name}" for name in sdists)]
    options += [f"--build-constraints {_BUILD}"] if _BUILD in copied else []
    options += [f"--find-links {_WHEELS}"] if is_patched else []
    lines += [
        "COPY --from=source /tools/bin/uv /tools/bin/uv",
        *([f"COPY --from=source {_WHEELS} {_WHEELS}"] if is_patched else []),
        *(f"COPY {file} {path}" for path, (file, _) in copied.items()),
        _run(
            *python,
            *(f'echo "{sha256}  {path}" | sha256sum --check --status' for path, (_, sha256) in copied.items()),
            "python -m venv --without-pip /environment",
            *configured,
            f"/tools/bin/uv pip sync {' '.join(options)} {_LOCK}",
        ),
    ]
    return "\n".join(lines) + "\n"


def _source_of_bundle(app: App, profile: Profile, lock: Lock, sha256: Sha256, bundle: ImageBundle, target: str) -> str:
    """Take all from a bundle, by its sha256: patchlock with its packages, upstream, the wheels."""
    name, pair = shlex.quote(bundle.file), f"{app.name} --profile {profile.name}"
    tool = f"{_PIP} --no-index --find-links /bundle/tool"
    lines = [
        "# Everything is in the bundle. TOOLS has git, and nothing of it is in your image; for another one:",
        "# docker build --build-arg TOOLS=IMAGE.",
        f"ARG TOOLS={_WITH_GIT}",
        f"FROM --platform={target} ${{TOOLS}} AS source",
        f"COPY {json.dumps([bundle.file, '/bundle/'])}",
        _offline(
            f'echo "{bundle.sha256}  /bundle/{bundle.file}" | sha256sum --check --status',
            f"tar --extract --file /bundle/{name} --directory /bundle",
            f'echo "{sha256}  /bundle/lock.txt" | sha256sum --check --status',
            "python -m venv /tools",
            f"/tools/bin/pip install {tool} -r /bundle/patchlock/lockfiles/patchlock.txt",
        ),
        "ENV PYTHONPATH=/bundle/patchlock/installer UV_OFFLINE=1",
        _offline(
            f"git clone --quiet --branch {shlex.quote(app.branch)} /bundle/upstream.bundle /app",
            *_checkout_of_bundle(app, lock),
            f"/tools/bin/python -m patchlock patch apply {pair} --source /app",
            "rm -rf /app/.git /app/.patchlock",
            "mkdir /wheels",
            "find /bundle/cache/wheels -type f -exec mv --target-directory /wheels {} +",
            f"sed 's#^\\([^ ]* @ \\)https*://[^ ]*/\\([^/ ]*\\) #\\1file://{_WHEELS}/\\2 #' /bundle/lock.txt >{_LOCK}",
            f"touch /bundle/{_BUILD.removeprefix('/')}",
        ),
    ]
    return "\n".join(lines) + "\n"


def _environment_of_bundle(
    lock: Lock, sdists: Sequence[str], builds: Builds, base: str, target: str, python: Sequence[str]
) -> str:
    configured, config = _configuration(builds)
    options = [config, *_UV, *(f"--no-binary {name}" for name in sdists)]
    options += ["--offline --no-index", f"--find-links {_WHEELS}"]
    options += [f"--build-constraints {_BUILD}"] if lock.provenance.build_constraints else []
    lines = [
        "# The environment: what the lock names, and nothing else; uv, from the tools above, stays outside.",
        f"FROM --platform={target} {base} AS environment",
        "COPY --from=source /tools/bin/uv /tools/bin/uv",
        f"COPY --from=source {_WHEELS} {_WHEELS}",
        f"COPY --from=source {_LOCK} /bundle{_BUILD} /",
        _offline(
            *python,
            "python -m venv --without-pip /environment",
            *configured,
            f"/tools/bin/uv pip sync {' '.join(options)} {_LOCK}",
        ),
    ]
    return "\n".join(lines) + "\n"


def _configuration(builds: Builds) -> tuple[Sequence[str], str]:
    """Give the commands that write uv's configuration, and the option that names it."""
    if not builds:
        return (), "--no-config"
    text = toml_text.render({"extra-build-dependencies": builds})
    written = f"printf '%s\\n' {shlex.join(text.splitlines())} > {_CONFIG}"
    return (written,), f"--config-file {_CONFIG} --preview-features extra-build-dependencies"


def _offline(*commands: str) -> str:
    return _run(*commands).replace("RUN ", "RUN --network=none ", 1)


def _image(app: App, profile: Profile, base: str, target: str, packages: Sequence[str]) -> str:
    launch = {**telemetry.OFF, **app.launch.environment, **profile.environment}  # as `venv.launch_variables` does
    variables = {
        "PATH": "/environment/bin:$PATH",
        "PYTHONNOUSERSITE": "1",
        **{name: _escaped(value) for name, value in launch.items()},
    }
    listens = app.launch.listens
    command = list(app.launch.command)
    if listens is not None:
        variables |= {name: _escaped(value) for name, value in listens.environment.items()}
        command += listens.arguments
    folder = "/app" if str(app.directory) == "." else f"/app/{app.directory}"
    lines = [
        f"FROM --platform={target} {base}",
        *(("# What the app needs besides Python.", _apt(*packages)) if packages else ()),
        _run("useradd --create-home --uid 1000 app"),
        "COPY --from=environment /environment /environment",
        "COPY --from=source --chown=app:app /app /app",
        *(f'ENV {name}="{value}"' for name, value in variables.items()),
        "USER 1000",
        f"WORKDIR {folder}",
        *(_exposed(listens.port) if listens is not None else ()),
        f"ENTRYPOINT {json.dumps(command, ensure_ascii=False)}",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class Devices:
    """How a container gets the devices that a back end computes on."""

    title: str
    options: str
    """Of `docker run`."""
    compose: str
    """Keys of a service, indented by four."""


_GROUP = "${RENDER_GROUP:?the number of the group of /dev/dri/renderD128: stat -c %g /dev/dri/renderD128}"
DEVICES: Mapping[str, Devices] = {
    # Source: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
    "cuda": Devices(
        title="NVIDIA's cards, through its Container Toolkit",
        options="--gpus all",
        compose="""\
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: all
              capabilities: [gpu]
""",
    ),
    # Source: https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html
    "rocm": Devices(
        title="AMD's cards, by the group that may use them on the machine",
        options="--device /dev/kfd --device /dev/dri --group-add $(stat -c %g /dev/dri/renderD128) "
        "--security-opt seccomp=unconfined",
        compose=f"""\
    devices: [/dev/kfd, /dev/dri]
    group_add: ["{_GROUP}"]
    security_opt: [seccomp=unconfined]
    ipc: host
""",
    ),
    # Source: https://dgpu-docs.intel.com/driver/client/overview.html (the group of the render node)
    "xpu": Devices(
        title="Intel's cards, by the group that may use them on the machine",
        options="--device /dev/dri --group-add $(stat -c %g /dev/dri/renderD128)",
        compose=f"""\
    devices: [/dev/dri]
    group_add: ["{_GROUP}"]
""",
    ),
}
"""By back end; what computes on the processor needs none."""


def compose(app: App, profile: Profile, platform: Platform, lock: Lock, options: Sequence[str] = ()) -> str:
    """Write a compose.yaml for the image: built here, with its devices, reached from this computer alone.

    Args:
        app: the app.
        profile: the kind of machine.
        platform: where the image runs.
        lock: what is installed.
        options: further words of the command that writes it.

    Raises:
        RefusedError: no image can be for that platform.
    """
    require_linux(platform)
    lines = [
        f"# {app.name} on {profile.name} ({platform.name}). Written by",
        f"# `{_command(app, profile, platform, 'compose', *options)}`.",
        "# It builds the image from the Dockerfile beside it, which this writes, if need be with --from or --base:",
        f"# `{_command(app, profile, platform, 'dockerfile', *options, '-o', 'Dockerfile')}`.",
        "services:",
        f"  {app.name}:",
        f"    image: patchlock/{app.name}:{profile.name}-{lock.provenance.commit[:12]}",
        "    build:",
        "      context: .",
        '      dockerfile: "Dockerfile"',
        f"      platforms: [{_PLATFORM[platform.machine]}]",
        "    init: true",
    ]
    if app.launch.listens is not None:
        port = app.launch.listens.port
        lines += [
            "    # From this computer only; without 127.0.0.1 it is open to the network.",
            f'    ports: ["127.0.0.1:{port}:{port}"]',
        ]
    if devices := DEVICES.get(profile.back_end):
        lines += [f"    # {devices.title}.", devices.compose.rstrip()]
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
