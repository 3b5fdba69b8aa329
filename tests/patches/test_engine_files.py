"""Which files and which patches are looked at: globs, literals in any encoding, profiles."""

from __future__ import annotations

import codecs
import re
import sys
from pathlib import PurePosixPath

import pytest
from test_engine import BATCH, CPU, OPTIONAL, patches, run

from patchlock.model.patch import OutcomeKind
from patchlock.patches.engine import apply, for_profile, incomplete_error
from patchlock.patches.outcomes import counted, warnings
from patchlock.patches.targets import candidates
from patchlock.patches.trials import verdicts


@pytest.mark.parametrize(
    ("glob", "matching"),
    [
        ("*.py", {"a.py"}),
        ("**/*.py", {"a.py", "src/a.py", "src/x/a.py", "src/x/ab.py"}),
        ("src/*.py", {"src/a.py"}),
        ("src/**/*.py", {"src/a.py", "src/x/a.py", "src/x/ab.py"}),
        ("src/**", {"src/a.py", "src/x/a.py", "src/x/ab.py", "src/b.txt"}),
        ("src/*/a.py", {"src/x/a.py"}),
        ("**/a?.py", {"src/x/ab.py"}),
        ("src?a.py", set()),
        ("a.p", set()),
        ("axpy", set()),
        ("aXpy", set()),
        ("src/**ab.py", {"src/x/ab.py"}),
        ("A.py", set()),
        ("src/b.txt", {"src/b.txt"}),
    ],
)
def test_globs_over_posix_paths(glob: str, matching: set[str]) -> None:
    paths = [PurePosixPath(name) for name in ("src/x/ab.py", "src/x/a.py", "src/b.txt", "src/a.py", "a.py")]
    chosen = patches(one=BATCH.replace("*.bat", glob))
    found = candidates(chosen, paths)
    assert {str(path) for path in found} == matching
    assert list(found) == sorted(found)
    outcomes = apply(chosen, dict.fromkeys(paths, b"pip")).outcomes
    assert {str(outcome.path) for outcome in outcomes if outcome.path} == matching


def test_candidates_are_those_of_any_patch() -> None:
    paths = [PurePosixPath(name) for name in ("c.md", "b.py", "a.bat")]
    assert candidates(patches(one=CPU, two=BATCH), paths) == (PurePosixPath("a.bat"), PurePosixPath("b.py"))


@pytest.mark.parametrize(
    ("data", "is_read"),
    [
        pytest.param(b"echo pip", True, id="utf-8"),
        pytest.param(codecs.BOM_UTF16_LE + "echo pip".encode("utf-16-le"), True, id="utf-16-le"),
        pytest.param(codecs.BOM_UTF16_BE + "echo pip".encode("utf-16-be"), True, id="utf-16-be"),
        pytest.param(b"echo \xff\0", False, id="not-mentioned-and-not-text"),
    ],
)
def test_file_without_any_of_the_literals_is_not_read(data: bytes, is_read: bool) -> None:
    [outcome] = run(patches(one=BATCH + 'literal = ["conda", "pip"]'), a_bat=data).outcomes
    assert outcome.kind == (OutcomeKind.NEEDED if is_read else OutcomeKind.GONE)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(b"d = 'cuda'  # \xe9\n", OutcomeKind.NEEDED, id="comment-that-python-bears"),
        pytest.param(b"d = 'cuda', '\xe9'\n", OutcomeKind.UNPARSABLE, id="text-that-is-no-utf-8"),
        pytest.param(b"# coding: martian\nd = 'cuda'\n", OutcomeKind.UNPARSABLE, id="unknown-encoding"),
        pytest.param(b"d = 'gpu', '\xe9'\n", OutcomeKind.GONE, id="needed-by-no-patch"),
    ],
)
def test_python_file_that_python_cannot_read_is_told_where_a_patch_needs_it(data: bytes, kind: OutcomeKind) -> None:
    patched = run(patches(one=CPU + 'literal = ["cuda"]'), a_py=data)
    assert [outcome.kind for outcome in patched.outcomes] == [kind]
    assert bool(patched.changes) is (kind is OutcomeKind.NEEDED)


def test_profiles_choose_their_patches_in_order() -> None:
    chosen = patches(all=CPU, cpu=CPU + 'profiles = ["cpu", "tiny"]', cuda=CPU + 'profiles = ["cuda"]', also=BATCH)
    assert [patch.id for patch in for_profile(chosen, "cpu")] == ["all", "cpu", "also"]
    assert [patch.id for patch in for_profile(chosen, "rocm")] == ["all", "also"]


PIP = """
op = "run-time-pip"
paths = ["**/*.py"]
literal = ["pip"]
ensure = [{ check = "no-run-time-pip" }]
"""


def test_patch_goes_on_without_a_file_that_no_python_can_run() -> None:
    patched = run(patches(one=PIP), a_py=b"import x\npip install x\n", b_py=b"import os\nos.system('pip install x')\n")
    why = "no Python reads it, so that none of it can run, and it is left as it is: `pip install x`"
    assert [(o.kind, str(o.path), [(site.line, site.text) for site in o.sites]) for o in patched.outcomes] == [
        (OutcomeKind.BROKEN, "a.py", [(2, why)]),
        (OutcomeKind.NEEDED, "b.py", [(2, "os.system('pip install x')")]),
    ]
    assert ([str(change.path) for change in patched.changes], patched.failures) == (["b.py"], ())
    assert counted(patched.outcomes) == "1 needed"
    assert warnings(patched) == (f"one: a.py:2: {why}",)


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="this Python reads it")
def test_file_that_a_newer_python_may_run_is_named() -> None:
    newer = b"lazy import os\nos.system('pip install x')\n"
    patched = run(patches(one=PIP), a_py=newer, b_py=b"import os\nos.system('pip install x')\n")
    assert [outcome.kind for outcome in patched.outcomes] == [OutcomeKind.PASSED_OVER, OutcomeKind.NEEDED]
    assert [str(change.path) for change in patched.changes] == ["b.py"]
    why = "it is written for a newer Python, and has no older form: line 1: invalid syntax"
    assert warnings(patched) == (f"one: a.py:1: {why}; the file is left as it is",)


GOOD = b"""import deepspeed
import os
x = "cuda"
y = torch.load(p)
os.system("pip install z")
"""
BAD = GOOD + b"(\n"
OPS = {
    "replace-expression": CPU,
    "replace-text": BATCH.replace("*.bat", "*.py").replace('"pip"', '"cuda"'),
    "run-time-pip": PIP,
    "device-literals": """
op = "device-literals"
paths = ["*.py"]
device = "cpu"
ensure = [{ check = "without-cuda", device = "cpu" }]
""",
    "optional-import": OPTIONAL,
    "set-argument": """
op = "set-argument"
paths = ["*.py"]
call = "torch.load"
argument = "weights_only"
value = "False"
ensure = [{ check = "argument", callee = "torch.load", argument = "weights_only", value = "False" }]
""",
    "neutralise-call": """
op = "neutralise-call"
paths = ["*.py"]
call = "torch.load($p)"
ensure = [{ check = "no-call", callee = "torch.load" }]
""",
    "insert-statement": """
op = "insert-statement"
paths = ["*.py"]
statement = "import torch_directml"
at = "top"
ensure = [{ check = "contains", text = "import torch_directml" }]
""",
}


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("paths", "others", "is_blocked"),
    [
        pytest.param("*.py", True, False, id="one of many"),
        pytest.param("*.py", False, True, id="the only one"),
        pytest.param("a.py", False, True, id="named"),
        pytest.param('*.py", "a.py', True, True, id="named, and searched for"),
    ],
)
def test_file_that_cannot_be_read_takes_only_a_patch_for_it_alone_down(
    op: str, paths: str, others: bool, is_blocked: bool
) -> None:
    text = re.sub(r'paths = \["[*/]+\.py"\]', f'paths = ["{paths}"]', OPS[op])
    bad = BAD if op != "replace-text" else BAD + b"\0"
    files = {"a_py": bad, "b_py": GOOD, "c_py": b"z\n"} if others else {"a_py": bad}
    patched = run(patches(one=text, txt=BATCH), **files, a_bat=b"pip")
    kind = next(outcome.kind for outcome in patched.outcomes if str(outcome.path) == "a.py")
    assert kind is (OutcomeKind.UNPARSABLE if is_blocked else OutcomeKind.PASSED_OVER)
    changed = {str(change.path) for change in patched.changes}
    assert changed >= {"a.bat"}
    assert ("b.py" in changed) is (others and not is_blocked)
    assert patched.failures == ()
    assert [text for text in warnings(patched) if text.startswith("one: a.py")] == (
        [] if is_blocked else list(warnings(patched))
    )
    assert (incomplete_error(patched, "here") is None) is not is_blocked


def test_file_that_cannot_be_read_does_not_count_as_silent() -> None:
    (patch,) = patches(one=CPU)
    found = verdicts((patch,), {PurePosixPath("a.py"): BAD, PurePosixPath("b.py"): GOOD}, {})["one"]
    assert (found.is_refused, found.is_silent, found.what) == (False, False, "needed")


def test_all_places_of_all_files_are_named_at_once() -> None:
    text = OPS["device-literals"].replace('"cpu"', '"xpu"')
    lost = b'd = [f"cuda:{i}" for i in range(torch.cuda.device_count())] or ["cpu"]\n'
    failing = b"s = torch.cuda.Event()\n"
    patched = run(patches(one=text), a_py=failing + lost, b_py=lost, c_py=failing)
    error = incomplete_error(patched, "here")
    assert error is not None
    assert [text[: text.index("it" if "CPU" in text else "ambiguous")] for text in error.evidence] == [
        "one: a.py: line 2: ",
        "one: a.py:1: ",
        "one: b.py:1: ",
        "one: c.py:1: ",
    ]
