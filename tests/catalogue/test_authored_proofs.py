"""What proves an edit that was written as a patch: each condition fails before it, and in any other place."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_authoring import RUN, author, read_back
from test_engine import patches

from patchlock.catalogue.authoring import assembly
from patchlock.catalogue.authoring.files import Likeness
from patchlock.model.patch import OutcomeKind
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches import engine


def test_replaced_text_is_proved_by_what_stands_there_now_too() -> None:
    path = PurePosixPath("m.py")
    authored = assembly.author({path: b"needs('>=3.8.0')\n"}, {path: b"needs('>=3.9.0')\n"})
    (patch,) = read_back(authored)
    assert engine.failed_ensures(patch, path, b"needs('>=3.9.0')\n") == ()
    assert engine.failed_ensures(patch, path, b"needs('>=3.10')\n") == ("`needs('>=3.9.0')` is missing",)


@pytest.mark.parametrize(
    ("before", "after", "third", "problem"),
    [
        pytest.param('d = f("mps")\n', '"xpu")', '"npu")  # no "xpu"', "`f('xpu')` is missing", id="a-short-string"),
        pytest.param("n = f(16)\n", "40", "400", "`f(40)` is missing", id="a-number"),
        pytest.param("def g():\n    n = 16\n    return 4\n", "4", "8", "`n = 4` is missing", id="that-is-near"),
        pytest.param("def g(n=16):\n    return 8\n", "8", "9", "the text `def g(n=8): …` is missing", id="in-a-head"),
        pytest.param("x = y.load(1)\n", "y.loads", "y.loads_all", "`y.loads(1)` is missing", id="a-name"),
        pytest.param("x = ask('me')\n", "None", "0", "`x = None` is missing", id="a-call"),
        pytest.param("a = f(1, 16)\nb = g(1, 16)\n", "32", "64", "`f(1, 32)` is missing", id="one-of-several"),
    ],
)
def test_third_value_in_its_place_is_no_replaced_one(before: str, after: str, third: str, problem: str) -> None:
    path = PurePosixPath("m.py")
    old = next(text for text in ('"mps")', "16", "y.load", "ask('me')") if text in before)
    edited, now = before.replace(old, after), before.replace(old, third, 1).replace(old, after)
    (patch,) = read_back(assembly.author({path: before.encode()}, {path: edited.encode()}))
    assert patch.op_name in {"replace-expression", "neutralise-call"}
    assert engine.failed_ensures(patch, path, edited.encode()) == ()
    assert [text.partition(" in g")[0] for text in engine.failed_ensures(patch, path, now.encode())] == [problem]


SAMPLER = """class A:
    def run(
        self,
        heat: float = 1.3,
        top: int = 35,
    ):
        return sample(scale(2.3), None)


box = [
    Slider(
        label="Speed",
        value=0.94,
    ),
    Slider(
        label="Top",
        value=0.95,
    ),
]
"""


@pytest.mark.parametrize(
    ("edit", "elsewhere"),
    [
        pytest.param(("float = 1.3", "float = 0.8"), ("scale(2.3)", "scale(0.8)"), id="default-of-a-parameter"),
        pytest.param((", None", ", heat"), ("scale(2.3)", "scale(heat)"), id="name"),
        pytest.param((", None", ", self.p"), ("scale(2.3)", "scale(self.p)"), id="attribute"),
        pytest.param(("value=0.94,", "value=1.0,"), ("value=0.95,", "value=1.0,"), id="keyword-of-one-of-several"),
    ],
)
def test_value_that_stands_somewhere_else_is_no_proof(edit: tuple[str, str], elsewhere: tuple[str, str]) -> None:
    path = PurePosixPath("m.py")
    patches = read_back(assembly.author({path: SAMPLER.encode()}, {path: SAMPLER.replace(*edit).encode()}))
    assert engine.failed_ensures(patches[0], path, SAMPLER.replace(*edit).encode()) == ()
    third = SAMPLER.replace(edit[0], re.sub(r"(= ?|, )[\w.]+", r"\1seven", edit[1])).replace(*elsewhere)
    assert [problem for one in patches for problem in engine.failed_ensures(one, path, third.encode())] != []


def test_each_run_of_a_diff_is_held_whole() -> None:
    path, before = PurePosixPath("run.sh"), "start one\nuse torch 2.0\nuse vision 0.15 of it\nuse audio 2.0\nend it\n"
    after = before.replace("2.0", "2.3").replace("0.15", "0.18").replace("start one\n", "")
    (patch,) = read_back(assembly.author({path: before.encode()}, {path: after.encode()}))
    assert engine.failed_ensures(patch, path, after.encode()) == ()
    for mutant in (after.replace("torch 2.3", "torch 2.4"), after.replace("audio 2.3", "audio 2.4")):
        assert [problem for one in patch.ensures for problem in one.problems(path, mutant.encode())] != []


@pytest.mark.parametrize(
    ("added", "ops"),
    [("", ["unified-diff"]), ("import dac\n", ["insert-statement", "unified-diff"])],
    ids=["alone", "beside-a-statement"],
)
def test_change_of_blank_lines_beside_others_is_no_patch_of_its_own(added: str, ops: list[str]) -> None:
    before = "".join(f"x{n} = load({n})\n" for n in range(30))
    wanted = before.replace("x3 = load(3)\n", "x3 = load(3)  # mine\n").replace("x19", f"{added}x19")
    after = wanted.replace("x19", "\nx19")
    authored, made = author({"m.py": before}, {"m.py": after})
    assert [one.patch.op_name for one in authored.patches] == ops
    assert authored.files[PurePosixPath("m.py")] is Likeness.MEANING
    assert made["m.py"] == wanted


def test_diff_stands_where_upstream_has_changed_lines_farther_off() -> None:
    path = PurePosixPath("run.sh")
    edited = RUN.replace("step 4\n", "step 4\nmy own step\n")
    patches = read_back(assembly.author({path: RUN.encode()}, {path: edited.encode()}))
    newer = RUN.replace("step 2\n", "step 2 again\n").replace("step 7\n", "a new step\nstep 7\n")
    patched = engine.apply(patches, {path: newer.encode()})
    assert engine.incomplete(patched) == set()
    wanted = newer.replace("step 4\n", "step 4\nmy own step\n")
    assert [change.after.decode() for change in patched.changes] == [wanted]


def test_edit_in_a_call_of_several_lines_is_proved_by_its_call() -> None:
    before = "def f(rate):\n    return mel(rate, high=1,\n               low=2)\n"
    path = PurePosixPath("m.py")
    authored = assembly.author({path: before.encode()}, {path: before.replace("(rate,", "(sr=rate,").encode()})
    (patch,) = read_back(authored)
    assert [str(ensure) for ensure in patch.ensures] == [
        "HasExpression(expression='mel(sr=rate, high=1, low=2)', within=('f',))"
    ]
    later = before.replace("(rate,", "(sr=rate,") + "\n# upstream's next change\n"
    (outcome,) = engine.apply([patch], {path: later.encode()}).outcomes
    assert outcome.kind is OutcomeKind.FIXED_UPSTREAM


def test_third_value_in_a_line_of_a_diff_is_no_replaced_one() -> None:
    path, before = PurePosixPath("run.sh"), "a\ndevice=mps\nb\n"
    (patch,) = read_back(assembly.author({path: before.encode()}, {path: before.replace("mps", "xpu").encode()}))
    assert engine.failed_ensures(patch, path, before.replace("mps", "xpu:0").encode()) == (
        "the text `device=xpu` is missing",
    )


def test_patch_that_changes_only_a_comment_of_both_is_not_what_was_edited() -> None:
    path = PurePosixPath("requirements.txt")
    comment = patches(
        one="""
op = "replace-text"
paths = ["requirements.txt"]
literal = ["onnx"]
old = "onnx=="
new = "onnx[gpu]=="
ensure = [{ check = "contains", text = "onnx[gpu]==" }]
"""
    )
    edited = assembly.author({path: b"# onnx==1\nnumpy\n"}, {path: b"# onnx==1\nnumpy<2\n"}, known=comment)
    assert (edited.known, [one.patch.op_name for one in edited.patches]) == ((), ["set-requirement"])


def test_short_line_proves_nothing_by_itself() -> None:
    before = "def f():\n    x = 1\n    if x:\n        y = 2\n        z = 3\n"
    authored, _ = author({"m.py": before}, {"m.py": before.replace("        y = 2\n        z = 3\n", "        pass\n")})
    assert [ensure.text for one in authored.patches for _, ensure in one.ensures] == ["    if x:\n        pass\n"]


def test_each_patch_asks_for_its_why_and_has_checks_that_failed_before() -> None:
    before = {"a.py": 'x = "cuda"\ny = run(1)\n', "b.sh": "a\nb\n", "requirements.txt": "a==1\n"}
    after = {"a.py": 'x = "cpu"\ny = None\n', "b.sh": "a\nc\n", "requirements.txt": "a==2\n"}
    authored, _ = author(before, after)
    assert len(authored.patches) == 4
    for one in authored.patches:
        assert one.patch.why.startswith("TODO")
        assert one.patch.source.startswith("TODO")
        path = PurePosixPath(one.patch.paths[0])
        assert all(ensure.problems(path, before[str(path)].encode()) for _, ensure in one.ensures)


TEXTS = st.lists(st.sampled_from(["a", "b", "bb", "# c", "d = 1", "e", "ff", "g()"]), min_size=1, max_size=9)


@settings(max_examples=300, deadline=None)
@given(TEXTS, TEXTS)
def test_a_diff_without_one_of_its_edits_fails_a_check(one: list[str], other: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (one, other))
    assume(before != after and before.strip() and after.strip())
    path = PurePosixPath("run.sh")
    authored = assembly.author({path: before.encode()}, {path: after.encode()})
    assume(authored.patches)
    source = decode(path, before.encode())
    assert isinstance(source, SourceText)
    found = [(written.patch, edit) for written in authored.patches for edit in written.patch.op.locate(source).edits]
    for patch, edit in found:
        assume(len(patch.ensures) >= sum(one is patch for one, _ in found))  # of lines that are often there, none tells
        mutant = encode(splice(source, tuple(other for _, other in found if other is not edit)))
        assert any(ensure.problems(path, mutant) for ensure in patch.ensures), (patch.ensures, mutant)


def test_postconditions_hold_in_the_tree_that_was_edited_however_bounds_are_ordered() -> None:
    after = 'numpy>=1.24.0,<2.3; python_version >= "3.9"  # two bounds\n'
    authored, _ = author({"requirements.txt": "numpy>=1.24.0\n"}, {"requirements.txt": after})
    path = PurePosixPath("requirements.txt")
    ensures = [one for patch in read_back(authored) for one in patch.ensures]
    assert ensures
    assert [problem for one in ensures for problem in one.problems(path, after.encode())] == []


@pytest.mark.parametrize(
    ("after", "is_exact"),
    [("a(7)\nb(1)\n", True), ("a(7)\nb(7)\n", False), ("a(1)\nb(1)\nc()\n", True)],
    ids=["one-place", "both-places", "insertion"],
)
def test_edit_of_one_place_is_for_no_other(after: str, is_exact: bool) -> None:
    path = PurePosixPath("m.py")
    (one, *_) = assembly.author({path: b"a(1)\nb(1)\n"}, {path: after.encode()}).patches
    assert one.patch.expect.exact is is_exact


def test_bound_of_one_requirement_is_for_no_other_that_upstream_adds() -> None:
    path, newer = PurePosixPath("requirements.txt"), b'a==1; python_version < "3.14"\na>=2; python_version >= "3.14"\n'
    (one,) = assembly.author({path: b"a==1\n"}, {path: b"a>=1\n"}).patches
    (outcome,) = engine.apply([one.patch], {path: newer}).outcomes
    assert outcome.kind is OutcomeKind.AMBIGUOUS
