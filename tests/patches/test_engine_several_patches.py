"""Several patches and files: a patch is atomic, its ensure must hold at the end, and nothing incomplete is used."""

from __future__ import annotations

import codecs
import dataclasses
from hashlib import sha256

import pytest
from test_engine import BATCH, CPU, OPTIONAL, PIN, after, patches, run

from patchlock.model.errors import PatchError
from patchlock.model.patch import Located, OutcomeKind, Refusal, Site
from patchlock.model.text_files import Edit, SourceText
from patchlock.patches.engine import apply, require_complete


def test_patch_blocked_in_one_file_changes_none_and_the_others_go_on() -> None:
    patched = run(patches(cpu=CPU, pin=PIN), a_py=b'x = "cuda"', b_py=b"f'{\"cuda\"}'", requirements_txt=b"av==11\n")
    assert after(patched) == {"requirements.txt": b"av==12.0\n"}
    assert [(o.patch, str(o.path), o.kind.value) for o in patched.outcomes] == [
        ("cpu", "a.py", "needed"),
        ("cpu", "b.py", "ambiguous"),
        ("pin", "requirements.txt", "needed"),
    ]
    assert patched.failures == ()


def test_each_patch_works_on_the_result_of_those_before_it() -> None:
    again = (
        BATCH.replace('new = "rem"', 'new = "echo"')
        .replace('old = "pip"', 'old = "rem"')
        .replace('text = "pip"', 'text = "rem"')
    )
    assert after(run(patches(one=BATCH, two=again), a_bat=b"pip\r\n")) == {"a.bat": b"echo\r\n"}
    patched = run(patches(two=again, one=BATCH), a_bat=b"pip\r\n")
    assert after(patched) == {"a.bat": b"rem\r\n"}


HELPER = rf"""
op = "add-file"
paths = ["helper.py"]
content = "x = \"cuda\"\n"
ensure = [{{ check = "file-is", sha256 = "{sha256(b'x = "cuda"' + bytes([10])).hexdigest()}" }}]
"""


def test_patched_twice_changes_nothing() -> None:
    # The helper stays as it is made: the patches before it do not see it, also where it was made before.
    chosen = patches(cpu=CPU, batch=BATCH, pin=PIN, optional=OPTIONAL, helper=HELPER)
    files = {"a_py": b'import deepspeed\nx = "cuda"', "a_bat": b"pip", "requirements_txt": b"av==11\n"}
    once = run(chosen, **files)
    assert len(once.changes) == 4
    twice = apply(chosen, {change.path: change.after for change in once.changes})
    assert (twice.changes, twice.failures) == ((), ())
    assert {outcome.kind.value for outcome in twice.outcomes} == {"fixed upstream"}


WRONG_ENSURE = BATCH.replace('check = "lacks", text = "pip"', 'check = "contains", text = "never"')


def test_patch_whose_ensure_does_not_hold_is_left_out() -> None:
    patched = run(patches(wrong=WRONG_ENSURE, cpu=CPU), a_bat=b"pip", b_bat=b"pip never", a_py=b'x = "cuda"')
    assert after(patched) == {"a.py": b'x = pick("cpu")'}
    assert patched.failures == ("wrong: a.bat: the text `never` is missing",)


def test_ensure_is_asked_of_files_that_are_fixed_upstream_too() -> None:
    patched = run(patches(wrong=WRONG_ENSURE), a_bat=b"rem")
    assert patched.failures == ("wrong: a.bat: the text `never` is missing",)


def test_ensure_is_not_asked_of_files_that_the_patch_does_not_touch() -> None:
    contains = BATCH.replace('check = "lacks", text = "pip"', 'check = "contains", text = "rem"')
    patched = run(patches(one=contains), a_bat=b"dir", b_bat=b"pip")
    assert (after(patched), patched.failures) == ({"b.bat": b"rem"}, ())


def test_later_patch_that_breaks_an_earlier_ensure_is_a_failure() -> None:
    back = (
        BATCH.replace('old = "pip"', 'old = "rem"').replace('new = "rem"', 'new = "pip"').replace("lacks", "contains")
    )
    patched = run(patches(one=BATCH, two=back), a_bat=b"pip")
    assert patched.failures == ("one: a.bat: the text `pip` is still on line 1, after all patches",)


def test_character_that_the_encoding_lacks_is_a_failure() -> None:
    patched = run(patches(one=BATCH.replace('"rem"', '"→"')), a_bat=b"\xe9 pip", b_bat=b"pip")
    assert patched.failures == ("one: a.bat: its encoding (latin-1) lacks a character of the patch",)
    assert patched.changes == ()


def test_utf_16_stays_utf_16() -> None:
    data = codecs.BOM_UTF16_LE + "é pip\r\n".encode("utf-16-le")
    assert after(run(patches(one=BATCH), a_bat=data)) == {
        "a.bat": codecs.BOM_UTF16_LE + "é rem\r\n".encode("utf-16-le")
    }


@dataclasses.dataclass(frozen=True)
class Append:
    """An op with a mistake: it always finds the same to do, or refuses what it did."""

    text: str
    refused: str = "none"

    def locate(self, source: SourceText) -> Located:
        if self.refused in source.text:
            return Located(refusals=(Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why="it is there"),))
        end = len(source.text)
        return Located(edits=(Edit(start=end, end=end, text=self.text),), sites=(Site(line=1, text=""),))


@pytest.mark.parametrize(
    ("op", "failure"),
    [
        (Append("pip"), "one: a.bat: applied twice it changes the file again"),
        (Append("\0"), "one: a.bat: the patched file cannot be read: it has NUL bytes"),
        (Append("X", refused="X"), "one: a.bat: the patched file is refused at line 1: it is there"),
    ],
    ids=["again", "not-text", "refused"],
)
def test_op_that_does_not_settle_is_a_failure(op: Append, failure: str) -> None:
    [patch] = patches(one=BATCH.replace('"lacks", text = "pip"', '"contains", text = "X"'))
    patched = run((dataclasses.replace(patch, op=op),), a_bat=b"pip")
    assert patched.failures[0] == failure
    assert patched.changes == ()


# --- require_complete -------------------------------------------------------------------------------------------------


def test_complete_result_is_accepted() -> None:
    require_complete(run(patches(cpu=CPU, batch=BATCH), a_py=b'x = "cuda"\ny = pick("cpu")'), "mini at 0123")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param(
            {"cpu": CPU + "expect = { sites = 2, exact = true }"},
            "1 patch does not do what it says, so nothing was changed (mini at 0123); "
            "correct the patch, or leave it out (one of a shared set by `without` in [app] of app.toml)\n"
            "  cpu: a.py:2: ambiguous: 2 places expected, 1 found",
            id="blocked",
        ),
        pytest.param(
            {"wrong": WRONG_ENSURE.replace("pip", "cd").replace("*.bat", "a.bat"), "cpu": CPU},
            "1 patch does not do what it says, so nothing was changed (mini at 0123); "
            "correct the patch, or leave it out (one of a shared set by `without` in [app] of app.toml)\n"
            "  wrong: a.bat: the text `never` is missing",
            id="failed",
        ),
        pytest.param(
            {
                "batch": BATCH.replace("*.bat", 'b.bat", "c.bat'),
                "wrong": WRONG_ENSURE.replace("pip", "cd").replace("*.bat", "a.bat"),
                "cpu": CPU,
            },
            "2 patches do not do what they say, so nothing was changed (mini at 0123); "
            "correct the patch, or leave it out (one of a shared set by `without` in [app] of app.toml)\n"
            "  wrong: a.bat: the text `never` is missing\n"
            "  batch: b.bat: unparsable upstream: it has NUL bytes\n"
            "  batch: c.bat: unparsable upstream: it has NUL bytes",
            id="failed-and-blocked",
        ),
    ],
)
def test_incomplete_result_is_refused_with_every_reason(texts: dict[str, str], message: str) -> None:
    patched = run(patches(**texts), a_py=b'x = 1\ny = "cuda"\n', a_bat=b"cd pip", b_bat=b"\0", c_bat=b"\0")
    with pytest.raises(PatchError) as caught:
        require_complete(patched, "mini at 0123")
    assert str(caught.value) == message


def test_patch_that_fails_in_two_files_is_counted_once() -> None:
    patched = run(patches(wrong=WRONG_ENSURE), a_bat=b"pip", b_bat=b"pip")
    assert len(patched.failures) == 2
    with pytest.raises(PatchError) as caught:
        require_complete(patched, "mini at 0123")
    assert caught.value.what == "1 patch does not do what it says, so nothing was changed"


def test_outcomes_name_the_lines_of_upstreams_file() -> None:
    again = CPU.replace("pattern = '\"cuda\"'", "pattern = '\"gpu\"'").replace('value = "cuda"', 'value = "gpu"')
    data = b'import deepspeed\nx = "cuda"\n\ny = "gpu"\n'
    patched = run(patches(optional=OPTIONAL, cpu=CPU, other=again), a_py=data)
    assert patched.failures == ()
    assert [[(s.line, s.text) for s in outcome.sites] for outcome in patched.outcomes] == [
        [(1, "import deepspeed")],
        [(2, 'x = "cuda"')],
        [(4, 'y = "gpu"')],
    ]
