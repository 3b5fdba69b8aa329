"""Other shapes of a lock: valid by their own standards, the same bytes every time, and true to the lock."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from conftest import ROOT
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.pylock import Pylock, PylockSelectError
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.catalogue.reader import Catalogue
from patchlock.locks.exports import cyclonedx, dockerfile, pylock
from patchlock.locks.exports.cyclonedx import AppliedPatch
from patchlock.locks.exports.pylock import Located
from patchlock.model import telemetry
from patchlock.model.app import GitUpstream
from patchlock.model.errors import RefusedError
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock, LockedPackage, Provenance, parse
from patchlock.model.platforms import PLATFORMS, wheel_rank

A, B, C, D = (Sha256(digit * 64) for digit in "abcd")
TORCH = "https://vendor.test/whl/cpu/torch-2.7.0%2Bcpu-cp311-cp311-manylinux_2_28_x86_64.whl"
LOCK = Lock(
    provenance=Provenance(
        app="demo",
        profile="cpu",
        platform="linux-x86_64",
        python="3.11",
        commit=CommitId("1" * 40),
        as_of="2026-01-01T00:00:00Z",
        newer={},
        uv="0.13.8",
        patches=("one",),
        inputs={"profiles/cpu.toml": A},
        resolver_input=B,
    ),
    packages=(
        LockedPackage(name=NormalizedName("jieba"), version=Version("0.42"), url="", sha256=D, why="a.txt:1 · sdist"),
        LockedPackage(
            name=NormalizedName("numpy"),
            version=Version("2.4"),
            url="",
            sha256=A,
            why="a.txt:2 · via jieba, torch · wheel cp311-cp311-manylinux_2_28_x86_64",
        ),
        LockedPackage(
            name=NormalizedName("sympy"),
            version=Version("1.14"),
            url="",
            sha256=B,
            why="via torch · wheel py3-none-any",
        ),
        LockedPackage(name=NormalizedName("torch"), version=Version("2.7.0+cpu"), url=TORCH, sha256=C, why=""),
    ),
)
WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
PLACES = {
    NormalizedName(name): Located(
        filename=url.rpartition("/")[2].replace("%2B", "+"), url=url, size=7, upload_time=WHEN
    )
    for name, url in {
        "jieba": "https://files.test/jieba-0.42.tar.gz",
        "numpy": "https://files.test/numpy-2.4-cp311-cp311-manylinux_2_28_x86_64.whl",
        "sympy": "https://files.test/sympy-1.14-py3-none-any.whl",
        "torch": TORCH,
    }.items()
}
CATALOGUE = Catalogue(root=ROOT)
PATCH = AppliedPatch(
    id="one", why="no card", source="https://x.test/ä b", diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+é\n"
)
LINUX = PLATFORMS["linux-x86_64"]


# --- pylock -----------------------------------------------------------------------------------------------------------


def test_pylock_names_each_file_of_the_lock_once() -> None:
    read = Pylock.from_dict(tomllib.loads(pylock.document(LOCK, LINUX, PLACES)))
    files = {
        package.name: [(file.url, file.hashes["sha256"]) for file in (*(package.wheels or ()), package.sdist) if file]
        for package in read.packages
    }
    assert files == {package.name: [(PLACES[package.name].url, package.sha256)] for package in LOCK.packages}
    assert [package.version for package in read.packages] == [package.version for package in LOCK.packages]
    assert read.tool is not None
    assert read.tool["patchlock"]["resolver-input"] == B
    assert str(read.requires_python) == "==3.11.*"


@pytest.mark.parametrize("platform", ["linux-x86_64", "linux-aarch64", "windows-amd64", "macos-arm64"])
def test_pylock_of_a_shipped_lock_is_chosen_on_its_platform_only(platform: str) -> None:
    """The addresses are made up here; the names, hashes and tags are real."""
    lock = parse((ROOT / "lockfiles" / "demo" / f"cpu.{platform}.txt").read_text(encoding="utf-8"), "demo")
    places = {
        p.name: Located(filename=name, url=f"https://files.test/{name}")
        for p in lock.packages
        for name in [f"{p.name.replace('-', '_')}-{p.version}-{p.why.rpartition('wheel ')[2]}.whl"]
    }
    text = pylock.document(lock, PLATFORMS[platform], places)
    assert text == pylock.document(lock, PLATFORMS[platform], places)
    read = Pylock.from_dict(tomllib.loads(text))
    for name, other in PLATFORMS.items():
        marks = {"linux-x86_64": ("linux", "x86_64"), "linux-aarch64": ("linux", "aarch64")}
        marks |= {"windows-amd64": ("win32", "AMD64"), "macos-arm64": ("darwin", "arm64")}
        environment = {"sys_platform": marks[name][0], "platform_machine": marks[name][1], "python_version": "3.11"}
        environment |= {"implementation_name": "cpython", "python_full_version": "3.11.7"}
        tags = list(wheel_rank(other, Version("3.11")))
        if name == platform:
            chosen = list(read.select(environment=environment, tags=tags))  # type: ignore[arg-type]
            assert [package.name for package, _ in chosen] == [package.name for package in lock.packages]
        else:
            with pytest.raises(PylockSelectError):
                list(read.select(environment=environment, tags=tags))  # type: ignore[arg-type]


# --- CycloneDX --------------------------------------------------------------------------------------------------------


def _sbom(app_name: str = "tts-service", **changes: object) -> dict[str, dict[str, object]]:
    app = dataclasses.replace(CATALOGUE.app(app_name), **changes)  # type: ignore[arg-type]
    text = cyclonedx.document(
        app, LOCK, date="2026-01-01T00:00:00Z", patches=[PATCH], distributions={NormalizedName("numpy"): (PATCH,)}
    )
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    found: dict[str, dict[str, object]] = json.loads(text)
    return found


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("MIT", {"expression": "MIT"}),
        ("mit or apache-2.0", {"expression": "MIT OR Apache-2.0"}),
        ("as MODEL_CARD says", {"license": {"name": "as MODEL_CARD says"}}),
    ],
    ids=["spdx", "expression", "words"],
)
def test_sbom_validates_and_names_the_licence(words: str, written: object) -> None:
    assert _sbom(license=words)["metadata"]["component"]["licenses"] == [written]  # type: ignore[index]


def test_sbom_has_no_licence_where_upstream_states_none() -> None:
    assert CATALOGUE.app("tts-service").license == "none stated"
    assert "licenses" not in _sbom("tts-service")["metadata"]["component"]


def test_a_source_in_the_catalogue_is_no_address_of_the_sbom() -> None:
    component = _sbom("demo")["metadata"]["component"]
    assert component["externalReferences"] == []  # type: ignore[index]


def test_sbom_shows_our_patches_as_the_pedigree_of_the_app() -> None:
    component = _sbom()["metadata"]["component"]
    assert component["version"] == "1" * 40  # type: ignore[index]
    upstream = CATALOGUE.app("tts-service").upstream
    assert isinstance(upstream, GitUpstream)
    assert {"type": "vcs", "url": upstream.url} in component["externalReferences"]  # type: ignore[index]
    (patch,) = component["pedigree"]["patches"]  # type: ignore[index]
    assert patch["type"] == "unofficial"
    assert patch["diff"]["text"]["content"] == PATCH.diff
    (resolved,) = patch["resolves"]
    assert (resolved["id"], resolved["description"]) == ("one", "no card")
    assert resolved["source"]["url"] == "https://x.test/%C3%A4%20b"


def test_sbom_has_each_distribution_with_its_hash_and_purl() -> None:
    components = {one["name"]: one for one in _sbom()["components"]}  # type: ignore[index]
    assert {name: one["hashes"] for name, one in components.items()} == {
        package.name: [{"alg": "SHA-256", "content": package.sha256}] for package in LOCK.packages
    }
    torch = PackageURL.from_string(components["torch"]["purl"])
    assert (torch.type, torch.name, torch.version) == ("pypi", "torch", "2.7.0+cpu")
    assert torch.qualifiers == {"download_url": TORCH}
    assert components["numpy"]["pedigree"]["patches"][0]["resolves"][0]["id"] == "one"
    assert "pedigree" not in components["sympy"]


def test_sbom_says_who_needs_whom() -> None:
    sbom = _sbom()
    names = {one["bom-ref"]: one["name"] for one in [*sbom["components"], sbom["metadata"]["component"]]}  # type: ignore[index]
    needs = {names[one["ref"]]: [names[on] for on in one["dependsOn"]] for one in sbom["dependencies"]}  # type: ignore[index]
    assert needs == {
        "tts-service": ["jieba", "numpy", "torch"],
        "jieba": ["numpy"],
        "torch": ["numpy", "sympy"],
        "numpy": [],
        "sympy": [],
    }


def test_sbom_is_the_same_every_time_and_another_for_another_lock() -> None:
    assert _sbom() == _sbom()
    assert _sbom()["serialNumber"] != _sbom(title="another")["serialNumber"]


# --- Dockerfile -------------------------------------------------------------------------------------------------------


def _instructions(text: str) -> list[tuple[str, str]]:
    """Read a Dockerfile as its builder does: comments out, continued lines joined."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", "", "\n".join(lines)).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined if line)]


def _dockerfile(app: str = "tts-service", platform: str = "linux-x86_64", **changes: object) -> str:
    profile = CATALOGUE.profile("cpu")
    return dockerfile.document(
        dataclasses.replace(CATALOGUE.app(app), **changes),  # type: ignore[arg-type]
        profile,
        PLATFORMS[platform],
        LOCK,
        file="lockfiles/x/cpu.txt",
        sha256=A,
    )


def test_dockerfile_clones_the_commit_patches_it_and_installs_the_lock_by_hash() -> None:
    steps = _instructions(_dockerfile())
    runs = " ".join(re.sub(r" +(?=&&)", " ", rest) for word, rest in steps if word == "RUN")
    assert f"git -C /app fetch --quiet --depth 1 https://github.com/DenMantm/second-brain.git {'1' * 40}" in runs
    assert "-m patchlock lock tts-service --profile cpu --platform linux-x86_64 --check" in runs
    assert "-m patchlock patch apply tts-service --profile cpu --source /app" in runs
    assert f'echo "{A}  /lock.txt" | sha256sum --check --status' in runs
    tools, locked = re.findall(r"pip (?:install|sync) .*?/\S+\.txt", runs)
    assert tools.split()[-1] == "/patchlock/lockfiles/patchlock.txt"
    assert "--no-deps --require-hashes --only-binary :all:" in tools
    assert "--require-hashes" in locked
    assert "--only-binary :all:" in locked
    assert "--no-binary jieba" in locked
    assert ("COPY", "lockfiles/x/cpu.txt /lock.txt") in steps


def test_dockerfile_takes_the_file_that_pins_the_builds_along_by_hash() -> None:
    lock = dataclasses.replace(LOCK, provenance=dataclasses.replace(LOCK.provenance, build_constraints=C))
    arguments = (CATALOGUE.app("demo"), CATALOGUE.profile("cpu"), LINUX)
    steps = _instructions(dockerfile.document(*arguments, lock, file="lockfiles/x/cpu.txt", sha256=A))
    beside = "lockfiles/x/cpu.build.txt"
    assert [rest for word, rest in steps if word == "COPY" and beside in rest] == [
        f"{beside} /patchlock/{beside}",
        f"{beside} /lock.build.txt",
    ]
    runs = " ".join(rest for word, rest in steps if word == "RUN")
    assert f'echo "{C}  /lock.build.txt" | sha256sum --check --status' in runs
    assert "--build-constraints /lock.build.txt" in runs
    plain = dockerfile.document(*arguments, LOCK, file="lockfiles/x/cpu.txt", sha256=A)
    assert "build.txt" not in plain


def test_dockerfile_ends_as_another_user_in_the_folder_of_the_app() -> None:
    steps = _instructions(_dockerfile())
    last = max(number for number, (word, _) in enumerate(steps) if word == "FROM")
    final = steps[last:]
    assert final[0] == ("FROM", "--platform=linux/amd64 python:3.11-slim")
    assert ("ENV", 'MODEL_PATH="models/voice.onnx"') in final
    assert [one for one in final if one[0] in {"USER", "WORKDIR", "ENTRYPOINT"}] == [
        ("USER", "1000"),
        ("WORKDIR", "/app/apps/tts-service"),
        ("ENTRYPOINT", json.dumps(list(CATALOGUE.app("tts-service").launch.command))),
    ]
    assert {word for word, _ in steps} <= {
        "ARG",
        "FROM",
        "RUN",
        "COPY",
        "ENV",
        "USER",
        "WORKDIR",
        "EXPOSE",
        "ENTRYPOINT",
    }


def test_dockerfile_takes_an_embedded_upstream_from_the_catalogue() -> None:
    text = _dockerfile("demo", "linux-aarch64")
    assert ("COPY", "patches/demo/upstream /app") in _instructions(text)
    assert "git init" not in text
    assert "ARG TOOLS=python:3.11-slim\nFROM --platform=linux/arm64 ${TOOLS} AS source" in text


def test_dockerfile_keeps_the_words_of_a_value() -> None:
    launch = dataclasses.replace(CATALOGUE.app("demo").launch, environment={"X": 'a "b" $HOME \\'})
    assert ("ENV", 'X="a \\"b\\" \\$HOME \\\\"') in _instructions(_dockerfile("demo", launch=launch))


def test_dockerfile_sets_the_variables_that_run_sets() -> None:
    launch = dataclasses.replace(CATALOGUE.app("demo").launch, environment={"DO_NOT_TRACK": "0", "HSA_X": "app"})
    profile = dataclasses.replace(CATALOGUE.profile("cpu"), environment={"HSA_X": "profile"})
    app = dataclasses.replace(CATALOGUE.app("demo"), launch=launch)
    steps = _instructions(dockerfile.document(app, profile, LINUX, LOCK, file="lockfiles/x/cpu.txt", sha256=A))
    set_there = {rest.partition("=")[0]: rest.partition("=")[2].strip('"') for word, rest in steps if word == "ENV"}
    assert {name: set_there[name] for name in telemetry.OFF} == {**telemetry.OFF, "DO_NOT_TRACK": "0"}
    assert set_there["HSA_X"] == "profile"


@pytest.mark.parametrize(
    ("app", "port", "environment", "arguments"),
    [
        ("tts-service", "3002", {"UVICORN_HOST": "0.0.0.0"}, []),
        ("xtts-webui", "8010", {}, ["--host", "0.0.0.0"]),
        ("amphion", "7860", {"GRADIO_SERVER_NAME": "0.0.0.0"}, []),
        ("advanced-rvc-inference", "7860", {}, []),
    ],
)
def test_container_of_a_service_can_be_reached_and_says_how(
    app: str, port: str, environment: dict[str, str], arguments: list[str]
) -> None:
    text = _dockerfile(app)
    steps = _instructions(text)
    set_there = dict(rest.split("=", 1) for word, rest in steps if word == "ENV")
    assert {name: json.loads(set_there[name]) for name in environment} == environment
    assert ("EXPOSE", port) in steps
    assert json.loads(steps[-1][1]) == [*CATALOGUE.app(app).launch.command, *arguments]
    assert f"# docker run --publish 127.0.0.1:{port}:{port} IMAGE. By --publish {port}:{port} it is open" in text


@pytest.mark.parametrize("app", ["demo", "diffrhythm2"])
def test_container_of_what_serves_nothing_opens_no_port(app: str) -> None:
    text = _dockerfile(app)
    assert "EXPOSE" not in text
    assert "--publish" not in text


def test_dockerfile_says_which_base_is_a_name_that_moves() -> None:
    arguments = (CATALOGUE.app("demo"), CATALOGUE.profile("cpu"), LINUX, LOCK)
    fixed = dockerfile.document(*arguments, file="l", sha256=A, base=f"rocm:7@sha256:{A}")
    assert "moves" in _dockerfile("demo")
    assert "moves" not in fixed
    assert f"FROM --platform=linux/amd64 rocm:7@sha256:{A}\n" in fixed


def test_build_on_a_base_makes_sure_of_its_python() -> None:
    arguments = (CATALOGUE.app("demo"), CATALOGUE.profile("cpu"), LINUX, LOCK)
    for bundle in (None, dockerfile.ImageBundle(file="mini.bundle", sha256=A)):
        text = dockerfile.document(*arguments, file="l", sha256=A, base="corp.test/python:3.12", bundle=bundle)
        stage = text[text.index(" AS environment") :]
        assert re.findall(r"^FROM \S+ (\S+)", text, re.MULTILINE) == ["${TOOLS}", *["corp.test/python:3.12"] * 2]
        code = shlex.split(re.search(r"python -c (.+) \\\n", stage)[1])[0]  # type: ignore[index]
        here = ".".join(map(str, sys.version_info[:2]))
        for version, told in ((here, ""), ("2.7", "the lock is for Python 2.7\n")):
            command = [sys.executable, "-c", code.replace(LOCK.provenance.python, version)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (bool(told), told)
    assert "python -c" not in _dockerfile("demo")


def test_a_mirror_is_named_to_the_build_and_not_to_the_image() -> None:
    first, environment, image = _dockerfile("demo").split("\nFROM ")[1:]
    assert [line for line in first.splitlines() if line.startswith("ARG ")] == [
        "ARG PIP_INDEX_URL",
        "ARG UV_DEFAULT_INDEX",
    ]
    assert "ARG UV_DEFAULT_INDEX\n" in environment
    assert "ARG " not in image


def test_dockerfile_has_cudnn_from_the_lock_and_says_so() -> None:
    app, profile = CATALOGUE.app("tts-service"), CATALOGUE.profile("cuda-linux")
    cudnn = LockedPackage(
        name=NormalizedName("nvidia-cudnn-cu12"),
        version=Version("9.19.0.56"),
        url="",
        sha256=D,
        why="via onnxruntime-gpu",
    )
    lock = dataclasses.replace(LOCK, packages=(*LOCK.packages, cudnn))
    text = dockerfile.document(app, profile, LINUX, lock, file="l", sha256=A)
    assert "# CUDA and cuDNN 9.19.0.56 are those of the lock" in text
    assert re.findall(r"^FROM \S+ (\S+)", text, re.MULTILINE)[1:] == ["python:3.11-slim"] * 2
    assert "cuDNN" not in _dockerfile("tts-service")


def test_image_for_windows_is_refused() -> None:
    with pytest.raises(RefusedError, match="an image holds Linux, and the lock is for windows-amd64"):
        _dockerfile("demo", "windows-amd64")


@pytest.mark.parametrize("app", ["demo", "tts-service"])
def test_shell_of_a_dockerfile_passes_shellcheck(app: str, tmp_path: Path) -> None:
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or shutil.which("shellcheck")
    if program is None:
        pytest.skip("there is no shellcheck here")
    directory = PurePosixPath("a folder")
    runs = [rest for word, rest in _instructions(_dockerfile(app, directory=directory)) if word == "RUN"]
    (tmp_path / "steps.sh").write_text("#!/bin/sh\n" + "\n".join(runs) + "\n", encoding="utf-8", newline="\n")
    done = subprocess.run([program, str(tmp_path / "steps.sh")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("app", ["demo", "tts-service", "xtts-webui"])
@pytest.mark.parametrize("from_bundle", [False, True], ids=["checkout", "bundle"])
def test_linter_of_dockerfiles_is_content(app: str, from_bundle: bool, tmp_path: Path) -> None:
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("no hadolint: PyPI has none for this machine")
    bundle = dockerfile.ImageBundle(file="an app.bundle", sha256=A) if from_bundle else None
    arguments = (CATALOGUE.app(app), CATALOGUE.profile("cpu"), LINUX, LOCK)
    text = dockerfile.document(*arguments, file="lockfiles/x/cpu.txt", sha256=A, packages=["ffmpeg"], bundle=bundle)
    (tmp_path / "Dockerfile").write_text(text)
    command = [program, "--config", str(ROOT / ".hadolint.yaml"), "--no-color", str(tmp_path / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_packages_of_needs_are_in_the_image_that_runs() -> None:
    arguments = (CATALOGUE.app("demo"), CATALOGUE.profile("cpu"), LINUX, LOCK)
    text = dockerfile.document(*arguments, file="l", sha256=A, packages=["espeak-ng", "ffmpeg"])
    last = text[text.rindex("\nFROM ") :]
    assert "--no-install-recommends espeak-ng ffmpeg" in last


def test_no_step_of_a_build_from_a_bundle_asks_a_network() -> None:
    bundle = dockerfile.ImageBundle(file="mini.bundle", sha256=A)
    arguments = (CATALOGUE.app("demo"), CATALOGUE.profile("cpu"), LINUX, LOCK)
    steps = _instructions(dockerfile.document(*arguments, file="l", sha256=B, bundle=bundle))
    runs = [rest for word, rest in steps if word == "RUN" and not rest.startswith("useradd")]
    assert runs
    assert all(rest.startswith("--network=none ") for rest in runs)
    assert f'echo "{A}  /bundle/mini.bundle" | sha256sum --check --status' in runs[0]
    assert f'echo "{B}  /bundle/lock.txt" | sha256sum --check --status' in runs[0]
    assert "--offline --no-index --find-links /wheels" in runs[-1]


@pytest.mark.parametrize(
    ("profile", "keys"),
    [("cpu", {}), ("cuda-linux", {"deploy"}), ("rocm-linux", {"devices", "group_add", "security_opt", "ipc"})],
)
def test_compose_gives_the_devices_of_the_back_end(profile: str, keys: set[str]) -> None:
    from ruamel.yaml import YAML

    app = CATALOGUE.app("xtts-webui")
    text = dockerfile.compose(app, CATALOGUE.profile(profile), LINUX, LOCK)
    made = f"patchlock export xtts-webui --profile {profile} --platform linux-x86_64 --format dockerfile -o Dockerfile"
    assert f"which this writes, if need be with --from or --base:\n# `{made}`.\n" in text
    service = YAML(typ="safe").load(text)["services"]["xtts-webui"]
    assert set(service) == {"image", "build", "init", "ports", *keys}
    assert service["ports"] == ["127.0.0.1:8010:8010"]
    assert service["build"]["platforms"] == ["linux/amd64"]
