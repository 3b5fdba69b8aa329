"""Patches over sources with the real ops: one outcome per patch and file, and what is kept."""

from __future__ import annotations

import tomllib
from pathlib import PurePosixPath

import pytest
from miniature import APP

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.patch import Outcome, OutcomeKind, Patch, Patched, Site
from patchlock.patches.engine import apply, failed_ensures

CPU = """
op = "replace-expression"
paths = ["**/*.py"]
pattern = '"cuda"'
replacement = 'pick("cpu")'
ensure = [{ check = "no-string", value = "cuda" }]
"""
BATCH = """
op = "replace-text"
paths = ["*.bat"]
old = "pip"
new = "rem"
ensure = [{ check = "lacks", text = "pip" }]
"""
PIN = """
op = "set-requirement"
paths = ["requirements*.txt"]
name = "av"
specifier = "==12.0"
ensure = [{ check = "requirement", name = "av", specifier = "==12.0" }]
"""
NOTE = """
op = "unified-diff"
paths = ["README.md"]
literal = ["priorities"]
diff = "@@ -1 +1,2 @@\\n priorities\\n+for everybody\\n"
ensure = [{ check = "contains", text = "for everybody" }]
"""
OPTIONAL = """
op = "optional-import"
paths = ["*.py"]
package = "deepspeed"
ensure = [{ check = "imports-without", package = "deepspeed" }]
"""


def patches(**texts: str) -> tuple[Patch, ...]:
    """Read patches, each id with the rest of its table."""
    tables = [
        f'[[patch]]\nid = "{patch_id.replace("_", "-")}"\nwhy = "w"\nsource = "s"\n{text}'
        for patch_id, text in texts.items()
    ]
    text = APP.partition("[[patch]]")[0] + "\n".join(tables)
    report = Report(file="app.toml", text="")
    app = _apps_and_profiles.app(Table(tomllib.loads(text), report), "mini")
    assert report.problems == []
    return app.patches


def run(chosen: tuple[Patch, ...], **files: bytes) -> Patched:
    """Apply patches to files; in a name `__` is a slash and `_` a dot."""
    return apply(chosen, {path(name): data for name, data in files.items()})


def path(name: str) -> PurePosixPath:
    """Give the path of a keyword."""
    return PurePosixPath(name.replace("__", "/").replace("_", "."))


def after(patched: Patched) -> dict[str, bytes]:
    """Give the files that changed."""
    return {str(change.path): change.after for change in patched.changes}


@pytest.mark.parametrize(
    ("text", "files", "kind", "where", "sites", "detail"),
    [
        pytest.param(
            CPU,
            {"a_py": b'x = "cuda"\n'},
            OutcomeKind.NEEDED,
            "a.py",
            [Site(line=1, text='x = "cuda"')],
            "",
            id="needed",
        ),
        pytest.param(
            CPU,
            {"a_py": b'x = pick("cpu")\n'},
            OutcomeKind.FIXED_UPSTREAM,
            "a.py",
            [Site(line=1, text='x = pick("cpu")')],
            "",
            id="fixed",
        ),
        pytest.param(
            CPU,
            {"a_py": b'x = pick("cpu")\ny = "cuda"\nz = pick("cpu")'},
            OutcomeKind.PARTLY_FIXED,
            "a.py",
            [Site(line=2, text='y = "cuda"')],
            "2 already as wanted",
            id="partly",
        ),
        pytest.param(CPU, {"a_py": b"x = 1\n"}, OutcomeKind.GONE, None, [], "nothing there needs it", id="gone"),
        pytest.param(
            CPU.replace('"**/*.py"', '"a.py", "b.py"'),
            {"a_txt": b"x"},
            OutcomeKind.GONE,
            None,
            [],
            "no file matches a.py, b.py",
            id="gone-with-its-file",
        ),
        pytest.param(
            NOTE,
            {"README_md": b"goals\n"},
            OutcomeKind.AMBIGUOUS,
            "README.md",
            [],
            "it finds nothing to change there, and what it promises does not hold: the text `for everybody` is missing",
            id="promises-what-is-not-there",
        ),
        pytest.param(
            """
            op = "replace-expression"
            paths = ["a.py"]
            pattern = "speed"
            replacement = "0.5"
            within = ["Model.load", "there"]
            ensure = [{ check = "contains", text = "0.5" }]
            """,
            {"a_py": b"def loads():\n    return speed\n\ndef there():\n    pass\n"},
            OutcomeKind.AMBIGUOUS,
            "a.py",
            [],
            "it finds nothing to change there, as the file has no Model.load, and what it promises does not hold: "
            "the text `0.5` is missing",
            id="function-is-gone",
        ),
        pytest.param(
            NOTE.replace('everybody" }', 'everybody" }, { check = "lacks", text = "for nobody" }'),
            {"README_md": b"goals\n"},
            OutcomeKind.GONE,
            None,
            [],
            "nothing there needs it",
            id="forbids-what-is-gone",
        ),
        pytest.param(
            NOTE.replace('everybody" }', 'everybody" }, { check = "lacks", text = "for nobody" }'),
            {"README_md": b"goals for nobody\n"},
            OutcomeKind.AMBIGUOUS,
            "README.md",
            [],
            "it finds nothing to change there, and what it promises does not hold: the text `for nobody` is still on line 1",
            id="forbids-what-is-still-there",
        ),
        pytest.param(
            NOTE.replace("README.md", "*.md"),
            {"README_md": b"goals\n"},
            OutcomeKind.GONE,
            None,
            [],
            "nothing there needs it",
            id="promises-it-only-where-it-has-a-place",
        ),
        pytest.param(
            NOTE,
            {"README_md": b"for everybody\n"},
            OutcomeKind.GONE,
            None,
            [],
            "nothing there needs it",
            id="holds",
        ),
        pytest.param(
            PIN.replace("requirements*.txt", "requirements.txt"),
            {"requirements_txt": b"numpy\n"},
            OutcomeKind.GONE,
            None,
            [],
            "nothing there needs it",
            id="requirement-that-upstream-dropped",
        ),
        pytest.param(
            CPU + "expect.sites = 1",
            {"a_py": b'x = "cuda", "cuda"\n'},
            OutcomeKind.NEW_SITES,
            "a.py",
            [Site(line=1, text='x = "cuda", "cuda"')] * 2,
            "2 places, the author saw 1",
            id="new-sites",
        ),
        pytest.param(
            CPU + "expect.sites = 3",
            {"a_py": b'x = "cuda"\n'},
            OutcomeKind.NEEDED,
            "a.py",
            [Site(line=1, text='x = "cuda"')],
            "",
            id="fewer-sites",
        ),
        pytest.param(
            CPU + "expect = { sites = 1, exact = true }",
            {"a_py": b'x = "cuda"\n'},
            OutcomeKind.NEEDED,
            "a.py",
            [Site(line=1, text='x = "cuda"')],
            "",
            id="exact",
        ),
        pytest.param(
            CPU + "expect = { sites = 1, exact = true }",
            {"a_py": b'x = "cuda"\ny = "cuda"\n'},
            OutcomeKind.AMBIGUOUS,
            "a.py",
            [Site(line=1, text='x = "cuda"'), Site(line=2, text='y = "cuda"')],
            "1 place expected, 2 found",
            id="not-exact",
        ),
        pytest.param(
            CPU + "expect = { sites = 2, exact = true }",
            {"a_py": b'x = "cuda"\n'},
            OutcomeKind.AMBIGUOUS,
            "a.py",
            [Site(line=1, text='x = "cuda"')],
            "2 places expected, 1 found",
            id="too-few",
        ),
        pytest.param(
            PIN,
            {"requirements_txt": b"av==11 --hash=sha256:00\n"},
            OutcomeKind.AMBIGUOUS,
            "requirements.txt",
            [Site(line=1, text="the file is hash-locked; it must be locked again, not edited")],
            "the file is hash-locked; it must be locked again, not edited",
            id="refused",
        ),
        pytest.param(
            BATCH,
            {"a_bat": b"pip\0"},
            OutcomeKind.UNPARSABLE,
            "a.bat",
            [],
            "it has NUL bytes",
            id="undecodable",
        ),
    ],
)
def test_outcome(
    text: str, files: dict[str, bytes], kind: OutcomeKind, where: str | None, sites: list[Site], detail: str
) -> None:
    [patch] = patches(one=text)
    assert run((patch,), **files).outcomes == (
        Outcome(
            patch="one",
            op=patch.op_name,
            kind=kind,
            path=PurePosixPath(where) if where else None,
            sites=tuple(sites),
            detail=detail,
        ),
    )


@pytest.mark.parametrize(
    ("text", "data", "kind"),
    [
        pytest.param(CPU, b'x = "cuda\n', OutcomeKind.UNPARSABLE, id="no-python"),
        pytest.param(OPTIONAL, b"from deepspeed import *\n", OutcomeKind.REQUIRED_AT_IMPORT, id="required"),
    ],
)
def test_what_an_op_refuses_blocks_the_patch(text: str, data: bytes, kind: OutcomeKind) -> None:
    patched = run(patches(one=text), a_py=data)
    [outcome] = patched.outcomes
    assert (outcome.kind, outcome.path, bool(outcome.detail)) == (kind, PurePosixPath("a.py"), True)
    assert (patched.changes, patched.failures) == ((), ())


def test_expected_sites_are_counted_over_all_files() -> None:
    exact = CPU + "expect = { sites = 2, exact = true }"
    patched = run(patches(one=exact), a_py=b'x = "cuda"', b_py=b'x = "cuda"')
    assert [outcome.kind for outcome in patched.outcomes] == [OutcomeKind.NEEDED] * 2
    patched = run(patches(one=exact), a_py=b'x = "cuda"', b_py=b'x = "cuda"', c_py=b'x = "cuda"')
    assert [outcome.detail for outcome in patched.outcomes] == ["2 places expected, 3 found"] * 3
    assert patched.changes == ()


def test_changes_are_sorted_and_only_of_files_that_differ() -> None:
    patched = run(patches(one=CPU), z_py=b'x = "cuda"', b__c_py=b"1", a_py=b'x = "cuda"\r\n', m_py=b'x = pick("cpu")')
    assert [(str(c.path), c.before, c.after) for c in patched.changes] == [
        ("a.py", b'x = "cuda"\r\n', b'x = pick("cpu")\r\n'),
        ("z.py", b'x = "cuda"', b'x = pick("cpu")'),
    ]
    assert [str(outcome.path) for outcome in patched.outcomes] == ["a.py", "m.py", "z.py"]


def test_outcomes_are_in_the_order_of_the_patches_then_of_the_paths() -> None:
    patched = run(patches(z=BATCH, a=CPU), b_bat=b"pip\0", a_bat=b"pip", c_py=b'x = "cuda"')
    assert [(o.patch, str(o.path)) for o in patched.outcomes] == [("z", "a.bat"), ("z", "b.bat"), ("a", "c.py")]


ASKED = """
op = "insert-statement"
paths = ["a.py"]
below = "device = a"
statement = "device = helper.asked(device)\\nhelper.tell(device)"
ensure = [{ check = "calls", callee = "helper.asked" }]
"""


@pytest.mark.parametrize(
    ("line", "kind", "sites"),
    [
        pytest.param(
            "device = helper.asked(device, True)",
            OutcomeKind.FIXED_UPSTREAM,
            [Site(line=3, text="device = helper.asked(device, True)")],
            id="the-promise-holds",
        ),
        pytest.param(
            "device = device",
            OutcomeKind.AMBIGUOUS,
            [
                Site(
                    line=4,
                    text="`device = helper.asked(device) …` stands here in an edited form; "
                    "write it as the patch has it, or remove it",
                )
            ],
            id="it-does-not",
        ),
    ],
)
def test_what_somebody_has_edited_stays_if_the_promise_holds(line: str, kind: OutcomeKind, sites: list[Site]) -> None:
    patched = run(patches(one=ASKED), a_py=f"import helper\ndevice = a\n{line}\nhelper.tell(device)\n".encode())
    [outcome] = patched.outcomes
    assert (outcome.kind, list(outcome.sites)) == (kind, sites)
    assert "edited form" in outcome.detail
    assert (patched.changes, patched.failures) == ((), ())


XPU = """
op = "replace-expression"
paths = ["a.py"]
literal = ["load"]
pattern = "'mps'"
replacement = "'xpu'"
ensure = [{ check = "has-expression", expression = "'xpu'" }, { check = "no-string", value = "mps" }]
"""


@pytest.mark.parametrize("value", ["xpu", "npu"], ids=["the-patch's", "a-third-one"])
def test_value_that_stands_somewhere_is_not_called_fixed(value: str) -> None:
    (patch,) = patches(one=XPU)
    text = f"x = load('{value}')\ny = old('xpu')\n"
    assert [outcome.kind for outcome in run((patch,), a_py=text.encode()).outcomes] == [OutcomeKind.GONE]


SEED = """
op = "insert-statement"
paths = ["a.py"]
statement = "seed(0)"
below = "$model = load($*rest)"
ensure = [{ check = "has-statement", statement = "seed(0)" }]
"""
ECHO = """
op = "unified-diff"
paths = ["run.sh"]
diff = "@@ -1,2 +1,3 @@\\n a\\n+echo on\\n b\\n"
ensure = [{ check = "contains", text = "echo on\\n" }]
"""
SWAP = """
op = "unified-diff"
paths = ["run.sh"]
diff = "@@ -1,5 +1,5 @@\\n a\\n b\\n-use one\\n+use two\\n c\\n d\\n"
ensure = [{ check = "contains", text = "use two\\n" }]
"""
BOTH = ECHO.replace('b\\n"', 'b\\n@@ -3 +4 @@\\n-c\\n+C\\n"')


@pytest.mark.parametrize(
    ("text", "before"),
    [
        pytest.param(SEED, {"a_py": b"seed(0)\nx = load(1)\n"}, id="statement"),
        pytest.param(ECHO, {"run_sh": b"echo on\na\nb\n"}, id="line-beside-its-place"),
        pytest.param(ECHO, {"run_sh": b"a\nnew\nb\necho on\n"}, id="line-whose-place-has-changed"),
        pytest.param(SWAP, {"run_sh": b"a\nb\nuse two\nnew\nd\n"}, id="replaced-beside-a-neighbour"),
        pytest.param(BOTH, {"run_sh": b"a\nnew\nb\nC\necho on\n"}, id="line-and-the-other-hunk-is-there"),
    ],
)
def test_what_upstream_has_added_elsewhere_is_not_added_again(text: str, before: dict[str, bytes]) -> None:
    (patch,) = patches(one=text)
    patched = run((patch,), **before)
    assert (patched.changes, patched.failures) == ((), ())
    (outcome,) = patched.outcomes
    assert outcome.kind is OutcomeKind.FIXED_UPSTREAM
    assert outcome.detail == "in an edited form or another place: what it promises holds"
    ((name, data),) = before.items()
    assert failed_ensures(patch, path(name), data) == ()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(b"a\nb\nuse three\nc\nd\nuse two\n", id="a-third-in-its-place"),
        pytest.param(b"a\nb\nuse two\nnew\nuse one\n", id="the-former-beside-it"),
    ],
)
def test_line_that_stands_elsewhere_has_not_replaced_the_one_of_a_diff(before: bytes) -> None:
    patched = run(patches(one=SWAP), run_sh=before)
    assert [outcome.kind for outcome in patched.outcomes] == [OutcomeKind.AMBIGUOUS]


@pytest.mark.parametrize(
    ("text", "before", "written", "detail"),
    [
        pytest.param(
            SEED,
            {"a_py": b"seed(0)\nx = load(1)\ny = load(2)\n"},
            b"seed(0)\nx = load(1)\nseed(0)\ny = load(2)\nseed(0)\n",
            "the file had what it promises before: see whether it is there twice now",
            id="none-of-two-places-is-done",
        ),
        pytest.param(
            SEED,
            {"a_py": b"x = load(1)\nseed(0)\ny = load(2)\n"},
            b"x = load(1)\nseed(0)\ny = load(2)\nseed(0)\n",
            "1 already as wanted",
            id="one-of-two-places-is-done",
        ),
        pytest.param(
            SEED.replace("\nensure", "\nexpect = { sites = 2 }\nensure"),
            {"a_py": b"seed(0)\nx = load(1)\n"},
            b"seed(0)\nx = load(1)\nseed(0)\n",
            "the file had what it promises before: see whether it is there twice now",
            id="one-of-two-places-is-left",
        ),
        pytest.param(
            BOTH,
            {"run_sh": b"echo on\na\nb\nc\n"},
            b"echo on\na\necho on\nb\nC\n",
            "",
            id="beside-another-hunk",
        ),
    ],
)
def test_other_places_are_done_all_the_same(text: str, before: dict[str, bytes], written: bytes, detail: str) -> None:
    patched = run(patches(one=text), **before)
    assert patched.failures == ()
    assert [change.after for change in patched.changes] == [written]
    assert [outcome.detail for outcome in patched.outcomes] == [detail]


def test_hunk_that_is_needed_is_not_passed_over_for_one_that_is_elsewhere() -> None:
    patched = run(patches(one=BOTH), run_sh=b"a\nnew\nb\nc\necho on\n")
    assert (patched.changes, [outcome.kind for outcome in patched.outcomes]) == ((), [OutcomeKind.AMBIGUOUS])
