"""Advisory patches and those that a person leaves out: named, never in the way, and nothing that follows them is wrong."""

from __future__ import annotations

import hashlib

import pytest
from test_engine import BATCH, CPU, after, patches, path, run

from patchlock.model.patch import OutcomeKind, Patched
from patchlock.patches import engine
from patchlock.patches.outcomes import warnings

ADVISORY = "advisory = true\n"
NEVER = BATCH.replace('check = "lacks", text = "pip"', 'check = "contains", text = "never"')
HELP = b"y = 1\n"
HELPER = f"""
op = "add-file"
paths = ["helper.py"]
content = "y = 1\\n"
ensure = [{{ check = "file-is", sha256 = "{hashlib.sha256(HELP).hexdigest()}" }}]
"""
SUFFIX = "; the patch is advisory, and was left out"


def kinds(patched: Patched, patch: str) -> list[str]:
    return [outcome.kind.value for outcome in patched.outcomes if outcome.patch == patch]


def replaced(old: str, new: str, *, paths: str = "a.bat", lacks: str = "") -> str:
    return (
        BATCH.replace('old = "pip"', f'old = "{old}"')
        .replace('new = "rem"', f'new = "{new}"')
        .replace("*.bat", paths)
        .replace('text = "pip"', f'text = "{lacks or old}"')
    )


FAILING = [
    pytest.param(
        CPU.replace("**/*.py", "a.py") + "expect = { sites = 2, exact = true }",
        "ambiguous: 2 places expected, 1 found",
        id="ambiguous",
    ),
    pytest.param(CPU.replace("**/*.py", "b.py"), "unparsable upstream: it does not parse: ", id="unparsable"),
    pytest.param(NEVER, "the text `never` is missing", id="failed postcondition"),
    pytest.param(replaced("pip", "dir"), "first changes the same place", id="taken place"),
]


@pytest.mark.parametrize("is_advisory", [True, False], ids=["advisory", "required"])
@pytest.mark.parametrize(("text", "why"), FAILING)
def test_only_a_required_patch_that_does_not_do_what_it_says_stops_the_others(
    text: str, why: str, is_advisory: bool
) -> None:
    files = {"a_py": b'x = "cuda"\n', "b_py": b'y = "cuda"\n(\n', "a_bat": b"pip"}
    chosen = {"first": replaced("pip", "rem")} if why.startswith("first") else {}
    chosen |= {"one": (ADVISORY if is_advisory else "") + text, "last": replaced("call", "echo", paths="c.bat")}
    patched = run(patches(**chosen), **files, c_bat=b"call")
    error = engine.incomplete_error(patched, "here")
    assert after(patched)["c.bat"] == b"echo"
    assert "a.py" not in after(patched)
    if is_advisory:
        assert error is None
        (warning,) = warnings(patched)
        assert warning.startswith("one: ")
        assert why in warning
        assert warning.endswith(SUFFIX)
    else:
        assert error is not None
        assert why in error.evidence[0]
        assert warnings(patched) == ()


def test_outcomes_stay_in_the_order_of_the_patches() -> None:
    patched = run(patches(one=ADVISORY + BATCH, two=CPU), a_bat=b"pip", a_py=b'x = "cuda"')
    assert [outcome.patch for outcome in patched.outcomes] == ["one", "two"]
    assert patched.advisory == {"one"}


def test_advisory_patch_yields_the_place_to_a_required_one_that_stands_later() -> None:
    chosen = patches(comfort=ADVISORY + replaced("pip", "dir"), needed=replaced("pip", "rem"))
    patched = run(chosen, a_bat=b"pip")
    assert after(patched) == {"a.bat": b"rem"}
    assert engine.incomplete_error(patched, "here") is None
    why = (
        "comfort: a.bat:1: needed changes the same place first, and this patch finds nothing there; leave one of them "
        'out (one of a shared set by `without` in [app] of app.toml), or, if that is meant, write after = ["needed"]'
    )
    assert warnings(patched) == (why + SUFFIX,)


@pytest.mark.parametrize("is_advisory", [True, False], ids=["advisory", "required"])
def test_advisory_patch_that_takes_back_what_another_promises_is_left_out(is_advisory: bool) -> None:
    back = replaced("call", "pip", lacks="call")
    chosen = patches(needed=replaced("pip", "rem"), comfort=(ADVISORY if is_advisory else "") + back)
    patched = run(chosen, a_bat=b"pip\ncall")
    if is_advisory:
        assert after(patched) == {"a.bat": b"rem\ncall"}
        why = "comfort: a.bat: with it, needed fails: the text `pip` is still on line 2"
        assert warnings(patched) == (why + SUFFIX,)
        assert engine.incomplete_error(patched, "here") is None
    else:
        assert patched.failures == ("needed: a.bat: the text `pip` is still on line 2, after all patches",)


def test_advisory_patch_that_does_what_it_says_is_like_any_other() -> None:
    patched = run(patches(one=ADVISORY + BATCH), a_bat=b"pip")
    assert (after(patched), warnings(patched), kinds(patched, "one")) == ({"a.bat": b"rem"}, (), ["needed"])


# --- what follows a patch that was left out ---------------------------------------------------------------------------

FIRST = replaced("pip", "rem")
SECOND = replaced("rem", "echo") + 'after = ["first"]\n'


@pytest.mark.parametrize(
    ("first", "second", "data", "result", "failure"),
    [
        pytest.param(FIRST, SECOND, b"pip", None, "second: a.bat: without first, which was left out, it finds nothing", id="needs what the other makes"),
        pytest.param(FIRST, SECOND, b"pip\nrem", b"pip\necho", "", id="has work of its own"),
        pytest.param(FIRST, SECOND, b"call", None, "", id="neither has work"),
        pytest.param(HELPER, replaced("pip", "helper") + 'after = ["first"]\n', b"pip", None, "second: helper.py: first, which makes it, was left out", id="uses a file"),
        pytest.param(HELPER, replaced("pip", "helper") + 'after = ["first"]\n', b"call", None, "", id="uses a file, and has no work"),
        pytest.param(FIRST, replaced("rem", "echo"), b"pip", None, "", id="does not go after it"),
    ],
)  # fmt: skip
def test_patch_after_one_that_a_person_leaves_out_is_right_or_refused(
    first: str, second: str, data: bytes, result: bytes | None, failure: str
) -> None:
    chosen = patches(first=first, second=second)
    patched = engine.apply(chosen, {path("a_bat"): data}, skipped={"first": "w"})
    assert after(patched) == ({"a.bat": result} if result else {})
    assert patched.failures == ((failure,) if failure else ())
    assert kinds(patched, "first") == ["left out"]
    assert kinds(patched, "second"), "silence is not an outcome"
    whole = engine.apply(chosen, {path("a_bat"): data})
    assert whole.failures == ()


def test_patch_after_an_advisory_one_that_failed_is_left_out_as_well() -> None:
    first = ADVISORY + replaced("pip", "rem") + "expect = { sites = 2, exact = true }\n"
    chosen = patches(first=first, second=ADVISORY + SECOND, other=replaced("call", "dir", paths="b.bat"))
    patched = run(chosen, a_bat=b"pip", b_bat=b"call")
    assert after(patched) == {"b.bat": b"dir"}
    assert engine.incomplete_error(patched, "here") is None
    assert warnings(patched) == (
        "second: a.bat: without first, which was left out, it finds nothing" + SUFFIX,
        "first: a.bat:1: ambiguous: 2 places expected, 1 found" + SUFFIX,
    )


def test_refusal_names_the_command_that_leaves_the_patches_out() -> None:
    patched = run(patches(one=NEVER, two=NEVER.replace("*.bat", "a.bat")), a_bat=b"pip")
    command = "patchlock patch apply mini --source ."
    error = engine.incomplete_error(patched, "here", command, ways=("correct the patch", "use another commit"))
    assert error is not None
    assert error.remedy == (
        "correct the patch, use another commit, or go on without them: "
        "`patchlock patch apply mini --source . --without one --without two`"
    )


def test_patch_that_is_left_out_is_not_a_failure() -> None:
    patched = engine.apply(patches(one=NEVER), {path("a_bat"): b"pip"}, skipped={"one": "by --without"})
    assert (patched.changes, patched.failures, engine.incomplete_error(patched, "here")) == ((), (), None)
    assert [outcome.kind for outcome in patched.outcomes] == [OutcomeKind.LEFT_OUT]
