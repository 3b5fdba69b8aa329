"""Edits that become patches: which op for which edit, what is said clearly, and that the patches give the edited tree."""

from __future__ import annotations

import json
import tomllib
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_engine import patches

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.authoring import assembly, drafts, writing
from patchlock.catalogue.authoring.files import Likeness
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.patch import OutcomeKind, Patch
from patchlock.patches import engine, trials


def read_back(authored: assembly.Authored, known: tuple[Patch, ...] = ()) -> tuple[Patch, ...]:
    """Write the patches as TOML and read them as the catalogue does."""
    text = writing.tables(authored.patches)
    writing.require_readable(text, authored.patches, known)
    report = Report(file="app.toml", text="")
    patches = _apps_and_profiles.patches(Table(tomllib.loads(text), report), None, known)
    assert report.problems == []
    return patches


def author(before: dict[str, str], after: dict[str, str]) -> tuple[assembly.Authored, dict[str, str]]:
    """Say edits as patches, and give what these patches, read from TOML, make of upstream."""
    old, new = ({PurePosixPath(path): text.encode() for path, text in files.items()} for files in (before, after))
    authored = assembly.author(old, new)
    patches = read_back(authored)
    patched = engine.apply(patches, old)
    assert patched.failures == ()
    assert {outcome.kind for outcome in patched.outcomes} <= {OutcomeKind.NEEDED, OutcomeKind.PARTLY_FIXED}
    made = old | {change.path: change.after for change in patched.changes}
    assert engine.incomplete(engine.apply(patches, new)) == set(), "the edited files are known as done"
    return authored, {str(path): data.decode() for path, data in made.items()}


def only(path: str, before: str, after: str) -> tuple[list[str], Likeness, str]:
    authored, made = author({path: before}, {path: after})
    return [one.patch.op_name for one in authored.patches], authored.files[PurePosixPath(path)], made[path]


def notebook(*cells: str) -> str:
    """Write a notebook as Jupyter does."""
    listed = [{"cell_type": "code", "metadata": {}, "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


@pytest.mark.parametrize(
    ("path", "before", "after", "ops"),
    [
        pytest.param("requirements.txt", "a==1\nb\n", "a==2\nb\n", ["set-requirement"], id="pin-changed"),
        pytest.param("requirements.txt", "a==1 # x\nb\n", "b\n", ["drop-requirement"], id="dropped"),
        pytest.param("requirements.txt", "b\n", "b\nc>=1\n", ["add-requirement"], id="added"),
        pytest.param("requirements.txt", "b\n", "a==1\na==2\n", ["unified-diff"], id="added-twice"),
        pytest.param("requirements/gpu.in", "x-gpu==1\nb\n", "x>=1\nb\n", ["rename-requirement"], id="renamed"),
        pytest.param(
            "requirements.txt",
            "a==1\n-r b.txt\n",
            "a==2\n-r c.txt\n",
            ["set-requirement", "unified-diff"],
            id="and-an-option",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nname = "x"\ndependencies = ["a==1", "b"]\n',
            '[project]\nname = "x"\ndependencies = ["a==2", "b"]\n',
            ["set-requirement"],
            id="pin-in-pyproject",
        ),
        pytest.param(
            "setup.cfg",
            "[options]\ninstall_requires =\n    a==1\n    b\n",
            "[options]\ninstall_requires =\n    b\n",
            ["drop-requirement"],
            id="dropped-from-setup-cfg",
        ),
        pytest.param(
            "environment.yml",
            "dependencies:\n  - python=3.10\n  - pip:\n    - a==1\n",
            "dependencies:\n  - python=3.10\n  - pip:\n    - a==2\n    - c>=1\n",
            ["set-requirement", "add-requirement"],
            id="conda",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nname = "x"\nversion = "1"\ndependencies = ["a==1"]\n',
            '[project]\nname = "x"\nversion = "2"\ndependencies = ["a==2"]\n',
            ["set-requirement", "set-key"],
            id="pin-and-more-in-pyproject",
        ),
        pytest.param("notes.txt", "a==1\n", "a==2\n", ["unified-diff"], id="no-requirement-file"),
        pytest.param(
            "m.py", 'x = "cuda"\ny = "cuda"\n', 'x = "cpu"\ny = "cpu"\n', ["replace-expression"], id="everywhere"
        ),
        pytest.param(
            "m.py",
            'x = f("cuda")\ny = g("cuda")\n',
            'x = f("cpu")\ny = g("cuda")\n',
            ["replace-expression"],
            id="one-of-two-by-what-is-around-it",
        ),
        pytest.param(
            "m.py",
            'def a():\n    return f("cuda")\n\n\nclass B:\n    def c(self):\n        return f("cuda")\n',
            'def a():\n    return f("cuda")\n\n\nclass B:\n    def c(self):\n        return f("cpu")\n',
            ["replace-expression"],
            id="one-of-two-by-its-function",
        ),
        pytest.param("m.py", "x = run(a, 1)\n", "x = None\n", ["neutralise-call"], id="call-becomes-a-value"),
        pytest.param("m.py", "x = y.load(1)\n", "x = y.loads(1)\n", ["replace-expression"], id="another-callee"),
        pytest.param(
            "m.py", "def f(a=1):\n    pass\n", "def f(a=2):\n    pass\n", ["replace-expression"], id="default"
        ),
        pytest.param(
            "m.py",
            'x = "cuda"\n# a\n',
            'x = "cpu"\ndef f():\n    pass\n',
            ["insert-statement", "replace-expression", "unified-diff"],
            id="and-more",
        ),
        pytest.param(
            "m.py", "x = 1\nrun(\n    1,\n)\n", "x = 1\n", ["unified-diff"], id="a-call-of-several-lines-removed"
        ),
        pytest.param("m.py", "x = 1\n", "x = 1\nimport a\n", ["insert-statement"], id="a-new-statement"),
        pytest.param(
            "m.py",
            "def f(a):\n    x = a\n    return x\n",
            "def f(a):\n    x = a\n    x = g(\n        x\n    )\n    return x\n",
            ["insert-statement"],
            id="a-new-statement-of-several-lines-in-a-function",
        ),
        pytest.param(
            "m.py",
            'def f(a):\n    """D."""\n    return a\n\n\nimport b\n',
            'def f(a):\n    """D."""\n    if a is None:\n        return 0\n    return a\n',
            ["guard-entry", "unified-diff"],
            id="an-early-return-and-more",
        ),
        pytest.param(
            "m.py",
            "def f(a):\n    return a\n",
            'def f(a):\n    if not a:\n        raise ValueError("no")\n    return a\n',
            ["guard-entry"],
            id="an-early-raise",
        ),
        pytest.param(
            "conf.yaml",
            "model:\n  device: cuda  # the card\n  old: 1\n  parts:\n    - a\n    - b\n",
            "model:\n  device: cpu  # the card\n  parts:\n    - a\n",
            ["delete-key", "set-key", "delete-key"],
            id="keys-of-yaml",
        ),
        pytest.param(
            "conf.json",
            '{\n  "a": 1,\n  "b": [{"name": "x", "c": 1}]\n}\n',
            '{\n  "a": 2,\n  "b": [{"name": "x", "c": 1, "d": "y"}]\n}\n',
            ["set-key", "set-key"],
            id="keys-of-json",
        ),
        pytest.param(
            "conf.toml",
            "[a]\nx = 1\ny = [1, 2]\n",
            "# new\n[a]\nx = 1\ny = [1, 2, 3]\n",
            ["set-key", "unified-diff"],
            id="keys-of-toml-and-a-comment",
        ),
        pytest.param(
            "setup.cfg",
            "[options]\ninstall_requires =\n    a==1\n[tool:x]\ny = 1\n",
            "[options]\ninstall_requires =\n    a==2\n[tool:x]\ny = 2\n",
            ["set-requirement", "unified-diff"],
            id="pin-and-more-in-setup-cfg",
        ),
        pytest.param(
            "n.ipynb",
            notebook('device = "cuda"\nmodel = load(device)\n', "!pip install x\n"),
            notebook('device = "cpu"\nmodel = load(device)\nmodel.eval()\n', "!pip install y\n"),
            ["insert-statement", "replace-expression", "unified-diff"],
            id="code-of-a-notebook-and-its-shell",
        ),
        pytest.param(
            "ci.yml",
            "steps:\n  - name: a\n    uses: x@1\n  - name: b\n    uses: y@1\n",
            "steps:\n  - name: b\n    uses: y@2\n    with: {}\n",
            ["delete-key", "set-key", "set-key"],
            id="items-by-their-names",
        ),
        pytest.param("m.py", "x = 1\n# a\n", "x = 1\n# b\n", ["unified-diff"], id="a-comment"),
        pytest.param(
            "m.py",
            'x = "a"\ny = "b"\n',
            'x = "b"\ny = "c"\n',
            ["replace-expression", "unified-diff"],
            id="what-one-op-makes-another-would-change",
        ),
        pytest.param("m.py", "x = (\n", "x = [\n", ["unified-diff"], id="does-not-parse"),
        pytest.param("m.py", "a\nb\n", "a\nb", ["unified-diff"], id="the-last-newline"),
        pytest.param("run.bat", "a\r\nb\r\n", "a\r\nc\r\nb\r\n", ["unified-diff"], id="crlf"),
        pytest.param("run.sh", "a\n'''\n\tb\n", "a\n'''\n\tc\\d\"\n", ["unified-diff"], id="quotes-in-toml"),
        pytest.param("m.py", "", "a = 1\n", ["add-file"], id="an-empty-file"),
        pytest.param("m.py", "", "\n", ["add-file"], id="a-blank-line"),
    ],
)
def test_edit_becomes_ops_that_give_the_same_bytes(path: str, before: str, after: str, ops: list[str]) -> None:
    assert only(path, before, after) == (ops, Likeness.BYTES, after)


@pytest.mark.parametrize(
    ("path", "before", "after", "ops"),
    [
        pytest.param(
            "requirements.txt", "a==1 # x\n", "a==2 # y\n", ["set-requirement"], id="comment-of-a-requirement"
        ),
        pytest.param("requirements.txt", "b\n", "b\nc>=1,<2\n", ["add-requirement"], id="clauses-in-another-order"),
        pytest.param("m.py", "x = g(1)\ny = 2\n", "x = g(3)\n\ny = 2\n", ["replace-expression"], id="and-a-blank-line"),
        pytest.param(
            "m.py",
            "x = load(p('a.pth', d))\ny = load(p('b'))\n",
            'x = load(p("a.pth", d), where="cpu")\ny = load(p(\'b\'))\n',
            ["unified-diff"],
            id="other-quotes-in-a-changed-line",
        ),
        pytest.param(
            "m.py",
            "x = 'cuda'\n",
            "x  = 'cpu'\n",
            ["unified-diff"],
            id="a-value-that-stands-anywhere-in-another-layout",
        ),
        pytest.param(
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=['a', 'b', 'c'])\n",
            "from setuptools import setup\nsetup(install_requires=['b >=2,<3', 'c'])\n",
            ["unified-diff"],
            id="dropped-and-bounded-in-one-line",
        ),
        pytest.param(
            "setup.cfg",
            "[options]\ninstall_requires =\n    a==1\n[x]\n",
            "[options]\ninstall_requires =\n    a==2\n\n[x]\n",
            ["set-requirement"],
            id="a-blank-line-in-setup-cfg",
        ),
        pytest.param(
            "m.py",
            "import deepspeed as ds, os\nfrom deepspeed import a\n\n\ndef f():\n    return ds\n",
            "import os\ntry:\n    import deepspeed as ds\n    from deepspeed import a\nexcept ImportError:\n    ds = a = None\n\n\n"
            "def f():\n    return ds\n",
            ["unified-diff"],
            id="guards-in-another-order",
        ),
        pytest.param(
            "m.py",
            "import os\nimport deepspeed\n\n\ndef f():\n    deepspeed.init()\n",
            "import os\ntry:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n\n\ndef f():\n    deepspeed.init()\n",
            ["optional-import"],
            id="import-in-a-try",
        ),
        pytest.param(
            "m.py",
            "import deepspeed\n\n\ndef f():\n    return deepspeed is not None\n",
            "try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n\n\ndef f():\n    return deepspeed is not None\n",
            ["unified-diff"],
            id="import-in-a-try-whose-absence-is-asked-for",
        ),
        pytest.param(
            "m.py",
            "def f():\n    run(1)\n    return 2\n",
            "def f():\n    return 2\n",
            ["unified-diff"],
            id="call-removed",
        ),
        pytest.param(
            "m.py", "def f():\n    run(1)\n", "def f():\n    pass\n", ["unified-diff"], id="call-becomes-pass"
        ),
        pytest.param(
            "ci.yml",
            "jobs:\n  a:\n    push: true\n    tags: x\n",
            "jobs:\n  a:\n    push: true\n    sbom: true\n    tags: x\n",
            ["set-key"],
            id="new-key-between-others",
        ),
        pytest.param(
            "ci.yml",
            "on:\n  push: {}\njobs: x\n",
            "on:\n  push: {}\n  pull_request:\n    branches:\n      - main\njobs: x\n",
            ["set-key"],
            id="new-key-with-a-block",
        ),
        pytest.param(
            "pyproject.toml",
            '[project]\nname = "x"\ndependencies = [\n    "a",\n    "c",\n]\n',
            '[project]\nname = "x"\ndependencies = [\n    "a",\n    "b>=1, <2",\n    "c",\n]\n',
            ["add-requirement"],
            id="requirement-in-the-middle-of-a-project",
        ),
        pytest.param(
            "n.ipynb",
            notebook('device = "cuda"\n'),
            notebook('device = "cpu"\n').replace('"metadata": {},\n   "source"', '"metadata": {"x": 1},\n   "source"'),
            ["replace-expression"],
            id="notebook-that-was-run",
        ),
    ],
)
def test_edit_becomes_ops_that_mean_the_same(path: str, before: str, after: str, ops: list[str]) -> None:
    found, likeness, made = only(path, before, after)
    assert found == ops
    assert likeness is (Likeness.BYTES if ops == ["unified-diff"] else Likeness.MEANING)
    assert made != before


PROJECT = (
    '[project]\nname = "x"\ndependencies = [\n    "boto3",\n    "numpy>=1",\n    "transformers",\n    "tqdm",\n]\n'
)
POETRY = '[tool.poetry.dependencies]\npython = "^3.10"\nx = {version = "^4", extras = ["a", "b"]}\n'
GROUPS = '[dependency-groups]\ndev = ["a", {include-group = "x"}, "b"]\nx = ["c"]\n'
SETUP = 'setup(name="x", install_requires=["boto3", "transformers", "tqdm"])\n'
CONDA = "dependencies:\n  - numpy\n  - pip:\n    - boto3\n    - transformers\n"
ITEMS = "a:\n  - x\n  - y\nb:\n  - uses: p\n    with: 1\n  - uses: q\n    with: 1\n"


@pytest.mark.parametrize(
    ("path", "upstream", "edits", "moved", "wanted"),
    [
        pytest.param(
            "pyproject.toml",
            PROJECT,
            [('"transformers"', '"transformers>=4.31,<5"'), ('    "boto3",\n', "")],
            [('    "boto3"', '    "aiohttp",\n    "boto3"')],
            '"aiohttp", "numpy>=1", "transformers<5,>=4.31", "tqdm"',
            id="range-and-dropped",
        ),
        pytest.param(
            "pyproject.toml",
            PROJECT,
            [('"transformers"', '"transformers[torch]>=4.31,<5"')],
            [('    "boto3",\n', "")],
            '"numpy>=1", "transformers[torch]<5,>=4.31", "tqdm"',
            id="extras",
        ),
        pytest.param(
            "pyproject.toml",
            PROJECT,
            [('"transformers"', "\"transformers; sys_platform == 'linux'\"")],
            [('    "boto3",\n', "")],
            '"numpy>=1", "transformers; sys_platform == \'linux\'", "tqdm"',
            id="marker",
        ),
        pytest.param(
            "pyproject.toml",
            PROJECT.replace('"transformers"', '"transformers[torch]"'),
            [("[torch]", "")],
            [('    "boto3",\n', "")],
            '"numpy>=1", "transformers", "tqdm"',
            id="extras-gone",
        ),
        pytest.param(
            "pyproject.toml",
            '[build-system]\nrequires = ["setuptools", "torch"]\n',
            [('"torch"', '"torch>=2,<3"')],
            [('"setuptools"', '"wheel", "setuptools"')],
            '"wheel", "setuptools", "torch<3,>=2"',
            id="one-line-of-build-requirements",
        ),
        pytest.param(
            "pyproject.toml",
            GROUPS,
            [('"b"', '"b>=1,<2"')],
            [('"a"', '"z", "a"')],
            '"z", "a", {include-group = "x"}, "b>=1,<2"',
            id="group",
        ),
        pytest.param(
            "pyproject.toml",
            POETRY,
            [('"b"]', '"c"]')],
            [('["a"', '["z", "a"')],
            'extras = ["z", "a", "c"]',
            id="extras-of-poetry",
        ),
        pytest.param(
            "requirements.txt",
            "# base\nboto3\ntransformers>=4  # models\n",
            [("transformers>=4", "transformers[torch]>=4.31,<5")],
            [("boto3", "aiohttp\nboto3")],
            "# base aiohttp boto3 transformers[torch]<5,>=4.31  # models",
            id="extras-in-a-requirement-file",
        ),
        pytest.param(
            "setup.py",
            SETUP,
            [('"transformers"', '"transformers<5,>=4.31"'), ('"boto3", ', "")],
            [('"boto3"', '"aiohttp", "boto3"')],
            '"aiohttp", "transformers<5,>=4.31", "tqdm"',
            id="setup-py",
        ),
        pytest.param(
            "environment.yml",
            CONDA,
            [("transformers", "transformers>=4.31,<5"), ("numpy", "numpy>=1.2,<2")],
            [("- boto3", "- aiohttp\n    - boto3")],
            "- numpy<2,>=1.2 - pip: - aiohttp - boto3 - transformers<5,>=4.31",
            id="conda",
        ),
        pytest.param(
            "conf.yaml",
            ITEMS,
            [("- y", "- z"), ("q\n    with: 1", "q\n    with: 2")],
            [("- x", "- v\n  - x"), ("- uses: p", "- uses: o\n    with: 1\n  - uses: p")],
            "- v - x - z b: - uses: o with: 1 - uses: p with: 1 - uses: q with: 2",
            id="items-of-lists",
        ),
    ],
)
def test_edit_of_a_list_means_its_item_wherever_upstream_moves_it(
    path: str, upstream: str, edits: list[tuple[str, str]], moved: list[tuple[str, str]], wanted: str
) -> None:
    def changed(changes: list[tuple[str, str]]) -> bytes:
        text = upstream
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return text.encode()

    file = PurePosixPath(path)
    patches = read_back(assembly.author({file: upstream.encode()}, {file: changed(edits)}))
    assert trials.problems_together(patches, {file: upstream.encode()}) == ()
    patched = engine.apply(patches, {file: changed(moved)})
    assert patched.failures == ()
    (change,) = patched.changes
    assert " ".join(wanted.split()) in " ".join(change.after.decode().split())


def test_item_that_upstream_changed_too_is_refused_and_no_other_is_overwritten() -> None:
    file = PurePosixPath("conf.yaml")
    patches = read_back(assembly.author({file: b"a: [x, y]\n"}, {file: b"a: [x, z]\n"}))
    patched = engine.apply(patches, {file: b"a: [x, w, v]\n"})
    assert patched.changes == ()
    assert [outcome.kind for outcome in patched.outcomes] == [OutcomeKind.AMBIGUOUS]


def test_what_the_file_has_already_is_not_written_again() -> None:
    path, new = PurePosixPath("m.py"), b"x = load(2)\ny = start(2)\n"
    before = {path: b"x = load(1)\ny = start(1)\n"}
    first = read_back(assembly.author(before, {path: b"x = load(2)\ny = start(1)\n"}))
    unrelated = read_back(assembly.author(before, {path: b"x = load(3)\ny = start(1)\n"}, "other"))
    known = (*first, *unrelated)
    rest = assembly.author(before, {path: new}, taken={one.id for one in known}, known=known)
    assert rest.known == tuple(one.id for one in first)
    assert [one.patch.after for one in rest.patches] == [("load-2",)], "it would change that one's place too"
    both = (*first, *read_back(rest, known))
    patched = engine.apply(both, before)
    assert [change.after for change in patched.changes] == [new]
    assert trials.problems_together(both, before) == ()
    assert assembly.author(before, {path: new}, known=both).patches == ()


CPU = """
op = "replace-expression"
paths = ["m.py"]
pattern = '"cuda"'
replacement = '"cpu"'
ensure = [{ check = "no-string", value = "cuda" }]
"""


def test_edit_that_patches_of_some_profiles_make_is_written_for_all() -> None:
    path = PurePosixPath("m.py")
    edit = {path: b'x = load("cuda")\n'}, {path: b'x = load("cpu")\n'}
    metal = CPU.replace('"cpu"', '"mps"')
    known = patches(**{"on-cpu": f'profiles = ["cpu"]{CPU}', "on-metal": f'profiles = ["mps-macos"]{metal}'})
    made = assembly.author(*edit, known=known)
    assert (made.known, [one.patch.op_name for one in made.patches]) == ((), ["replace-expression"])
    assert assembly.author(*edit, known=known, profile="cpu").known == ("on-cpu",), "the tree has that patch"


@pytest.mark.parametrize("known", [(), patches(cpu=CPU)], ids=["of-this-run", "that-was-there"])
def test_lines_that_other_patches_change_are_no_context_of_a_diff(known: tuple[Patch, ...]) -> None:
    path = PurePosixPath("m.py")
    upstream = 'def f():\n    a = load("cuda")  # one\n    # two\n    b = 1\n    c = 2\n'
    edited = upstream.replace("cuda", "cpu").replace("    b = 1\n", "")
    made = read_back(assembly.author({path: upstream.encode()}, {path: edited.encode()}, known=known), known)
    newer, wanted = (text.replace("# one", "# a card") for text in (upstream, edited))
    patched = engine.apply((*known, *made), {path: newer.encode()})
    assert (patched.failures, [change.after.decode() for change in patched.changes]) == ((), [wanted])


RUN = "#!/bin/sh\n" + "".join(f"step {n}\n" for n in range(20))


@pytest.mark.parametrize(
    "upstreams",
    [
        pytest.param("own step 4\n", id="adopted"),
        pytest.param("our own step 4\n", id="adopted-in-its-own-way"),
    ],
)
def test_edit_that_upstream_adopts_does_not_stop_the_others(upstreams: str) -> None:
    path = PurePosixPath("run.sh")
    edited = RUN
    for n in (2, 4, 15):
        edited = edited.replace(f"step {n}\n", f"own step {n}\n")
    patches = read_back(assembly.author({path: RUN.encode()}, {path: edited.encode()}))
    assert [(patch.id, patch.after) for patch in patches] == [("run-by-text", ()), ("run-by-text-2", ())]
    assert trials.problems_together(patches, {path: RUN.encode()}) == ()
    newer = RUN.replace("step 4\n", upstreams)
    patched = engine.apply(patches, {path: newer.encode()})
    wanted = newer.replace("step 15\n", "own step 15\n")
    if upstreams == "own step 4\n":
        assert (patched.failures, engine.incomplete(patched)) == ((), set())
        wanted = edited
    else:
        assert engine.incomplete(patched) == {"run-by-text"}
    assert [change.after.decode() for change in patched.changes] == [wanted]


def test_early_return_beside_another_edit_is_said_by_its_op() -> None:
    before = "import q\n\n\ndef install(a):\n    run(a)\n"
    found, likeness, made = only("m.py", before, "def install(a):\n    return None\n    run(a)\n")
    assert (found, likeness) == (["disable-function", "unified-diff"], Likeness.SHORTER)
    assert made == "def install(a):\n    return None\n"


def test_changed_argument_is_told_by_its_call_and_not_by_a_value_that_stands_anywhere() -> None:
    before = "demo.queue(\n    max_size=5,\n).launch(share=True)\nx = [True]\n"
    authored, made = author({"m.py": before}, {"m.py": before.replace("share=True", "share=False")})
    (one,) = authored.patches
    assert (one.patch.op_name, one.patch.op.call) == ("set-argument", "$object.launch($*arguments)")
    assert one.ensures[0][0] == "argument"
    assert made["m.py"] == before.replace("share=True", "share=False")


@pytest.mark.parametrize(
    ("after", "within"),
    [
        pytest.param('def a():\n    return f("cpu")\n\n\ndef b():\n    return 1\n', ("a",), id="in-one-function"),
        pytest.param('def a():\n    return f("cpu")\n\n\ndef b():\n    return f("cpu")\n', (), id="in-all-of-them"),
    ],
)
def test_pattern_says_the_one_function_that_was_edited(after: str, within: tuple[str, ...]) -> None:
    before = after.replace("cpu", "cuda")
    authored, _ = author({"m.py": before}, {"m.py": after})
    assert [one.patch.op.within for one in authored.patches] == [within]


def test_function_that_returns_at_once_is_disabled_where_there_is_such_an_op() -> None:
    from patchlock.patches.ops import OPS

    before = "def f(a):\n    x = install(a)\n    return x\n"
    found, likeness, _ = only("m.py", before, "def f(a):\n    return None\n    x = install(a)\n    return x\n")
    if "disable-function" in OPS:
        assert (found, likeness) == (["disable-function"], Likeness.SHORTER)
    else:
        assert (found, likeness) == (["unified-diff"], Likeness.BYTES)


def test_argument_that_calls_got_is_set_where_there_is_such_an_op() -> None:
    from patchlock.patches.ops import OPS

    after = 'x = torch.load(p, map_location="cpu")\ny = torch.load(q, 1, map_location="cpu")\n'
    found, likeness, made = only("m.py", "x = torch.load(p)\ny = torch.load(q, 1)\n", after)
    assert found == (["set-argument"] if "set-argument" in OPS else ["replace-expression"] * 2)
    assert (likeness, made) == (Likeness.BYTES, after)


def test_one_change_in_several_files_is_one_patch() -> None:
    before = {f"{name}.py": f'# {name}\nx = "cuda"\n' for name in "abc"}
    authored, made = author(before, {path: text.replace("cuda", "cpu") for path, text in before.items()})
    assert [(one.patch.paths, one.patch.expect.sites) for one in authored.patches] == [(("a.py", "b.py", "c.py"), 3)]
    assert made["b.py"] == '# b\nx = "cpu"\n'


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ({"a": b"x"}, {}, "a was deleted: no patch deletes a file; neutralise what uses it"),
        ({"a": b"\0x"}, {"a": b"\0y"}, "a was changed and is no text: a patch cannot hold it"),
        ({}, {"a": b"\xff\xfe\0"}, "a is new and empty or no UTF-8 text: a patch cannot hold it"),
        ({}, {"a": b""}, "a is new and empty or no UTF-8 text: a patch cannot hold it"),
        (
            {"a": b"x\r\ny\r\n"},
            {"a": b"x\ny\n"},
            "a differs in its encoding or line endings alone: patches keep upstream's",
        ),
        ({"a.py": b"x\ny\n"}, {"a.py": b"x\n\ny\n"}, "a.py differs in blank lines alone: left out"),
        (
            {"a": b"x\n"},
            {"a": b""},
            "a was changed in a way that no patch holds: its place cannot be told from its text",
        ),
    ],
    ids=["deleted", "binary", "new-binary", "new-empty", "line-endings", "blank-lines", "emptied"],
)
def test_what_no_patch_holds_is_said(before: dict[str, bytes], after: dict[str, bytes], note: str) -> None:
    old, new = ({PurePosixPath(path): data for path, data in files.items()} for files in (before, after))
    assert assembly.author(old, new) == assembly.Authored(patches=(), files={}, notes=(note,))


def test_renamed_file_is_added_and_said() -> None:
    authored, made = author({"a.py": "x = 1\n"}, {"b.py": "x = 1\n"})
    assert [one.patch.op_name for one in authored.patches] == ["add-file"]
    assert made["b.py"] == "x = 1\n"
    assert authored.notes[1] == "a.py was renamed to b.py: the patch adds it under its new name, and the old file stays"


def test_encoding_and_line_endings_of_upstream_stay() -> None:
    path = PurePosixPath("requirements.txt")
    before = "\ufeffa==1\r\nb\r\n".encode("utf-16-le")
    authored = assembly.author({path: before}, {path: b"a==2\nb\n"})
    assert authored.files == {path: Likeness.TEXT}
    patched = engine.apply(read_back(authored), {path: before})
    assert patched.changes[0].after == "\ufeffa==2\r\nb\r\n".encode("utf-16-le")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ('os.environ.get("TOKENIZER", "bert-base-multilingual-cased")', "os-environ-get-tokenizer-bert-base"),
        ('f("a_name_as_long_as_any_that_people_write")', "f-a-name-as-long-as-any-that-people"),
        (f"f({'x' * 50})", "f"),
        (f"{'x' * 50}(1)", "x" * 36),
    ],
)
def test_id_ends_at_a_word_and_fits_a_table(call: str, name: str) -> None:
    assert drafts.slug(call) == name


def test_ids_begin_as_wanted_and_are_not_taken_twice() -> None:
    path = PurePosixPath("m.py")
    authored = assembly.author({path: b"x = f(1)\n"}, {path: b"x = f(2)\n"}, "mine", taken={"mine-f-2"})
    (one,) = authored.patches
    assert one.patch.id.startswith("mine-")
    again = assembly.author({path: b"x = f(1)\n"}, {path: b"x = f(2)\n"}, "mine", taken={one.patch.id})
    assert again.patches[0].patch.id == f"{one.patch.id}-2"


@pytest.mark.parametrize(
    ("before", "old", "new", "name"),
    [
        pytest.param("demo = slider(1, 300)\n", "300", "400", "demo-slider-1-400", id="a-number"),
        pytest.param("demo = [\n    300,\n    5,\n]\n", "300", "400", "change-400", id="in-a-line-by-itself"),
        pytest.param("x = f('cuda')\n", "cuda", "xpu", "xpu", id="a-word"),
    ],
)
def test_id_begins_with_a_letter(before: str, old: str, new: str, name: str) -> None:
    path = PurePosixPath("m.py")
    authored = assembly.author({path: before.encode()}, {path: before.replace(old, new).encode()})
    assert [one.patch.id for one in authored.patches] == [name]
    prefixed = assembly.author({path: before.encode()}, {path: before.replace(old, new).encode()}, "mine")
    assert [one.patch.id for one in prefixed.patches] == [f"mine-{name.removeprefix('change-')}"]


STATEMENTS = st.lists(
    st.sampled_from(
        [
            *("import os", "import deepspeed", "x = 1", 'x = "cuda"', 'y = f("cuda", a=1)', "run(x)", "run(x, b=2)"),
            *("def f(a):\n    return g(a)", "def f(a):\n    return None", "class A:\n    device = 'cuda'", "# note"),
            "try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None",
        ]
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=150, deadline=None)
@given(STATEMENTS, STATEMENTS)
def test_any_edit_of_a_python_file_is_reproduced(one: list[str], other: list[str]) -> None:
    before, after = "\n".join(one) + "\n", "\n".join(other) + "\n"
    assume(before != after)
    _, likeness, made = only("m.py", before, after)
    assert likeness is not Likeness.OTHER
    assert (made == after) is (likeness is Likeness.BYTES)


LINES = st.lists(st.sampled_from(["a==1", "a==2", "b>=3", "c", "# c", "-r x.txt", "git+https://x/y.git"]), max_size=6)


@settings(max_examples=150, deadline=None)
@given(LINES, LINES)
def test_any_edit_of_a_requirement_file_is_reproduced(one: list[str], other: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (one, other))
    assume(before != after and before and after)
    _, likeness, made = only("requirements.txt", before, after)
    assert likeness is not Likeness.OTHER
    assert (made == after) is (likeness is Likeness.BYTES)
