"""Installations in every state, the commands that change them, and what must be true after a command was killed."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import envelopes
import miniature
from faults import Done, Fault, Server
from hub import LoopbackHub, commit_of
from sdists import ask, made, maker, offer, sdist

APP = b'''"""An app."""
import alpha

EDITION = 1
DEVICE = "cuda"

if __name__ == "__main__":
    assert not DEVICE.startswith("cu"), "no CUDA here"
    print("computed on", DEVICE, "edition", EDITION, "alpha", alpha.__version__)
'''
ONE, NEW, TWO = (f"computed on cpu edition {e} alpha {a}\n" for e, a in ((1, "1.0"), (2, "1.0"), (2, "2.0")))
"""What the app prints: of the first catalogue, of its upstream as `update` brings it, of the second catalogue."""
MINE = "# mine\n"
USERS = {"models/weights.bin": bytes(range(256)) * 400, "outputs/a file.txt": b"mine\r\n", "README.md": b"my notes\n"}
"""Files of the user's in the source; the last one changes a file of upstream's."""

DEVICE = """
[[check]]
id = "device"
kind = "python"
code = "import os; print('computed' if not os.path.exists(os.environ.get('BROKEN', '')) else 'wrong numbers')"
prints = "computed"
timeout = 60
"""
HUB_MODEL, VENDOR_MODEL, LISTED = bytes(range(256)) * 1200, b"voice" * 50_000, b'{"rate": 24000}\n'
DECLARED = """
[[model]]
repository = "maker/speaks"
into = "models/speaks"
why = "x"
license = "MIT"
source = "https://example.com/why"
files = [{{ path = "model.bin", bytes = {size}, sha256 = "{sha256}" }}, {{ path = "config.json" }}]
[[model]]
repository = "maker/listens"
why = "x"
license = "MIT"
source = "https://example.com/why"
files = [{{ path = "weights.bin" }}]
[[model]]
repository = "{vendor}/vendor"
into = "voices"
why = "x"
license = "MIT"
source = "https://example.com/why"
files = [{{ path = "voice.bin", bytes = {vendor_size}, sha256 = "{vendor_sha256}" }}]
"""
"""Models of the miniature: of a hub, of a hub's cache, and of a vendor's own server."""


@dataclasses.dataclass(frozen=True)
class Transaction:
    """A command that changes an installation."""

    name: str
    state: str
    """What is there before: see `Places.make`."""
    words: tuple[str, ...]
    before: str | None
    """What the app prints before, None where it is not installed."""
    after: str | None
    keeps: bool = True
    """The user's files stay."""
    settle: tuple[str, ...] = ()
    """What brings everything in order afterwards, where that is not the command itself."""


TRANSACTIONS = (
    Transaction("install", "locked", ("install", "mini"), None, ONE, keeps=False),
    Transaction("upgrade", "newer", ("install", "mini"), ONE, TWO),
    Transaction("update", "installed", ("update", "mini", "--source", "{folder}/public"), ONE, NEW),
    Transaction("reinstall", "installed", ("install", "mini", "--reinstall"), ONE, ONE),
    Transaction("rollback", "two", ("rollback", "mini"), TWO, ONE),
    Transaction("prune", "two", ("cache", "clean", "mini", "--yes"), TWO, TWO),
    Transaction("uninstall", "two", ("uninstall", "mini"), TWO, None),
    Transaction("purge", "two", ("uninstall", "mini", "--purge", "--yes"), TWO, None, keeps=False),
    Transaction("recover", "cut", ("run", "mini"), ONE, ONE),
    Transaction("verify", "cut", ("verify", "mini"), ONE, ONE),
    Transaction("models", "modelled", ("models", "mini", "--fetch"), ONE, ONE),
    Transaction("unlink", "fetched", ("uninstall", "mini"), ONE, None),
    Transaction("empty", "fetched", ("uninstall", "mini", "--purge", "--yes"), ONE, None, keeps=False),
    Transaction("fallback", "failing", ("install", "mini", "--fallback"), ONE, ONE),
    Transaction("build", "built", ("install", "mini"), None, ONE, keeps=False),
)


class Places:
    """A folder in which one state after the other is put; copies of all states lie beside it."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder / "work"
        self._states = folder / "states"
        self._server = server
        self._hub: LoopbackHub | None = None
        self._states.mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        """Where apps are installed."""
        return self.folder / "home"

    @property
    def installed(self) -> Path:
        """The folder of the miniature's installation."""
        return self.home / "mini@tiny"

    @property
    def source(self) -> Path:
        """Its working tree."""
        return self.installed / "source"

    @property
    def temporary(self) -> Path:
        """What TMPDIR names."""
        return self.folder / "tmp"

    @property
    def hub(self) -> LoopbackHub:
        """The hub, which is there from its first use to the end of the process."""
        if self._hub is None:
            self._hub = LoopbackHub()
            self._hub.in_git = {"maker/speaks/config.json"}
            self._hub.files = {
                "maker/speaks/model.bin": HUB_MODEL,
                "maker/speaks/config.json": LISTED,
                "maker/listens/weights.bin": HUB_MODEL[1:],
                "vendor/voice.bin": VENDOR_MODEL,
            }
        return self._hub

    @property
    def models(self) -> dict[Path, bytes]:
        """Where the app finds its models, and what they are."""
        listens = self._hub_cache / "models--maker--listens" / "snapshots" / commit_of("maker/listens")
        return {
            self.source / "models" / "speaks" / "model.bin": HUB_MODEL,
            self.source / "models" / "speaks" / "config.json": LISTED,
            listens / "weights.bin": HUB_MODEL[1:],
            self.source / "voices" / "voice.bin": VENDOR_MODEL,
        }

    @property
    def _hub_cache(self) -> Path:
        return self.folder / "user" / ".cache" / "huggingface" / "hub"

    @property
    def env(self) -> dict[str, str]:
        """The whole environment of a command."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "user"),
            "TMPDIR": str(self.temporary),
            "PATCHLOCK_HOME": str(self.home),
            "PATCHLOCK_CACHE_DIR": str(self.folder / "cache"),
            "PATCHLOCK_CATALOGUE": str(self.folder / "world" / "catalogue"),
            "PATCHLOCK_TRUSTED_CATALOGUES": str(self.folder.anchor),
            "UV_DEFAULT_INDEX": (self.folder / "world" / "index").as_uri(),
            "UV_CACHE_DIR": str(self.folder / "uv"),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_OFFLINE": "1",
            "HF_ENDPOINT": self.hub.url,
            "PYTHONPYCACHEPREFIX": str(self.folder.parent / "bytecode"),
        }

    def run(self, *words: str, fault: Fault | None = None, hook: bool = False) -> Done:
        """Run a command line here."""
        filled = [word.format(folder=self.folder) for word in words]
        for _ in range(100):
            done = self._server.run(*filled, env=self.env, fault=fault, hook=hook)
            if "error[busy]" not in done.stderr:  # an orphan of a killed command works on for a moment
                break
            time.sleep(0.1)
        envelopes.check_output(filled, done.stdout)
        return done

    def put(self, state: str) -> None:
        """Bring the folder into a state; it is made the first time."""
        if not (self._states / state).exists():
            self._make(state)
            _copy(self.folder, self._states / state)
            return
        _copy(self._states / state, self.folder)

    def _make(self, state: str) -> None:
        match state:
            case "locked":
                shutil.rmtree(self.folder, ignore_errors=True)
                for name in ("tmp", "user"):
                    (self.folder / name).mkdir(parents=True)
                world = miniature.build(self.folder / "world")
                (world.upstream / "app.py").write_bytes(APP)
                world.name_commit(self.folder)
                shutil.rmtree(self.folder / "naming", ignore_errors=True)
                self._must(*miniature.lock_here())
                _publish(world.upstream, self.folder / "public")
            case "built":
                self.put("locked")
                self._ask_for_a_build()
            case "installed":
                self.put("locked")
                self._install_and_use()
            case "modelled":
                self.put("locked")
                self._declare_models()
                self._install_and_use()
                self._must("models", "mini")  # which compiles what a fetch imports
            case "fetched":
                self.put("modelled")
                self._must("models", "mini", "--fetch")
            case "newer":
                self.put("installed")
                world = self._world()
                (world.upstream / "app.py").write_bytes(APP.replace(b"EDITION = 1", b"EDITION = 2"))
                world.app.write_text(world.app.read_text().replace("==1.0", "==2.0"))
                world.name_commit(self.folder)
                shutil.rmtree(self.folder / "naming")
                self._must(*miniature.lock_here())
            case "two-profiles":
                self.put("locked")
                profile = self._world().profile
                profile.with_name("small.toml").write_text(profile.read_text().replace("A machine", "Another"))
                self._must(*miniature.lock_here())
            case "failing":
                self._install_and_break()
            case "two":
                self.put("newer")
                self._must("install", "mini")
            case "cut":
                self.put("newer")
                done = self.run("install", "mini", hook=True)
                events = done.events
                self.put("newer")
                # The receipt and what follows it take fewer than eight events.
                assert self.run("install", "mini", hook=True, fault=Fault("kill", events - 10)).returncode == -9
                assert (self.installed / "journal").exists()
                for path in (self.folder / "tmp").iterdir():  # what a killed one leaves there is the system's to remove
                    shutil.rmtree(path)

    def _ask_for_a_build(self) -> None:
        world = self._world()
        offer(world, maker(world.wheels), sdist(self.folder / "sdists", "delta", "1.0", made("delta")))
        rules = '[[build]]\nnames = ["delta"]\nwhy = "x"\nsource = "tests"\n[[metadata]]\nname = "delta"\n'
        rules += 'version = "1.0"\nrequires = []\nbuild = ["maker"]\nwhy = "x"\nsource = "tests"\n'
        ask(world, b"alpha==9.0\nbeta\ndelta\n", self.folder, rules)
        shutil.rmtree(self.folder / "name")
        self._must(*miniature.lock_here())

    def _install_and_break(self) -> None:
        """Install on `tiny`, which comes first, and break its device; `small` works always."""
        self.put("locked")
        world = self._world()
        text = world.profile.read_text()
        world.profile.with_name("small.toml").write_text(text)
        broken = f'\n[environment]\nBROKEN = "{self.folder / "broken"}"\n'
        world.profile.write_text(text.replace("specificity = 0", "specificity = 1") + broken)
        world.app.write_text(world.app.read_text() + DEVICE)
        self._must(*miniature.lock_here())
        self._install_and_use()
        (self.folder / "broken").touch()

    def _declare_models(self) -> None:
        filled = DECLARED.format(
            vendor=self.hub.url,
            size=len(HUB_MODEL),
            sha256=hashlib.sha256(HUB_MODEL).hexdigest(),
            vendor_size=len(VENDOR_MODEL),
            vendor_sha256=hashlib.sha256(VENDOR_MODEL).hexdigest(),
        )
        app = self._world().app
        app.write_text(app.read_text() + filled)
        self._must(*miniature.lock_here())

    def _install_and_use(self) -> None:
        self._must("install", "mini")
        for name, data in USERS.items():
            (self.source / name).parent.mkdir(exist_ok=True)
            (self.source / name).write_bytes(data)
        app = self.source / "app.py"
        app.write_text(app.read_text() + MINE)

    def _must(self, *words: str) -> None:
        done = self.run(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"

    def _world(self) -> miniature.World:
        env = {name: self.env[name] for name in ("UV_DEFAULT_INDEX", "PATCHLOCK_CATALOGUE")}
        folder = self.folder / "world"
        return miniature.World(catalogue=folder / "catalogue", wheels=folder / "wheels", env=env)

    # --- what must be true ------------------------------------------------------------------------------------------

    def objections(self, transaction: Transaction) -> list[str]:
        """Say what is wrong with models and with the users' files, after whatever happened."""
        found = [
            f"the model {path.name} is not what it was" for path, data in self.models.items() if _is_other(path, data)
        ]
        if not transaction.keeps:
            return found
        for name, data in USERS.items():
            file = self.source / name
            if not file.is_file() or file.read_bytes() != data:
                found.append(f"the user's {name} is lost or changed")
        app = self.source / "app.py"
        if not app.is_file() or not app.read_text().endswith(MINE):
            found.append("the user's edit of app.py is lost")
        return found

    def misplaced(self, transaction: Transaction) -> list[str]:
        """Say which models are not where a command that has ended well brings or leaves them."""
        wanted = {"models": True, "unlink": False, "empty": False}.get(transaction.name)
        inside = [path for path in self.models if self.source in path.parents]
        if wanted is None:
            return []
        if wanted:
            return [f"the model {path.name} is not there" for path in self.models if not path.is_file()]
        found = [f"the model {path.name} is still in the app's folder" for path in inside if path.exists()]
        if transaction.name == "empty" and any(self._hub_cache.glob("models--*/blobs/*")):
            found.append("the cache of the hub still has models")
        return found

    def leftovers(self, *, temporary: bool) -> list[str]:
        """Name what a command has left lying about, also in TMPDIR where that is asked for."""
        found = []
        for root, folders, files in os.walk(self.folder):
            if Path(root) == self.folder:
                folders[:] = ["home", "cache", "tmp"]
                continue
            for name in (*folders, *files):
                path = Path(root, name)
                inside = path.relative_to(self.folder)
                is_ours = inside.parts[0] == "cache" and not any(part.endswith(".git") for part in inside.parts)
                is_left = re.search(r"\.(new|partial|patchlock)$|^tmp_|^index\.\d+|^journal$", name)
                is_uvs = inside.parts[2:3] == ("environments",) and len(inside.parts) == 5
                is_stuck = name.endswith(".lock") and not is_ours and not is_uvs and name != "trusted.lock"
                if inside.parts[0] == "tmp":
                    is_left, is_stuck = temporary, False
                if is_left or is_stuck:
                    found.append(str(inside))
        environments = self.installed / "environments"
        if environments.is_dir():
            found += [str(p) for p in environments.iterdir() if not (p / "receipt.toml").is_file()]
        return found

    def size(self) -> int:
        """Count the bytes of home, our cache and uv's."""
        total = 0
        for folder in ("home", "cache", "uv", "tmp"):
            for root, _, files in os.walk(self.folder / folder):
                total += sum(Path(root, file).lstat().st_size for file in files)
        return total


def says(done: Done) -> bool:
    """Tell whether a command that failed said so in one sentence of ours."""
    errors = [line for line in done.stderr.splitlines() if line.startswith("error[")]
    is_bug = "error[bug]" in done.stderr or "Traceback" in done.stderr
    return done.returncode == 1 and len(errors) == 1 and not is_bug


def strike(places: Places, transaction: Transaction, fault: Fault, *, hook: bool, looks_first: bool) -> list[str]:
    """Let a fault come into a command, use what is left, and say all that is wrong."""
    places.put(transaction.state)
    done = places.run(*transaction.words, fault=fault, hook=hook)
    wrong = []
    if not fault.what.startswith("kill") and done.returncode != 0 and not says(done):
        wrong.append(f"it failed with {done.returncode} and no clear sentence: {done.stderr[-600:]}")
    is_removal = re.match(r"unlink|rmdir|os.remove|os.rmdir", done.struck) is not None
    is_killed = fault.what.startswith("kill")
    wrong += after(places, transaction, looks_first=looks_first, temporary=not is_killed)
    if is_removal and not is_killed:  # what the system would not remove is still there
        wrong = [text for text in wrong if not text.startswith("left over: ")]
    return [f"{done.struck}: {text}" for text in wrong]


def after(places: Places, transaction: Transaction, *, looks_first: bool, temporary: bool) -> list[str]:
    """Use an installation in whose middle a command was killed, and say all that is wrong with it.

    Args:
        places: where.
        transaction: the command.
        looks_first: the user runs the app before he repeats the command.
        temporary: nothing may be left in TMPDIR, which the next command does not look at.
    """
    wrong = places.objections(transaction)
    allowed = {transaction.before, transaction.after}
    pointer = places.installed / "current"
    if pointer.exists():
        receipt = places.installed / "environments" / pointer.read_text().strip() / "receipt.toml"
        if not receipt.is_file():
            wrong.append("`current` names a generation without a receipt")
    if looks_first:
        wrong += _runs(places.run("run", "mini"), allowed, "at once")
        wrong += places.objections(transaction)
    again = places.run(*transaction.words)
    if again.returncode != 0 and not says(again):
        wrong.append(f"the next {transaction.name} ended with {again.returncode}: {again.stderr[-400:]}")
    if again.returncode == 1 and transaction.after is not None and transaction.name != "rollback":
        wrong.append(f"the next {transaction.name} did not complete: {again.stderr[-400:]}")
    wrong += places.objections(transaction) + places.misplaced(transaction)
    wrong += _runs(places.run("run", "mini"), {transaction.after}, "after it was repeated")
    if transaction.after is not None:
        verified = places.run("verify", "mini")
        if verified.returncode != 0:
            wrong.append(f"it does not verify: {verified.stdout[-300:]}{verified.stderr[-300:]}")
    if (places.installed / "journal").exists():
        wrong.append("the journal is still there")
    wrong += [f"left over: {path}" for path in places.leftovers(temporary=temporary)]
    return wrong + places.objections(transaction)


def _runs(done: Done, allowed: set[str | None], when: str) -> list[str]:
    if done.returncode == 0 and done.stdout in allowed:
        return []
    if None in allowed and done.returncode == 1 and "error[not-installed]" in done.stderr:
        return []
    return [f"{when} the app does not run as it should: {done.returncode} {done.stdout!r} {done.stderr[-500:]!r}"]


def _is_other(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() != data


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    command = ["cp", "-R", "-P", "-p", str(source), str(target)]
    subprocess.run(command, check=True)


def _publish(upstream: Path, folder: Path) -> None:
    """Make a public repository whose newest commit is a second edition."""
    shutil.copytree(upstream, folder)
    app = folder / "app.py"
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    steps: list[tuple[str, ...]] = [("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "one")]
    for words in steps:
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True)
    app.write_bytes(app.read_bytes().replace(b"EDITION = 1", b"EDITION = 2"))
    subprocess.run(["git", "-C", str(folder), *identity, "commit", "-q", "-a", "-m", "two"], check=True)
