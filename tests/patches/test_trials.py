"""Patches on trial: cases, twice, the other order, and verdicts in which nothing is silent."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import PurePosixPath

import pytest

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.patch import Located, Patch, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches import trials
from patchlock.patches.evaluation import Memoized
from patchlock.patches.ops._diffs import AddFile
from patchlock.patches.postconditions._python import NoString
from patchlock.patches.postconditions._text import Contains, Lacks
from patchlock.patches.trials import Case, Run, Survival, Verdict

CPU = """
[[patch]]
id = "cpu"
why = "w"
source = "s"
op = "replace-expression"
paths = ["*.py"]
literal = ["cuda"]
pattern = '"cuda"'
replacement = '"cpu"'
ensure = [{ check = "no-string", value = "cuda" }]
"""


def read(text: str) -> tuple[Patch, ...]:
    report = Report(file="app.toml", text="")
    patches = _apps_and_profiles.patches(Table(tomllib.loads(text), report), None)
    assert report.problems == []
    return patches


def text_patch(name: str, old: str, new: str, after: str = "") -> str:
    return (
        f'[[patch]]\nid = "{name}"\nwhy = "w"\nsource = "s"\nop = "replace-text"\npaths = ["*.sh"]\n'
        f'old = "{old}"\nnew = "{new}"\nafter = [{after}]\nensure = [{{ check = "contains", text = "x" }}]\n'
    )


def files(**texts: str) -> dict[PurePosixPath, bytes]:
    return {PurePosixPath(name.replace("_", ".")): text.encode() for name, text in texts.items()}


(PATCH,) = read(CPU)


@pytest.mark.parametrize(
    ("before", "after", "outcome", "problems"),
    [
        pytest.param({"a_py": 'x = "cuda"\n'}, {"a_py": 'x = "cpu"\n'}, "", (), id="as-written"),
        pytest.param({"a_py": 'x = "cpu" # cuda\n'}, None, "gone", (), id="outcome-without-a-change"),
        pytest.param(
            {"a_py": 'x = "cuda"\n', "b_py": "y\n"},
            {"a_py": 'x = "cpu" \n', "b_py": "y\n"},
            "",
            ("a.py:1: it becomes 'x = \"cpu\"\\n', not 'x = \"cpu\" \\n'",),
            id="other-bytes",
        ),
        pytest.param(
            {"a_py": 'x = "cuda"\n\0'},
            {"a_py": 'x = "tpu"\n\0'},
            "",
            (
                "a.py: unparsable upstream: it has NUL bytes",
                "a.py: it is binary, and becomes 12 bytes, not the 11 that are wanted",
            ),
            id="binary",
        ),
        pytest.param(
            {"a_py": 'x = "cuda"\n'},
            None,
            "needed",
            ("a.py:1: it becomes 'x = \"cpu\"\\n', not 'x = \"cuda\"\\n'",),
            id="no-after",
        ),
        pytest.param({"a_py": "x\n"}, {"a_py": "x\n"}, "needed", ('it is "gone", not "needed"',), id="other-outcome"),
        pytest.param({"a_py": "x\n"}, {"a_py": "x\n", "b_py": ""}, "", ("b.py is not made",), id="a-file-more"),
        pytest.param({"a_py": "x\n", "b_py": ""}, {"a_py": "x\n"}, "", ("b.py is in no after-tree",), id="a-file-less"),
        pytest.param(
            {"a_py": '(\nx = "cuda"\n'},
            {"a_py": '(\nx = "cuda"\n'},
            "",
            ("a.py: unparsable upstream: it does not parse: '(' was never closed",),
            id="refused",
        ),
    ],
)
def test_case(before: dict[str, str], after: dict[str, str] | None, outcome: str, problems: tuple[str, ...]) -> None:
    wanted = files(**after) if after is not None else None
    case = Case(patch="cpu", name="c", before=files(**before), after=wanted, outcome=outcome)
    assert trials.problems_of_case(PATCH, case) == problems


def test_checks_that_hold_before_prove_nothing() -> None:
    blind = dataclasses.replace(PATCH, ensures=(NoString(value="tpu"),))
    case = Case(patch="cpu", name="c", before=files(a_py='x = "cuda"\n'), after=files(a_py='x = "cpu"\n'), outcome="")
    assert trials.problems_of_case(blind, case) == (
        "its checks hold before it is applied too, so that they prove nothing",
    )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Grows:
    """An op that does less than it finds: in files of two lines, it settles only at the third time."""

    def locate(self, source: SourceText) -> Located:
        if source.text.count("\n") > 2:
            return Located(settled=(Site(line=1, text=""),))
        end = len(source.text)
        return Located(edits=(Edit(start=end, end=end, text="x\n"),), sites=(Site(line=1, text=""),))


def test_what_changes_again_is_told() -> None:
    # One of the two files needs a second time, which the engine sees in no single file.
    grows = dataclasses.replace(PATCH, op=Grows(), literal=(), ensures=(Contains(text="x"),))
    assert trials.problems_together((grows,), files(a_py="a\nb\n")) == ()
    found = trials.problems_together(
        read(text_patch("one", "a", "xb") + text_patch("two", "c", "xa", '"one"')), files(a_sh="a c\n")
    )
    assert found == ("a.sh: applied twice, the patches change it again",)


def test_file_that_a_patch_makes_is_not_there_the_second_time() -> None:
    made = dataclasses.replace(
        PATCH, id="made", paths=("b.py",), literal=(), op_name="add-file", op=AddFile(content='x = "cuda"'), ensures=()
    )
    every = dataclasses.replace(PATCH, paths=("*.py",))
    assert trials.problems_together((every, made), files(a_py='x = "cuda"\n')) == ()


@pytest.mark.parametrize(
    ("after", "problems"),
    [
        ("", ('a.sh: one and two give other bytes in another order; write after = ["one"] in two',)),
        ('"one"', ()),
    ],
    ids=["not-declared", "declared"],
)
def test_order_that_matters_is_told(after: str, problems: tuple[str, ...]) -> None:
    patches = read(text_patch("one", "a", "xb") + text_patch("two", "c", "xb", after))
    end = read(text_patch("one", "a", "bx") + text_patch("two", "b", "c", after))
    assert trials.problems_together(patches, files(a_sh="a c\n")) == ()
    assert trials.problems_together(end, files(a_sh="a\n")) == problems


def test_patch_that_takes_back_what_another_promises_is_not_told_to_go_after_it() -> None:
    one = text_patch("one", "a", "bx").replace('text = "x"', 'text = "bx"')
    assert trials.problems_together(read(one + text_patch("two", "b", "c")), files(a_sh="a\n")) == (
        "a.sh: two takes back what one promises; correct one of them, or leave it out",
    )


def test_order_of_added_requirements_does_not_matter() -> None:
    patches = read(
        "".join(
            f'[[patch]]\nid = "{name}"\nwhy = "w"\nsource = "s"\nop = "add-requirement"\n'
            f'paths = ["requirements.txt"]\nrequirement = "{name}"\n'
            f'ensure = [{{ check = "requirement", name = "{name}", specifier = "" }}]\n'
            for name in ("one", "two")
        )
    )
    assert trials.problems_together(patches, files(requirements_txt="three\n")) == ()


def judge(text: str, patch: Patch = PATCH) -> Verdict:
    return trials.verdicts((patch,), files(a_py=text), {})["cpu"]


@pytest.mark.parametrize(
    ("text", "what", "flags"),
    [
        ('x = "cuda"\n', "needed", (True, False, False)),
        ("cuda = 1\n", "gone", (False, False, False)),
        ('x = ["cuda"\n', "unparsable upstream", (True, True, False)),
        ('x = f"{f("cuda")}"\n', "ambiguous", (True, True, False)),
    ],
    ids=["needed", "gone", "unparsable", "refused"],
)
def test_verdict(text: str, what: str, flags: tuple[bool, bool, bool]) -> None:
    verdict = judge(text)
    assert (verdict.what, (verdict.has_target, verdict.is_refused, verdict.is_silent)) == (what, flags)
    assert bool(verdict.reasons) is verdict.is_refused


def test_what_a_patch_forbids_and_its_op_does_not_find_is_silent() -> None:
    class Blind:
        def locate(self, source: SourceText) -> Located:
            return Located()

    verdict = judge('x = "cuda"\n', dataclasses.replace(PATCH, op=Blind()))
    assert (verdict.what, verdict.is_silent, verdict.is_refused) == ("silent", True, False)
    assert verdict.reasons == ("a.py: line 1: it has the string 'cuda'",)
    # A check that asks for something says nothing of files that have no place for it.
    asks = dataclasses.replace(PATCH, op=Blind(), ensures=(Contains(text="cpu"),))
    assert not judge('x = "cuda"\n', asks).is_silent


def test_failed_check_is_told_as_a_refusal() -> None:
    verdict = judge('x = "cuda"\n', dataclasses.replace(PATCH, ensures=(Lacks(text="cpu"),)))
    assert (verdict.what, verdict.is_refused, verdict.is_silent) == (trials.NOT_HELD, True, False)


@pytest.mark.parametrize(
    ("asked", "taken", "is_lowered"),
    [
        ("torch==2.6.0", "==2.7.0", False),
        ("torch==2.7.1", "==2.7.0", True),
        ("torch==2.7.0+cu118", "==2.7.0", False),
        ("torch==2.8.*", "==2.7.0", True),
        ("torch>=2.8", "<2.8", True),
        ("torch>=2.7,<3", ">=2.6,<2.8", False),
        ("torch==2.9", ">=2.10", False),
        ("torch", "<2.8", False),
        ("torch; python_version >= '3.14'\ntorch==2.6; python_version < '3.14'", "==2.7", False),
        ("torch @ https://example.com/torch-2.9-py3-none-any.whl", "==2.7", False),
    ],
)
def test_patch_that_takes_an_older_version_than_upstreams_is_told_apart(
    asked: str, taken: str, *, is_lowered: bool
) -> None:
    (patch,) = read(
        f'[[patch]]\nid = "torch"\nwhy = "w"\nsource = "s"\nop = "set-requirement"\npaths = ["requirements.txt"]\n'
        f'name = "torch"\nspecifier = "{taken}"\n'
        f'ensure = [{{ check = "requirement", name = "torch", specifier = "{taken}" }}]\n'
    )
    verdict = trials.verdicts((patch,), files(requirements_txt=f"{asked}\n"), {})["torch"]
    assert (verdict.what, verdict.is_refused) == (trials.LOWERED if is_lowered else "needed", False)


def test_survival_counts_and_joins_neighbours() -> None:
    table = Survival(patch="cpu")
    for commit, text in zip("abcd", ['"cuda"\n', '"cuda"; 1\n', '("cuda"\n', '"cuda"\n'], strict=True):
        table.count(commit, judge(f"x = {text}"))
    assert (table.with_target, table.right, table.refused, table.silent) == (4, 3, 1, 0)
    assert table.runs == [
        Run(what="needed", first="a", last="b", commits=2),
        Run(what="unparsable upstream", first="c", last="c", commits=1),
        Run(what="needed", first="d", last="d", commits=1),
    ]
    assert table.reasons == {"a.py: unparsable upstream: it does not parse: '(' was never closed": 1}


def test_an_evaluator_that_remembers_judges_the_same_and_looks_once() -> None:
    looked: list[str] = []

    class Counting:
        def locate(self, source: SourceText) -> Located:
            looked.append(source.text)
            return PATCH.op.locate(source)

    patch = dataclasses.replace(PATCH, op=Counting())
    evaluator = Memoized()
    contents = {PurePosixPath("a.py"): b'x = "cuda"\n'}
    judged = [trials.verdicts([patch], contents, {}, evaluator)[patch.id] for _ in range(3)]
    assert judged == [judge('x = "cuda"\n')] * 3
    assert looked == ['x = "cuda"\n', 'x = "cpu"\n']


def test_file_that_another_patch_makes_is_none_of_upstreams_trouble() -> None:
    made = CPU.replace('"cpu"\nwhy', '"made"\nwhy').split("op =")[0]
    made += 'op = "add-file"\npaths = ["helper.py"]\ncontent = "x = \'cuda\'\\n"\n'
    made += 'ensure = [{ check = "contains", text = "cuda" }]\n'
    patches = read(CPU + made)
    found = trials.verdicts(patches, files(a_py='x = "cuda"\n'), {})
    assert {name: (one.what, one.is_silent) for name, one in found.items()} == {
        "cpu": ("needed", False),
        "made": ("needed", False),
    }
