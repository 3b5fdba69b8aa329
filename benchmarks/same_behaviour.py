"""Record what a checkout of patchlock makes of fixed inputs, and compare two recordings field by field.

    python benchmarks/same_behaviour.py record --checkout DIR --upstreams DIR --out DIR [--locks] [--only GLOB]
    python benchmarks/same_behaviour.py compare OLD NEW [--allow FILE]

`record` runs the patchlock of any checkout through the steps of `same_behaviour.toml`, each in a scratch folder with a
home and a cache of its own, and writes one JSON file for each: exit code, stdout and stderr of every command, and the
files that it left. Every pair of app and profile is planned, and patched in a clone; locks are kept, and with --locks
made again; machines are pretended; the demo is installed, used, damaged and removed; clones move on; much is wrong. The
apps are the checkout's, the recorded machines those beside this script. The package index is asked. Placeholders stand
for paths of the run, durations, times within the run and patchlock's version, and for nothing else.

`compare` prints each field that differs, and ends with 1 if one does. FILE says what may: a line is a pattern of fields
(`locks/demo*`), and "- TEXT" with "+ TEXT" below it says that in any field the first became the second.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import fnmatch
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOSTS = HERE.parent / "tests" / "hardware" / "hosts"
INPUTS = HERE / "same_behaviour.toml"
AT_A_TIME = 2
LONGEST = 1200
"""Seconds for a command."""
DURATION = re.compile(r"\b\d+\.\d+ m?s\b|(?<=\bms\": )[\d.e-]+")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)|\b1\d{18}\b")
"""In words, or in nanoseconds since 1970."""
DROPPED = re.compile(r"PATCHLOCK_|XDG_|GIT_(?!SSL)|PYTHON|VIRTUAL_ENV|CONDA|NO_COLOR|FORCE_COLOR|UV_OFFLINE")
"""Variables that change patchlock, git or Python; those of mirrors and certificates stay."""
GIT = ("git", "-c", "user.name=somebody", "-c", "user.email=somebody@localhost", "-C")
NOT_WRITTEN = "^(cache|home|tmp|installed|new/profiles|new/patches/(shared|distributions))/"
"""What lies in a step's folder and was not asked for by name."""
DATES = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}


class Setting:
    """What is recorded, and in whose place placeholders stand."""

    def __init__(self, checkout: Path, upstreams: Path, work: Path) -> None:
        self.checkout, self.upstreams, self.work, self.started = checkout, upstreams, work, time.time() - 1
        files = sorted(checkout.glob("patches/*/app.toml"))
        self.apps = {file.parent.name: tomllib.loads(file.read_text(encoding="utf-8"))["upstream"] for file in files}
        self.profiles = sorted(file.stem for file in checkout.glob("profiles/*.toml"))
        self.env = {name: value for name, value in os.environ.items() if not DROPPED.match(name)}
        shown = subprocess.run(
            [checkout / "install.sh"], env=self.env | {"PATCHLOCK_MODULE": "sysconfig"}, capture_output=True, check=True
        )
        self.tool = Path(re.findall(r'scripts = "(.*)"', shown.stdout.decode())[0]).parent
        version = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        self.version = re.compile(rf'(\bpatchlock(?:",\s*"version": "|, version | )){re.escape(version)}\b')

    def upstream(self, app: str) -> Path:
        """Name the clone of an app's upstream; for the embedded one of the demo, the folder itself."""
        if "url" not in self.apps[app]:
            return self.checkout / "patches" / app / str(self.apps[app]["embedded"])
        owner, name = self.apps[app]["url"].removesuffix(".git").split("/")[-2:]
        places = [self.upstreams / one for one in (f"{owner}+{name}/repo", f"{owner}+{name}", name)]
        found = next((place for place in places if place.is_dir()), None)
        if found is None:
            raise SystemExit(f"there is no clone of {self.apps[app]['url']}: put one at {places[1]}, bare or not")
        return found

    def normal(self, value: Any, folder: Path) -> Any:
        """Put placeholders in the place of what is another in every run, at any depth."""
        if isinstance(value, dict):
            found = {self.normal(key, folder): self.normal(one, folder) for key, one in value.items()}
            return {key: "<duration>" if key.endswith(("seconds", "ms")) else one for key, one in found.items()}
        if isinstance(value, list):
            return [self.normal(one, folder) for one in value]
        if not isinstance(value, str):
            return value
        places = {folder: "<step>", self.work: "<work>", HOSTS: "<hosts>", self.checkout: "<checkout>"}
        for place, name in (places | {self.upstreams: "<upstreams>", self.tool: "<tool>"}).items():
            value = value.replace(str(place), name)
        return self.version.sub(r"\1<version>", DURATION.sub("<duration>", MOMENT.sub(self._moment, value)))

    def _moment(self, found: re.Match[str]) -> str:
        is_number = found[0].isdecimal()
        then = int(found[0]) / 1e9 if is_number else datetime.datetime.fromisoformat(found[0]).timestamp()
        return "<now>" if self.started <= then <= time.time() + 1 else found[0]


class Step:
    """A scratch folder in which commands run; what they say and leave is kept in order."""

    def __init__(self, setting: Setting, name: str) -> None:
        self.setting, self.folder = setting, setting.work / re.sub(r"\W", "-", name)
        self.kept: dict[str, Any] = {}
        self.before: dict[str, str] = {}
        for part in ("home", "tmp"):
            (self.folder / part).mkdir(parents=True)
        self.env = setting.env | {
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "PATCHLOCK_HOME": str(self.folder / "installed"),
            "PATCHLOCK_CACHE_DIR": str(self.folder / "cache"),
            "PATCHLOCK_BOOTSTRAP": str(setting.checkout / "install.sh"),
            "PYTHONPATH": str(setting.checkout / "installer"),
            "PYTHONPYCACHEPREFIX": str(setting.work / "bytecode"),
            "UV_CACHE_DIR": str((self.folder if name.startswith("roads/") else setting.work) / "uv"),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "COLUMNS": "80",
        }
        self.pretend("vm-without-gpu")

    def do(self, lines: str) -> None:
        """Do line after line, each a command of patchlock, or one of the verbs below with its arguments."""
        for line in lines.splitlines():
            if line.startswith("%"):
                verb, *words = self.words(line[1:])
                getattr(self, verb)(*words)
            else:
                self.run(line)

    def keep(self, what: str, value: Any) -> None:
        """Add to the record."""
        self.kept[f"{len(self.kept):02} {self.setting.normal(what, self.folder)}"] = self.setting.normal(
            value, self.folder
        )

    def words(self, line: str) -> list[str]:
        """Split a line as a shell does, with the places that it names."""
        line = re.sub(r"@upstreams/([\w-]+)", lambda found: str(self.setting.upstream(found[1])), line)
        return shlex.split(line.replace("@hosts", str(HOSTS)).replace("@checkout", str(self.setting.checkout)))

    def run(self, command: str) -> Any:
        """Run a command line of patchlock, and give what it printed."""
        words, env = self.words(command), dict(self.env)
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, _, env[name] = words.pop(0).partition("=")
        done = subprocess.run(
            [self.setting.tool / "bin" / "python", "-P", "-m", "patchlock", *words],
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
        out, errors = (one.decode(errors="replace") for one in (done.stdout, done.stderr))
        printed = json.loads(out) if out.startswith("{") else out.split("\n")
        self.keep(command, {"exit": done.returncode, "stdout": printed, "stderr": errors.split("\n")})
        return printed

    def git(self, *words: str, folder: str = "clone") -> str:
        """Run git, and give what it prints; a clone may be partial, so git may complain."""
        command = (*GIT, str(self.folder / folder), *words)
        return subprocess.run(command, env=self.env | DATES, capture_output=True, check=False).stdout.decode()

    # --- verbs ---

    def pretend(self, host: str) -> None:
        """Let what follows run as if on a recorded machine; "": on this one."""
        self.env["PATCHLOCK_HOST"] = str(HOSTS / f"{host}.json") if host else ""

    def catalogue(self) -> None:
        """Make `catalogue`: a copy of the checkout's."""
        for part in ("profiles", "patches", "lockfiles"):
            shutil.copytree(self.setting.checkout / part, self.folder / "catalogue" / part)

    def clone(self, app: str) -> None:
        """Make `clone`: a user's, at the pinned commit, without files that the clone of upstream lacks."""
        about, place = self.setting.apps[app], self.setting.upstream(app)
        if "url" not in about:
            shutil.copytree(place, self.folder / "clone")
            self.commit("clone")
        else:
            self.git("clone", "-q", "--shared", "--no-checkout", str(place), "clone", folder=".")
            objects = self.git("rev-list", "--objects", "--missing=print", "--no-walk", about["commit"]).split("\n")
            rows = (row.split(maxsplit=3) for row in self.git("ls-tree", "-rz", about["commit"]).split("\0") if row)
            left_out = [f"!/{path}" for _, _, blob, path in rows if f"?{blob}" in objects]
            if left_out:
                self.git("sparse-checkout", "set", "--no-cone", "/*", *left_out)
            self.git("checkout", "-q", "-B", about["branch"], about["commit"])
            if self.git("rev-parse", "HEAD").strip() != about["commit"]:
                raise SystemExit(f"{place} does not hold commit {about['commit']} of {app}: fetch it there")
        self.before = self.digests()

    def commit(self, folder: str) -> None:
        """Commit all of a folder, which becomes a repository if need be."""
        for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "a commit")):
            self.git(*words, folder=folder)

    def edit(self, file: str, before: str, after: str) -> None:
        """Put a text in the place of its first occurrence in a file."""
        path = self.folder / file
        text = path.read_bytes().decode()
        if before not in text:
            raise SystemExit(f'{file} has no "{before}" any more: choose another edit in {INPUTS}')
        path.write_bytes(text.replace(before, after, 1).encode())

    def remove(self, pattern: str) -> None:
        """Remove files and folders."""
        for path in list(self.folder.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def files(self, folder: str, wanted: str = "**/*", but: str = "") -> None:
        """Keep the files of a folder: the lines of a text, the digest of all else."""
        top = self.folder / folder
        files = {path.relative_to(top).as_posix(): path for path in sorted(top.glob(wanted)) if path.is_file()}
        found = {name: content(path) for name, path in files.items() if not (but and re.search(but, name))}
        self.keep(f"files {folder}", found)

    def installed(self) -> None:
        """Keep what an installation holds beside its packages, and its refs."""
        self.files(
            "installed", but=r"environments/[^/]+/(lib|bin|lib64)/|/bytecode/|/\.git/|/ledger\.json$|^demo@cpu/lock$"
        )
        for source in sorted(self.folder.glob("installed/*/source/.git")):
            self.keep("refs", self.git("for-each-ref", folder=str(source.parent)).split("\n"))

    def tree(self) -> None:
        """Keep what became of `clone`, our refs there, and what lies beside them."""
        now = self.digests()
        changed = sorted(name for name in {*now, *self.before} if now.get(name) != self.before.get(name))
        self.keep("tree", {name: now.get(name, "removed") for name in changed})
        for ours in sorted(self.folder.glob("clone/.*/patchlock")):
            self.keep("refs", self.git("for-each-ref", "refs/patchlock", folder=str(ours.parent)).split("\n"))
            self.files(str(ours), but="^lock$")

    def digests(self) -> dict[str, str]:
        """Digest the files of `clone`, but for git's own, or what stands for it."""
        top = self.folder / "clone"
        files = {path.relative_to(top).as_posix(): path for path in top.rglob("*") if path.is_file()}
        read = sorted(row for row in files.items() if not row[0].startswith((".git/", ".patchlock/")))
        return {name: f"{digest(path.read_bytes())} {path.stat().st_mode & 0o777:o}" for name, path in read}


def digest(data: bytes) -> str:
    """Give the sha256 of bytes in hex."""
    return hashlib.sha256(data).hexdigest()


def content(path: Path) -> list[str] | str:
    """Give the lines of a text, with their ends but for the line feeds, or the digest of anything else."""
    data = path.read_bytes()
    try:
        return data.decode().split("\n")
    except UnicodeDecodeError:
        return digest(data)


# --- the steps --------------------------------------------------------------------------------------------------------


Job = Callable[[Step], object]


def plan(app: str, profile: str, host: str, step: Step) -> None:
    """Plan a pair with all its diffs, without and with each of its optional patches, and with all of these."""
    step.pretend(host)
    command = with_names(f"plan APP --profile {profile} --json SOURCE", app, step.setting)
    names = [f" --with {one['name']}" for one in (step.run(command)["data"] or {}).get("optional", ())]
    for words in dict.fromkeys([*names, "".join(names)]) if names else ():
        step.run(command + words)


def mistake(file: str, before: str, after: str, command: str, step: Step) -> None:
    """Run a command on a catalogue with a mistake."""
    step.catalogue()
    step.edit(f"catalogue/{file}", before, after)
    step.do(f"{command} --catalogue catalogue\n{command} --catalogue catalogue --json")


def with_names(lines: str, app: str, setting: Setting, profile: str = "") -> str:
    """Write lines for an app, or for a pair."""
    source = "--source @upstreams/APP" if "url" in setting.apps[app] else ""
    return lines.replace("SOURCE", source).replace("APP", app).replace("PROFILE", profile)


def jobs(setting: Setting, locks: bool) -> Iterator[tuple[str, Job]]:
    """List all steps with their names, the longest first."""
    inputs = tomllib.loads(INPUTS.read_text(encoding="utf-8"))
    yield from ((f"roads/{name}", partial(Step.do, lines=lines)) for name, lines in inputs["roads"].items())
    for name, lines in (inputs["each-pair"] | (inputs["each-pair-locks"] if locks else {})).items():
        for app, profile in itertools.product(setting.apps, setting.profiles):
            yield f"{name}/{app}.{profile}", partial(Step.do, lines=with_names(lines, app, setting, profile))
    for name, lines in inputs["each-app"].items():
        yield from ((f"{name}/{app}", partial(Step.do, lines=with_names(lines, app, setting))) for app in setting.apps)
    for app, (profile, hosts) in itertools.product(setting.apps, inputs["machines"].items()):
        yield from ((f"plans/{app}.{profile}.{host}", partial(plan, app, profile, host)) for host in hosts)
    for name, row in inputs["mistakes"].items():
        yield f"mistakes/{name}", partial(mistake, *row)
    for name, lines in inputs["alone"].items():
        for line in lines.splitlines():
            twice = f"{line}\n{line} --json\n%files . **/* {NOT_WRITTEN}"
            yield f"{name}/{slug(line)}", partial(Step.do, lines=twice)
    for name, lines in inputs["plain"].items():
        yield from ((f"{name}/{slug(line)}", partial(Step.do, lines=line)) for line in lines.splitlines())
    for name, lines in inputs["each-machine"].items():
        hosts = sorted(file.stem for file in HOSTS.glob("*.json"))
        yield from ((f"{name}/{host}", partial(Step.do, lines=f"%pretend {host}\n{lines}")) for host in hosts)


def slug(text: str) -> str:
    """Make a file's name of a command."""
    return re.sub(r"[^\w.-]+", "-", text.replace("PATCHLOCK_", "")).strip("-")[:100] or "nothing"


def record(options: argparse.Namespace) -> int:
    """Run all steps of a checkout and write what came out."""
    with tempfile.TemporaryDirectory(prefix="same-behaviour-", ignore_cleanup_errors=True) as name:
        setting = Setting(options.checkout.resolve(), options.upstreams.resolve(), Path(name).resolve())
        wanted = [row for row in jobs(setting, options.locks) if fnmatch.fnmatchcase(row[0], options.only)]
        if len(dict(wanted)) < len(wanted):
            raise SystemExit(f"two steps have one name: {sorted(one for one, _ in wanted)}")

        def do(row: tuple[str, Job]) -> tuple[str, float]:
            began, step, file = time.time(), Step(setting, row[0]), options.out / f"{row[0]}.json"
            row[1](step)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(step.kept, indent=1, ensure_ascii=False, sort_keys=True), encoding="utf-8")
            shutil.rmtree(step.folder)
            return row[0], time.time() - began

        with ThreadPoolExecutor(AT_A_TIME) as pool:
            for number, (one, seconds) in enumerate(pool.map(do, wanted), 1):
                print(f"{number}/{len(wanted)} {one} {seconds:.1f} s", file=sys.stderr)
    print(f"{len(wanted)} steps are recorded in {options.out}; it took {time.time() - setting.started:.0f} s")
    return 0


# --- comparing --------------------------------------------------------------------------------------------------------


def differences(old: Any, new: Any, field: str) -> Iterator[tuple[str, list[str]]]:
    """List the fields that differ, each with what was there and what is."""
    if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        old, new = old.split("\n"), new.split("\n")
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key, ...), new.get(key, ...), f"{field}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and old != new:
        if len(old) == len(new) and any(isinstance(one, dict | list) for one in (*old, *new)):
            for number, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from differences(one, other, f"{field}[{number}]")
            return
        before, after = ([one if isinstance(one, str) else json.dumps(one) for one in side] for side in (old, new))
        told = list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]
        yield field, [f"{line[0]} {line[1:]}" for line in told if not line.startswith("@@")]
    elif old != new:
        sides = (("-", old), ("+", new))
        yield field, [f"{sign} {json.dumps(one, ensure_ascii=False)}" for sign, one in sides if one is not ...]


def reworded(value: Any, texts: Sequence[tuple[str, str]]) -> Any:
    """Put the new words in the place of the old ones, at any depth."""
    if isinstance(value, dict):
        return {key: reworded(one, texts) for key, one in value.items()}
    if isinstance(value, list):
        return [reworded(one, texts) for one in value]
    for before, after in texts if isinstance(value, str) else ():
        value = value.replace(before, after)
    return value


def compare(options: argparse.Namespace) -> int:
    """Print what differs between two recordings."""
    lines = options.allow.read_text(encoding="utf-8").splitlines() if options.allow else []
    texts = [(one[2:], two[2:]) for one, two in itertools.pairwise(lines) if (one[:2], two[:2]) == ("- ", "+ ")]
    patterns = [line for line in lines if line.strip() and not line.startswith(("- ", "+ ", "#"))]
    tops = (options.old, options.new)
    steps = sorted({file.relative_to(top).as_posix() for top in tops for file in top.rglob("*.json")})
    found = passed = 0
    for step in steps:
        old, new = (json.loads((top / step).read_bytes()) if (top / step).is_file() else None for top in tops)
        if old is None or new is None:
            told = [(step, [f"only in {tops[old is None]}"])]
        else:
            told = list(differences(reworded(old, texts), new, step.removesuffix(".json")))
        for field, both in told:
            if any(fnmatch.fnmatchcase(field, pattern) for pattern in patterns):
                passed += 1
                continue
            found += 1
            print(field, *(f"    {line}" for line in both), sep="\n")
    print(f"{len(steps)} steps: {found} fields differ, {passed} more may")
    return 1 if found or not steps else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    one = verbs.add_parser("record", help="run a checkout and write what came out")
    for name in ("--checkout", "--upstreams", "--out"):
        one.add_argument(name, type=Path, required=True)
    one.add_argument("--locks", action="store_true", help="make all locks again, from the package index")
    one.add_argument("--only", default="*", metavar="GLOB", help="only steps of this name")
    one.set_defaults(verb=record)
    two = verbs.add_parser("compare", help="say what differs between two recordings")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    two.add_argument("--allow", type=Path, metavar="FILE", help="what may differ")
    two.set_defaults(verb=compare)
    options = parser.parse_args()
    return int(options.verb(options))


if __name__ == "__main__":
    sys.exit(main())
