"""What a lock covers of 120 requirement inputs, beside uv and pip-tools: `python benchmarks/requirement_inputs.py`.

    PATCHLOCK_UPSTREAMS=<folder of bare clones> python benchmarks/requirement_inputs.py [--report FILE] [--only TEXT]

60 inputs are our own, each with the truth written beside it (`requirement_inputs.toml`), and 60 are files of public
repositories, named there by commit and digest, and read from clones called `owner+name` or `owner+name/repo`. An input
is *right* where the names that are locked are the truth, or those that the peers cover (or, where none can read it,
that the loader of its language finds); where ours has less, each name that lacks must be told as not covered. It is
*refused* where the error names the file and line, or the file where a line cannot be named. Anything else is a silent
difference, and the exit code is 1.

Our own inputs are resolved by all three from the index of the machine, and uv and pip-tools may run what builds them.
For public ones, a loopback index has every name in every version that the files mention, so that what is asked for can
be told apart from what can be resolved; there uv may build nothing, and pip-compile is only asked about pip's files.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import dataclasses
import hashlib
import http.server
import io
import os
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent
INPUTS = ROOT / "benchmarks" / "requirement_inputs.toml"
sys.path[:0] = [str(ROOT / "installer")]

from packaging.utils import canonicalize_name  # noqa: E402
from packaging.version import InvalidVersion, Version  # noqa: E402

from patchlock.core import uv  # noqa: E402
from patchlock.model.app import OptionalLists  # noqa: E402
from patchlock.model.errors import RequirementsError  # noqa: E402
from patchlock.patches import requirement_sources, requirements_for_locks, resolver_files  # noqa: E402

PYTHON, PLATFORM = "3.11", "x86_64-manylinux_2_28"
SECONDS = 300
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?(?:==| @ )", re.MULTILINE)
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)*(?:[._-]?(?:a|b|rc|post|dev)\d*)*(?:\+[a-z0-9.]+)?)")
_PLACE = re.compile(r"[\w./-]+:\d+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Input:
    """Files, and what is asked of them."""

    name: str
    entry: PurePosixPath
    """From the root of the repository."""
    files: Mapping[PurePosixPath, bytes]
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    directory: PurePosixPath = dataclasses.field(default_factory=PurePosixPath)
    covers: frozenset[str] | None = None
    """None: nobody has written it down."""
    refused: str = ""
    is_own: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """What somebody says of an input."""

    names: frozenset[str] = frozenset()
    error: str = ""
    """Why there is no answer, on one line."""
    named: tuple[str, ...] = ()
    """What is told as not covered."""
    is_silent: bool = False
    """It was not asked."""


def inputs(upstreams: Path | None) -> Iterator[Input]:
    """Read all inputs; public ones that are not there, or whose bytes are others, are told."""
    data = tomllib.loads(INPUTS.read_text(encoding="utf-8"))
    for one in data["own"]:
        yield Input(
            name=one["id"],
            entry=PurePosixPath(one["entry"]),
            files={PurePosixPath(name): text.encode() for name, text in one["files"].items()},
            extras=tuple(one.get("extras", ())),
            groups=tuple(one.get("groups", ())),
            directory=PurePosixPath(one.get("directory", ".")),
            covers=None if "refused" in one else frozenset(one["covers"]),
            refused=one.get("refused", ""),
        )
    for one in data["public"]:
        files = _tree(upstreams, one["repository"], one["commit"])
        entry = PurePosixPath(one["entry"])
        if hashlib.sha256(files.get(entry, b"")).hexdigest() != one["sha256"]:
            print(f"left out: {one['repository']} {entry} is not there as it was", file=sys.stderr)
            continue
        yield Input(
            name=f"{one['repository']}@{one['commit'][:12]}",
            entry=entry,
            files=files,
            extras=tuple(one.get("extras", ())),
            groups=tuple(one.get("groups", ())),
            is_own=False,
        )


def _tree(upstreams: Path | None, repository: str, commit: str) -> dict[PurePosixPath, bytes]:
    """Read the files of a commit that may say something of requirements."""
    short = repository.replace("/", "+")
    places = [upstreams / short / "repo", upstreams / short] if upstreams else []
    clone = next((place for place in places if (place / "HEAD").is_file()), None)
    if clone is None:
        return {}

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(clone), *words], capture_output=True, check=True).stdout

    wanted = re.compile(r"(?i)(?:.*\.(?:txt|in|toml|cfg|ya?ml|lock)|setup\.py|pipfile|readme\.md)")
    listed = git("ls-tree", "-r", "--name-only", "-z", commit).decode("utf-8", errors="replace").split("\0")
    paths = [path for path in listed if wanted.fullmatch(path.rpartition("/")[2])]
    named = [
        path
        for path in paths
        if re.search(r"(?i)require|req|project|setup|environ|constraint|pip|pixi|lock|readme", path)
    ]
    return {PurePosixPath(path): git("show", f"{commit}:{path}") for path in named}


# --- who is asked -----------------------------------------------------------------------------------------------------


def ours(one: Input, folder: Path, index: tuple[str, ...]) -> Answer:
    """Ask patchlock's front end, and let uv resolve what it writes."""
    try:
        wanted = OptionalLists(
            extras=tuple(map(canonicalize_name, one.extras)), groups=tuple(map(canonicalize_name, one.groups))
        )
        entry = one.entry.relative_to(one.directory)
        inside = {
            path.relative_to(one.directory): data
            for path, data in one.files.items()
            if path.is_relative_to(one.directory)
        }

        def read(path: PurePosixPath) -> bytes | None:
            place = requirements_for_locks.resolve_include(one.directory / "any", str(path))
            return one.files.get(place) if place is not None else None

        asked = requirements_for_locks.read_all((entry,), inside, wanted=wanted, directory=one.directory, read=read)
        requirements_for_locks.require_indexes(asked, {}, "of the benchmark")
    except RequirementsError as error:
        return Answer(error=str(error))
    required, bounds = resolver_files.write_out(asked)
    for path, data in (required | bounds).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    lists = {
        "constraints": [str(line.requirement) for _, line in asked.constraints],
        "overrides": [str(line.requirement) for _, line in asked.overrides],
        "excludes": list(asked.exclusions),
    }
    for name, lines in lists.items():
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    words = [*map(str, required), *(word for path in bounds for word in ("--constraints", str(path)))]
    words += [word for name in lists for word in (f"--{name}", f"{name}.txt")]
    words += ["--prerelease", "allow"] if ("--pre", "") in asked.options else []
    answer = _uv(folder, *words, *index)
    if not answer.error and not answer.names:
        told = "; ".join(asked.not_covered)
        return Answer(error=f"{entry} asks for no package" + (f" (not covered: {told})" if told else ""))
    return dataclasses.replace(answer, named=asked.not_covered)


def of_uv(one: Input, folder: Path, index: tuple[str, ...]) -> Answer:
    """Ask uv itself, in a copy of the tree."""
    extras = [word for extra in one.extras for word in ("--extra", extra)]
    groups = [word for group in one.groups for word in ("--group", f"{_written(one, folder)}:{group}")]
    return _uv(folder, str(_written(one, folder)), *extras, *groups, *index, *(() if one.is_own else ("--no-build",)))


def _uv(folder: Path, *words: str) -> Answer:
    how = ("--no-deps", "--no-header", "--no-annotate", "--python-version", PYTHON, "--python-platform", PLATFORM)
    return _asked(folder, str(uv.find()), "pip", "compile", *words, *how, "--python", sys.executable)


def of_pip_tools(one: Input, folder: Path, index: tuple[str, ...]) -> Answer:
    """Ask pip-compile, in a copy of the tree; of public inputs only about pip's own files, as others would be built."""
    if one.groups or (not one.is_own and not requirement_sources.is_pip(one.entry)):
        return Answer(is_silent=True)
    extras = [word for extra in one.extras for word in ("--extra", extra)]
    how = ("--no-header", "--annotation-style", "line", "--allow-unsafe", "--strip-extras", "--no-config", "-q")
    argv = (
        sys.executable,
        "-m",
        "piptools",
        "compile",
        str(_written(one, folder)),
        *extras,
        *how,
        "-o",
        "answer.txt",
        *index,
    )
    answer = _asked(folder, *argv)
    written = folder / "answer.txt"
    if answer.error or not written.is_file():
        return answer
    # Of a version that is installed beside it, pip reads the real metadata: what only that asks for does not count.
    lines = [
        line for line in written.read_text(encoding="utf-8").splitlines() if re.search(r"# via .*(?:-r |\()", line)
    ]
    return Answer(names=_names("\n".join(lines)))


def _written(one: Input, folder: Path) -> PurePosixPath:
    for path, data in one.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return one.entry


def _asked(folder: Path, *argv: str) -> Answer:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PATCHLOCK", "VIRTUAL_ENV"))}
    try:
        done = subprocess.run(argv, cwd=folder, env=kept, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Answer(error=f"no answer in {SECONDS} s")
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in said if re.match(r"(?i)error|cause|.*Error:|.*Exception:", line)] or said[-1:]
        said_shortly = " ".join(errors[:2])
        for place in (folder.resolve(), folder.resolve().parent, Path.home()):
            said_shortly = said_shortly.replace(f"{place}/", "…/")
        return Answer(error=said_shortly[:160] or f"exit code {done.returncode}")
    return Answer(names=_names(done.stdout))


def _names(text: str) -> frozenset[str]:
    return frozenset(canonicalize_name(name) for name in _PIN.findall(text))


# --- an index that has everything -------------------------------------------------------------------------------------


@contextlib.contextmanager
def everything(one: Input) -> Iterator[tuple[str, ...]]:
    """Serve every name in every version that the files mention, and in a newer and an older one."""
    texts = (data.decode("utf-8", errors="replace") for path, data in one.files.items() if path.suffix != ".lock")
    lines = [(re.sub(r"[-_.]+", "-", line.lower()), line) for text in texts for line in text.splitlines()]

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = self.path.partition("#")[0].strip("/").split("/")
            name = canonicalize_name(parts[-1])
            if parts[0] == "simple":
                said = "\n".join(line for plain, line in lines if name in plain)
                files = [f"{name.replace('-', '_')}-{version}-py3-none-any.whl" for version in sorted(_versions(said))]
                rows = "".join(f'<a href="/files/{file}" data-dist-info-metadata="true">{file}</a>\n' for file in files)
                self._send(f"<!DOCTYPE html>\n{rows}".encode(), "text/html")
                return
            file = parts[-1].replace("%2B", "+").replace("%2b", "+")
            stem = file.removesuffix(".metadata").removesuffix("-py3-none-any.whl")
            stem_name, _, version = stem.rpartition("-")
            metadata = f"Metadata-Version: 2.1\nName: {stem_name.replace('_', '-')}\nVersion: {version}\n".encode()
            self._send(metadata if file.endswith(".metadata") else _wheel(stem, metadata), "application/octet-stream")

        def _send(self, body: bytes, kind: str) -> None:
            with contextlib.suppress(ConnectionError):  # who asks may have read enough
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield ("--index-url", f"http://127.0.0.1:{server.server_port}/simple")
    finally:
        server.shutdown()
        server.server_close()


def _versions(text: str) -> set[Version]:
    """Give the versions that a text mentions, and for each some that are newer, with its first parts and without."""
    found = {Version("0.0.1"), Version("99999")}
    for written in set(_VERSION.findall(text)):
        with contextlib.suppress(InvalidVersion):
            version = Version(written)
            release = version.release
            newer = [(*release[:at], 99999) for at in range(1, len(release) + 1)]
            newer += [(*release[:-1], release[-1] + 1), (*release, 1)]
            found |= {version, *(Version(".".join(map(str, parts))) for parts in newer)}
    return found


def _wheel(stem: str, metadata: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", metadata)
        archive.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return made.getvalue()


# --- judging ----------------------------------------------------------------------------------------------------------


def judged(one: Input, our: Answer, peers: tuple[Answer, ...]) -> str:
    """Say `right` or `refused`, or what is different and was not told."""
    if our.error:
        where = one.refused or one.entry.name
        if one.covers is not None:
            return f"SILENT: refused, and there is a right lock of {sorted(one.covers)}"
        is_placed = (
            where in our.error if one.refused else bool(_PLACE.search(our.error)) or "asks for no package" in our.error
        )
        return "refused" if is_placed else f"SILENT: the refusal does not name {where}"
    if one.is_own:
        if one.covers is None:
            return f"SILENT: it should be refused at {one.refused}"
        return "right" if our.names == one.covers else f"SILENT: {sorted(our.names ^ one.covers)}"
    answered = [peer for peer in peers if not peer.error and not peer.is_silent]
    answered = answered or [Answer(names=literally(one))]
    told = " ".join(our.named)
    for peer in answered:
        missing = sorted(name for name in peer.names - our.names if not re.search(rf"(?<![\w-]){name}(?![\w-])", told))
        if missing or our.names - peer.names:
            return f"SILENT: lacks {missing}, has {sorted(our.names - peer.names)}"
    return "right"


def literally(one: Input) -> frozenset[str]:
    """Read the names of a file that no peer can read, by the loader of its language; shares no code with patchlock."""
    text = one.files[one.entry].decode("utf-8")
    listed: list[str] = []
    if one.entry.suffix in {".yml", ".yaml"}:
        from ruamel.yaml import YAML

        for item in YAML(typ="safe").load(text)["dependencies"]:
            listed += item["pip"] if isinstance(item, dict) else []
    elif one.entry.name == "setup.py":
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                listed += ast.literal_eval(keyword.value) if keyword.arg == "install_requires" else []
    else:
        for name, value in tomllib.loads(text)["tool"]["poetry"]["dependencies"].items():
            is_optional = isinstance(value, dict) and value.get("optional")
            listed += [] if name == "python" or is_optional else [name]
    return frozenset(canonicalize_name(re.split(r"[^A-Za-z0-9._-]", entry.strip(), maxsplit=1)[0]) for entry in listed)


def shown(answer: Answer) -> str:
    """Write an answer into a cell."""
    if answer.is_silent:
        return "not asked"
    if answer.error:
        return answer.error.splitlines()[0].replace("|", "\\|")
    named = f"; named: {len(answer.named)}" if answer.named else ""
    return f"{len(answer.names)}{named}"


def main() -> int:
    """Ask about all inputs, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--only", default="", help="inputs whose name or file matches, a regular expression")
    wanted = parser.parse_args()
    upstreams = os.environ.get("PATCHLOCK_UPSTREAMS")
    rows: list[tuple[Input, Answer, Answer, Answer, str]] = []
    for one in inputs(Path(upstreams) if upstreams else None):
        if not re.search(wanted.only, f"{one.name} {one.entry}"):
            continue
        with contextlib.ExitStack() as stack:
            index = () if one.is_own else stack.enter_context(everything(one))
            folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(3)]
            our = ours(one, folders[0], index)
            uvs, pips = of_uv(one, folders[1], index), of_pip_tools(one, folders[2], index)
        verdict = judged(one, our, (uvs, pips))
        rows.append((one, our, uvs, pips, verdict))
        print(
            f"{verdict:<10} {one.name} {one.entry}: {shown(our)} | uv {shown(uvs)} | pip-tools {shown(pips)}",
            flush=True,
        )
    silent = [row for row in rows if row[4].startswith("SILENT")]
    print(f"{len(rows)} inputs, {len(silent)} silent differences")
    if wanted.report:
        wanted.report.write_text(report(rows), encoding="utf-8")
    return 1 if silent else 0


def report(rows: list[tuple[Input, Answer, Answer, Answer, str]]) -> str:
    """Write the report."""
    lines = [
        "# Requirement inputs: what is covered",
        "",
        "Made by `benchmarks/requirement_inputs.py`, which says how each is judged. A number is how many distributions",
        "are locked of what the input asks for itself; `named` is how many entries are told as not covered. A text is",
        "the refusal. uv may build our own inputs and no public ones; pip-compile is not asked where it would build",
        "those.",
        "",
        "| inputs | right lock | refused with its place | silent differences |",
        "|---|---|---|---|",
    ]
    for title, is_own in (("our own", True), ("of public repositories", False)):
        verdicts = [row[4] for row in rows if row[0].is_own == is_own]
        counts = [sum(verdict.startswith(word) for verdict in verdicts) for word in ("right", "refused", "SILENT")]
        lines.append(f"| {len(verdicts)} {title} | {' | '.join(map(str, counts))} |")
    for title, is_own in (("Our own", True), ("Of public repositories", False)):
        lines += ["", f"## {title}", "", "| input | file | verdict | patchlock | `uv pip compile` | `pip-compile` |"]
        lines.append("|---|---|---|---|---|---|")
        for one, our, uvs, pips, verdict in rows:
            if one.is_own == is_own:
                wanted = "".join(f" [{name}]" for name in one.extras) + "".join(f" group {name}" for name in one.groups)
                cells = (one.name, f"`{one.entry}`{wanted}", verdict, shown(our), shown(uvs), shown(pips))
                lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
