"""What the pure rooms do, all of it, with every door to the machine shut; a program of its own, see `test_pure_rooms`.

It works twice: the first time loads what is imported late; the second time, with nothing remembered, an audit hook lets
no file be opened, no program started, nobody asked. It prints which ops and postconditions have worked behind the hook.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import hashlib
import importlib
import json
import pkgutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import ruamel.yaml
from packaging.utils import NormalizedName
from packaging.version import Version

import patchlock.model
import patchlock.patches
from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model import gpu_archs, lockfile, platforms
from patchlock.model.identities import CommitId, Sha256
from patchlock.model.lockfile import Lock, LockedPackage, Provenance
from patchlock.model.patch import Patch
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import (
    engine,
    outcomes,
    requirement_sources,
    requirements_for_locks,
    resolver_files,
    targets,
    trials,
)
from patchlock.patches.postconditions import ENSURES
from patchlock.patches.trials import Case

Example = tuple[str, str, str, str]
"""A patch's keys, its postconditions, its file, and the file's content."""
SHUT = {"import", "open", "exec"}
"""Events of the audit hook; `compile` is how `ast.parse` is told."""
SHUT_FAMILIES = {"ctypes", "ftplib", "glob", "http", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile"}
DONE_DIFF = "--- a/a.sh\n+++ b/a.sh\n@@ -1,2 +1,2 @@\n first\n-cuda\n+cpu\n"
NEW = hashlib.sha256(b"new\n").hexdigest()
EXAMPLES: tuple[Example, ...] = (
    (
        'op = "set-requirement"\nname = "av"\nspecifier = ">=12"',
        '{ check = "requirement", name = "av", specifier = ">=12" }',
        "requirements.txt",
        "av==11  # c\nnumpy\n",
    ),
    (
        'op = "drop-requirement"\nname = "av"',
        '{ check = "no-requirement", name = "av" }',
        "pyproject.toml",
        '[project]\nname = "a"\ndependencies = ["av==11", "numpy"]\n',
    ),
    (
        'op = "add-requirement"\nrequirement = "av>=12"',
        '{ check = "requirement", name = "av", specifier = ">=12" }',
        "setup.py",
        'from setuptools import setup\nsetup(name="a", install_requires=["numpy"])\n',
    ),
    (
        'op = "rename-requirement"\nname = "av"\nto = "pyav"',
        '{ check = "no-requirement", name = "av" }',
        "environment.yml",
        "dependencies:\n  - python=3.11\n  - pip:\n      - av==11\n",
    ),
    (
        'op = "set-key"\nkey = ["a", "device"]\nvalue = \'"cpu"\'',
        '{ check = "key", key = ["a", "device"], value = \'"cpu"\' }',
        "a.toml",
        '[a]\ndevice = "cuda"  # c\n',
    ),
    ('op = "delete-key"\nkey = ["a", "b"]', '{ check = "no-key", key = ["a", "b"] }', "a.yaml", "a:\n  b: 1\n  c: 2\n"),
    ('op = "delete-key"\nkey = ["a"]', '{ check = "no-key", key = ["a"] }', "a.json", '{"a": 1, "b": [2]}\n'),
    (
        'op = "optional-import"\npackage = "deepspeed"',
        '{ check = "imports-without", package = "deepspeed" }',
        "a.py",
        "from deepspeed.a import B\n",
    ),
    (
        'op = "neutralise-call"\ncall = "run($*a)"',
        '{ check = "no-call", callee = "run" }',
        "a.py",
        "def f():\n    return run(1)\n",
    ),
    (
        'op = "replace-expression"\npattern = \'"cuda"\'\nreplacement = \'"cpu"\'',
        '{ check = "no-string", value = "cuda" }',
        "a.py",
        'x = "cuda"\n',
    ),
    (
        'op = "replace-expression"\npattern = "old($x)"\nreplacement = "new($x)"',
        '{ check = "calls", callee = "new" }',
        "a.ipynb",
        json.dumps({"cells": [{"cell_type": "code", "source": ["%pip list\n", "old(1)\n"]}], "nbformat": 4}),
    ),
    (
        'op = "set-argument"\ncall = "load"\nargument = "device"\nvalue = \'"cpu"\'',
        '{ check = "argument", callee = "load", argument = "device", value = \'"cpu"\' }',
        "a.py",
        "m = load(a,\n         b)\n",
    ),
    (
        'op = "disable-function"\nfunction = "install"',
        '{ check = "disabled", function = "install" }',
        "a.py",
        "def install():\n    fetch()\n",
    ),
    (
        'op = "guard-entry"\nfunction = "f"\ncondition = "not x"\nreturns = "0"',
        '{ check = "guarded", function = "f", condition = "not x" }',
        "a.py",
        "def f(x):\n    return use(x)\n",
    ),
    (
        'op = "insert-statement"\nstatement = "$m.eval()"\nbelow = "$m = load($*r)"',
        '{ check = "has-statement", statement = "m.eval()", after = "load" }',
        "a.py",
        "m = load(1)\n",
    ),
    (
        'op = "replace-expression"\npattern = "f(1)"\nreplacement = "f(2)"',
        '{ check = "has-expression", expression = "f(2)" }',
        "a.py",
        "x = f(1)\n",
    ),
    (
        'op = "device-literals"',
        '{ check = "without-cuda" }',
        "a.py",
        "import torch\nd = torch.device('cuda:0')\nx = x.to(f\"cuda:{i}\")\n",
    ),
    (
        'op = "run-time-pip"',
        '{ check = "no-run-time-pip" }',
        "a.py",
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'x'])\n",
    ),
    ('op = "replace-text"\nold = "cuda"\nnew = "cpu"', '{ check = "contains", text = "cpu" }', "a.sh", "first\ncuda\n"),
    (f"op = \"unified-diff\"\ndiff = '''{DONE_DIFF}'''", '{ check = "lacks", text = "cuda" }', "a.sh", "first\ncuda\n"),
    (
        'op = "add-file"\ncontent = "new\\n"',
        f'{{ check = "file-is", sha256 = "{NEW}" }}',
        "new.txt",
        "",
    ),
)
CODEMOD = 'op = "codemod"\nmodule = "a.py"\ncommand = "A"', '{ check = "lacks", text = "a" }', "a.py"
"""The one op that does nothing by itself: the catalogue binds it to a program, and unbound it refuses."""
BROKEN = (b"\xff\xfea\x00", b"\xefcuda", b"def f(:\n", "x = 'cuda'".encode("utf-16"), b'{"cells": 1}')
FORMATS = ("a.py", "a.toml", "a.yaml", "a.json", "setup.cfg", "setup.py", "requirements.txt", "a.ipynb")


def read(keys: str, checks: str, path: str) -> Patch:
    """Read one patch, as the catalogue has it."""
    text = f'[[patch]]\nid = "one"\nwhy = "w"\nsource = "s"\npaths = ["{path}"]\n{keys}\nensure = [{checks}]\n'
    report = Report(file="app.toml", text=text)
    (patch,) = _apps_and_profiles.patches(Table(tomllib.loads(text), report), None)
    assert report.problems == [], report.problems
    return patch


def again(patch: Patch) -> Patch:
    """Make a patch anew, so that what its op and postconditions do when they are made is done again."""
    remake = dataclasses.replace
    return remake(patch, op=remake(patch.op), ensures=tuple(remake(one) for one in patch.ensures))  # type: ignore[type-var]


def patch_one(patch: Patch, path: str, text: str) -> None:
    """Let a patch do its work on one file: applied, tried as a case, judged, and told."""
    before = {PurePosixPath(path): text.encode()} if text else {}
    patched = engine.apply((patch,), before)
    assert patched.changes, patch
    assert not patched.failures, patched.failures
    engine.require_complete(patched, "here")
    after = {change.path: change.after for change in patched.changes}
    assert trials.problems_of_case(patch, Case(patch=patch.id, name="c", before=before, after=after, outcome="")) == ()
    assert trials.problems_together((patch,), before) == ()
    assert not trials.verdicts((patch,), before, {})[patch.id].is_silent
    assert outcomes.diff(patched.changes)
    assert outcomes.counted(patched.outcomes)
    for ensure in patch.ensures:  # a check that holds, and one that does not
        for name, data in after.items():
            assert not ensure.problems(name, data)
            ensure.problems(name, text.encode())


def patch_files(patches: Sequence[Patch]) -> None:
    """Let each patch work, refuse and fail; let the engine find a file that has moved."""
    for patch, (_, _, path, text) in zip(patches, EXAMPLES, strict=False):
        patch_one(again(patch), path, text)
    for patch in patches:
        for path in FORMATS:
            for data in BROKEN:
                made = dataclasses.replace(again(patch), paths=(path,))
                engine.apply((made,), {PurePosixPath(path): data})
                for ensure in made.ensures:
                    ensure.problems(PurePosixPath(path), data)
    (replace,) = (again(patch) for patch in patches if patch.op_name == "replace-text")
    moved = dataclasses.replace(replace, paths=("gone.sh",), literal=("cuda",))
    elsewhere = {PurePosixPath("b/gone.sh"): b"first\ncuda\n"}
    assert targets.candidates((moved,), elsewhere) == (PurePosixPath("b/gone.sh"),)
    assert engine.apply((moved,), elsewhere, {PurePosixPath("gone.sh"): b"first\ncuda\n"}).outcomes


def read_requirements() -> None:
    """Read what a lock is asked for."""
    path = PurePosixPath("requirements.txt")
    text = b"-r more.txt\nav[x]>=12; python_version > '3'\n-e .\ngit+https://index.test/a.git\nnumpy == 1.0\n"
    source = decode(path, text)
    assert isinstance(source, SourceText)
    lines = requirement_sources.lines(source)
    assert list(requirements_for_locks.objections(source, lines))
    pinned = b"a @ https://index.test/a.whl#sha256=" + b"a" * 64
    asked = requirements_for_locks.read_all((path,), {path: b"-r more.txt\n", PurePosixPath("more.txt"): pinned})
    assert requirements_for_locks.pins(asked)
    assert resolver_files.write_out(asked)


def read_lock() -> None:
    """Write a lock, read it, and look whether it is as it was sealed, and stale."""
    digest = Sha256("a" * 64)
    name = NormalizedName("av")
    commit = CommitId("0123456789abcdef0123456789abcdef01234567")
    provenance = Provenance(
        app="demo",
        profile="cpu",
        platform="linux-x86_64",
        python="3.11",
        commit=commit,
        as_of="2026-01-01T00:00:00Z",
        newer={},
        uv="0.13.1",
        patches=("one",),
        inputs={"profiles/cpu.toml": digest},
        resolver_input=digest,
    )
    package = LockedPackage(name=name, version=Version("12.0"), url="", sha256=digest, why="requirements.txt:1")
    text = lockfile.render(Lock(provenance=provenance, packages=(package,)))
    lock = lockfile.parse(text, "here.txt")
    lockfile.require_sealed(lock, "here.txt", "lock again")
    assert lockfile.staleness_reasons(lock, commit=commit, python="3.12", inputs={})
    for platform in platforms.PLATFORMS.values():
        assert platforms.wheel_rank(platform, Version("3.11"))
    assert gpu_archs.runs({"sm_80"}, "sm_89")


def forget() -> None:
    """Empty every memory of ours, so that nothing is known from the first time."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__.startswith("patchlock."):
            one.cache_clear()


def work(patches: Sequence[Patch]) -> None:
    """Do all of it."""
    patch_files(patches)
    read_requirements()
    read_lock()


def shut(event: str, arguments: tuple[object, ...]) -> None:
    """Let nothing out."""
    if event in SHUT or event.partition(".")[0] in SHUT_FAMILIES:
        raise PermissionError(f"a pure room does I/O: {event} {arguments}")


def main() -> None:
    """Import all of the pure rooms, work once, shut the doors, work again."""
    for room in (patchlock.model, patchlock.patches):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    patches = [read(keys, checks, path) for keys, checks, path, _ in EXAMPLES]
    patches.append(read(*CODEMOD))
    work(patches)
    forget()
    # The one exception: each reader of ruamel.yaml searches the library's own folder for plug-ins, of which it has none.
    ruamel.yaml.YAML.official_plug_ins = lambda _: []  # type: ignore[method-assign]
    sys.addaudithook(shut)
    work(patches)
    try:
        Path(__file__).read_bytes()
    except PermissionError:
        made = {type(ensure) for patch in patches for ensure in patch.ensures}
        ops = sorted({patch.op_name for patch in patches})
        print(json.dumps({"ops": ops, "checks": sorted(str(ENSURES.word_of(one)) for one in made)}))


if __name__ == "__main__":
    main()
