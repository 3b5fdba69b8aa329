"""The ops on requirement files: what must change, what must not, and that they settle."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from patchlock.model.patch import Located, Op, OutcomeKind, Refusal, Site
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops.requirements.ops import AddRequirement, DropRequirement, RenameRequirement, SetRequirement

LOCKED = "the file is hash-locked; it must be locked again, not edited"


def set_to(specifier: str, name: str = "torch", marker: str = "") -> SetRequirement:
    return SetRequirement(name=canonicalize_name(name), specifier=SpecifierSet(specifier), marker=marker)


def drop(name: str = "torch") -> DropRequirement:
    return DropRequirement(name=canonicalize_name(name))


def add(requirement: str) -> AddRequirement:
    return AddRequirement(requirement=Requirement(requirement))


def rename(to: str, name: str = "onnxruntime-gpu") -> RenameRequirement:
    return RenameRequirement(name=canonicalize_name(name), to=Requirement(to))


def read(data: bytes, path: str = "requirements.txt") -> SourceText:
    source = decode(PurePosixPath(path), data)
    assert isinstance(source, SourceText)
    return source


def locate(op: Op, text: str, path: str = "requirements.txt") -> Located:
    return op.locate(read(text.encode(), path))


def patched(op: Op, data: bytes) -> bytes:
    """Apply an op, and see that it settles: the second time there is nothing to edit."""
    source = read(data)
    located = op.locate(source)
    assert not located.refusals
    result = encode(splice(source, located.edits))
    again = op.locate(read(result))
    assert not again.edits
    assert not again.sites
    assert not again.refusals
    return result


CHANGES = [
    # set-requirement
    pytest.param(set_to("==2.6.0"), "torch\n", "torch==2.6.0\n", id="set-bare"),
    pytest.param(set_to("==2.6.0"), "torch>=2.0,<3", "torch==2.6.0", id="set-range-without-final-newline"),
    pytest.param(set_to("==2.6.0"), "torch == 2.5.1+cu124  # c\n", "torch == 2.6.0  # c\n", id="set-spaced-and-local"),
    pytest.param(set_to("<3,>=2"), "torch >= 1\n", "torch < 3,>= 2\n", id="set-spaced-to-two-clauses"),
    pytest.param(set_to("==2.6.0"), "\ttorch\t(>=2)\t# c\n", "\ttorch\t==2.6.0\t# c\n", id="set-parentheses-and-tabs"),
    pytest.param(set_to("==2.6.0"), "Torch[a, b]>=2;os_name=='nt'\n", "Torch[a, b]==2.6.0;os_name=='nt'\n", id="set-extras-marker"),
    pytest.param(set_to("==2.6.0"), "torch[a] ; os_name=='nt'\n", "torch[a]==2.6.0 ; os_name=='nt'\n", id="set-no-specifier"),
    pytest.param(set_to("==2.6.0"), "torch===2.5\nb\nTORCH\n", "torch==2.6.0\nb\nTORCH==2.6.0\n", id="set-duplicates"),
    pytest.param(set_to("==1", "a-b.c"), "A_b-C==2\n", "A_b-C==1\n", id="set-spelling-of-the-name"),
    pytest.param(set_to("==2.6.0"), "torch \\\n  >=2 \\\n  ,<3 # c\n", "torch \\\n  ==2.6.0 # c\n", id="set-continued"),
    pytest.param(set_to("==2.6.0"), "torch @ https://h/t.whl ; os_name=='nt' # c\n", "torch==2.6.0 ; os_name=='nt' # c\n", id="set-url"),
    pytest.param(set_to("==2.6.0"), "torch[a]@https://h/t.whl; os_name=='nt'\n", "torch[a]==2.6.0; os_name=='nt'\n", id="set-url-tight"),
    pytest.param(set_to("==2.6.0"), "git+https://h/o/r#egg=torch[a] # c\n", "torch[a]==2.6.0 # c\n", id="set-egg"),
    pytest.param(set_to("==2.6.0"), "-e git+https://h/o/r#egg=torch # c\n", "torch==2.6.0 # c\n", id="set-editable"),
    pytest.param(set_to("==2.6.0"), "-e \"torch @ git+https://h/o/r ; os_name=='nt'\"\n", 'torch==2.6.0; os_name == "nt"\n', id="set-editable-marker"),
    pytest.param(set_to("==2.6.0"), "torch>=2 --config-settings=a=b\n", "torch==2.6.0 --config-settings=a=b\n", id="set-option-kept"),
    pytest.param(set_to("==2", marker="os_name == 'nt'"), "torch==1; os_name==\"nt\"\ntorch==1; os_name!='nt'\ntorch\n", "torch==2; os_name==\"nt\"\ntorch==1; os_name!='nt'\ntorch\n", id="set-marker"),
    pytest.param(set_to(""), "torch == 2 # c\n", "torch # c\n", id="set-unpins"),
    pytest.param(set_to(""), "torch @ https://h/t.zip # c\n", "torch # c\n", id="set-unpins-url"),
    pytest.param(set_to("==2.6.0"), "torch>=2.1.0+cu118 # c\n", "torch==2.6.0 # c\n", id="set-local-version-in-a-range"),
    pytest.param(set_to("==2.6.0"), "torch[a]>=1.* ;os_name=='nt'\n", "torch[a]==2.6.0 ;os_name=='nt'\n", id="set-wildcard-in-a-range"),
    pytest.param(set_to("==2.6.0"), "torch=2.0\n", "torch==2.6.0\n", id="set-one-equals-sign"),
    pytest.param(set_to(""), "torch = 2.0\n", "torch\n", id="set-unpins-unreadable"),
    # drop-requirement
    pytest.param(drop(), "torch>=2.1.0+cu118 # c\ntorch=1\ntorch>=1 ; x\nb\n", "b\n", id="drop-unreadable-specifiers"),
    pytest.param(drop(), "a\ntorch>=2 # c\nb\n", "a\nb\n", id="drop-middle"),
    pytest.param(drop(), "a\r\ntorch", "a\r\n", id="drop-last-without-newline"),
    pytest.param(drop(), "torch", "", id="drop-only-line"),
    pytest.param(drop(), "torch==2 \\\n  --hash=sha256:00 \\\n  --hash=sha256:11\nb\n", "b\n", id="drop-hashes"),
    pytest.param(drop(), "torch\nb\n-e git+https://h/o/r#egg=Torch\n", "b\n", id="drop-every-one"),
    # add-requirement
    pytest.param(add("a==1"), "", "a==1\n", id="add-to-empty-file"),
    pytest.param(add("a==1"), "b\r\n", "b\r\na==1\r\n", id="add-crlf"),
    pytest.param(add("a[x]<2,>=1; os_name=='nt'"), "b", 'b\na[x]<2,>=1; os_name == "nt"', id="add-without-final-newline"),
    pytest.param(add("a==1"), "b \\", "b \\\n\na==1", id="add-behind-open-continuation"),
    pytest.param(add("a==1"), "b \\\n", "b \\\n\na==1\n", id="add-behind-open-continuation-with-newline"),
    pytest.param(add("a==1"), "# c \\\n", "# c \\\na==1\n", id="add-behind-comment-with-backslash"),
    # rename-requirement
    pytest.param(rename("a==1"), "onnxruntime-gpu[b]>=1.* ; os_name=='nt' # c\n", "a[b]==1 ; os_name=='nt' # c\n", id="rename-unreadable-specifier"),
    pytest.param(rename("onnxruntime==1.20"), "Onnxruntime_GPU >=1 ; os_name=='nt' # c\n", "onnxruntime==1.20 ; os_name=='nt' # c\n", id="rename-keeps-marker"),
    pytest.param(rename("onnxruntime; os_name=='posix'"), "onnxruntime-gpu; os_name=='nt' # c\n", 'onnxruntime; os_name == "posix" # c\n', id="rename-new-marker"),
    pytest.param(rename("onnxruntime"), "onnxruntime-gpu[b,a]\nonnxruntime-gpu==1", "onnxruntime[a,b]\nonnxruntime", id="rename-all-keeps-extras"),
    pytest.param(rename("onnxruntime[x]"), "onnxruntime-gpu[b,a]", "onnxruntime[x]", id="rename-new-extras"),
    pytest.param(rename("a @ https://h/a.zip"), "onnxruntime-gpu;os_name=='nt'\n", "a @ https://h/a.zip ;os_name=='nt'\n", id="rename-to-url"),
    pytest.param(rename("a==1"), "onnxruntime-gpu @ https://h/o.whl ; os_name=='nt'\n", "a==1 ; os_name=='nt'\n", id="rename-from-url"),
    pytest.param(rename("onnxruntime-gpu @ https://h/o.whl"), "onnxruntime-gpu==1\n", "onnxruntime-gpu @ https://h/o.whl\n", id="rename-to-own-name-with-url"),
    pytest.param(rename("a==1"), "-e 'onnxruntime-gpu @ git+https://h/r ; os_name==\"nt\"'\nb\n", 'a==1; os_name == "nt"\nb\n', id="rename-editable"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "before", "after"), CHANGES)
def test_changes(op: Op, before: str, after: str) -> None:
    assert patched(op, before.encode()).decode() == after


UNTOUCHED = [
    pytest.param(set_to("==2.6.0"), "torchaudio\nmy-torch\n# torch\nb # torch\n-r torch.txt\n", (), id="set-other-names"),
    pytest.param(set_to("==2.6.0"), "git+https://h/torch/r\ntorch/r\ngit+https://h/pytorch/r-torch\n", (), id="set-owners"),
    pytest.param(set_to("==2.6.0"), "torch==2.6\n", (Site(line=1, text="torch==2.6"),), id="set-equal-specifier"),
    pytest.param(set_to("<3,>=2"), "b\ntorch \\\n >=2,<3 # c\n", (Site(line=2, text="torch >=2,<3"),), id="set-other-order"),
    pytest.param(set_to("==2.6"), "torch==2.6 --hash=sha256:00\n", (Site(line=1, text="torch==2.6"),), id="set-hash-locked-as-wanted"),
    pytest.param(set_to("==2.6.0"), "foo bar # torch\n", (), id="set-unreadable-line-of-another"),
    pytest.param(drop(), "torchaudio==2\n# torch\n-e .\n", (), id="drop-other-names"),
    pytest.param(drop("deepspeed"), "deepspeeв==11.2\ndeepspeed-mii>=1.*\n", (), id="drop-names-that-are-not-plain"),
    pytest.param(add("a[x]==1"), "A[y,X]==1.0 # c\n", (Site(line=1, text="A[y,X]==1.0"),), id="add-present-with-more-extras"),
    pytest.param(add("a; os_name=='nt'"), "a\n", (Site(line=1, text="a"),), id="add-present-everywhere"),
    pytest.param(add("a"), "a --hash=sha256:00\n", (Site(line=1, text="a"),), id="add-present-in-locked-file"),
    pytest.param(rename("onnxruntime==1"), "b\nOnnxruntime==2\n", (Site(line=2, text="Onnxruntime==2"),), id="rename-done-upstream"),
    pytest.param(rename("a==1", "a"), "A[x]==1.0; os_name=='nt'\n", (Site(line=1, text="A[x]==1.0; os_name=='nt'"),), id="rename-to-itself"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "settled"), UNTOUCHED)
def test_leaves_alone(op: Op, text: str, settled: tuple[Site, ...]) -> None:
    assert locate(op, text) == Located(settled=settled)


REFUSED = [
    pytest.param(set_to("==2"), "b\ntorch==1 --hash=sha256:00", (2, OutcomeKind.AMBIGUOUS, LOCKED), id="set-hash-locked"),
    pytest.param(rename("a"), "onnxruntime-gpu --hash=sha256:00", (1, OutcomeKind.AMBIGUOUS, LOCKED), id="rename-hash-locked"),
    pytest.param(add("a"), "b\nc --hash=sha256:00\nd --hash=sha256:00\n", (2, OutcomeKind.AMBIGUOUS, LOCKED), id="add-hash-locked"),
    pytest.param(add("a"), "--require-hashes\n", (1, OutcomeKind.AMBIGUOUS, LOCKED), id="add-require-hashes"),
    *(
        pytest.param(add(wanted), f"b\n{line}\n", (2, OutcomeKind.AMBIGUOUS, "it already requires a, in another way; set-requirement can change it"), id=why)
        for wanted, line, why in (
            ("a==1", "a", "add-other-specifier"),
            ("a[x]", "a[y]", "add-missing-extra"),
            ("a", "a; os_name=='nt'", "add-only-under-a-marker"),
            ("a", "a @ https://h/a.zip", "add-url"),
            ("a @ https://h/a.zip", "a", "add-other-than-url"),
            ("a @ git+https://h/r", "-e 'a @ git+https://h/r'", "add-editable"),
        )
    ),
    pytest.param(
        drop(), "\nTorch 2.0 # c", (2, OutcomeKind.UNPARSABLE, "it mentions torch and cannot be read: it is not a requirement that pip can read: expected semicolon (after name with no version specifier) or end, at `2.0`"), id="unreadable"
    ),
    *(
        pytest.param(op, f"{line}\n", (1, OutcomeKind.AMBIGUOUS, why), id=f"{type(op).__name__}-{line}")
        for op in (set_to("==2"), rename("a", "torch"))
        for line, why in (
            ("torch>=1.* --hash=sha256:00", LOCKED),
            ("torch>=1 ; python_versoin<'3'", "it cannot be read, and not for its specifier: it is not a requirement that pip can read: expected a marker variable or quoted string, at `python_versoin<'3'`"),
            ("torch>=1 --pre", "it cannot be read, and not for its specifier: `--pre` is not an option that can stand here"),
        )
    ),
    *(
        pytest.param(op, f"{target} # c\n", (1, OutcomeKind.AMBIGUOUS, f"`{target}` does not say what it installs, which may be torch"), id=f"{type(op).__name__}-{target}")
        for op, target in (
            (set_to("==2"), "git+https://github.com/pytorch/torch.git@v2"),
            (drop(), "https://github.com/o/torch/archive/main.zip"),
            (add("torch"), "./libs/Torch"),
            (rename("a", "torch"), "https://h/torch-2.0.tar.gz#sha256=00"),
        )
    ),
    *(
        pytest.param(op, "torch\n", (1, OutcomeKind.UNPARSABLE, "tox.ini is none of the files whose requirements can be edited: requirement files (.txt, .in), pyproject.toml, setup.cfg, setup.py and conda's .yml"), id=type(op).__name__)
        for op in (set_to("==2"), drop(), add("a"), rename("a", "torch"))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("op", "text", "refusal"), REFUSED)
def test_refuses(op: Op, text: str, refusal: tuple[int, OutcomeKind, str]) -> None:
    located = locate(op, text, "tox.ini" if "tox.ini" in refusal[2] else "requirements-dev.in")
    line, kind, why = refusal
    assert located == Located(refusals=(Refusal(line=line, kind=kind, why=why),))


def test_the_other_lines_are_still_edited_beside_a_refused_one() -> None:
    located = locate(set_to("==2.6"), "torch 1\ntorch == 1  # c\n")
    assert [refusal.line for refusal in located.refusals] == [1]
    assert located.sites == (Site(line=2, text="torch == 1"),)
    assert splice(read(b"torch 1\ntorch == 1  # c\n"), located.edits).text == "torch 1\ntorch == 2.6  # c\n"


def test_add_names_the_line_that_will_be_added() -> None:
    assert locate(add("a"), "b\nc").sites == (Site(line=3, text="the end of the file"),)
    assert locate(add("a"), "b\nc\n").sites == (Site(line=3, text="the end of the file"),)
    assert locate(add("a"), "").sites == (Site(line=1, text="the end of the file"),)


@pytest.mark.parametrize(
    ("bom", "encoding", "newline"),
    [
        pytest.param(codecs.BOM_UTF8, "utf-8", "\r\n", id="utf-8-bom-crlf"),
        pytest.param(codecs.BOM_UTF16_LE, "utf-16-le", "\r\n", id="utf-16-le-bom-crlf"),
        pytest.param(codecs.BOM_UTF16_BE, "utf-16-be", "\n", id="utf-16-be-bom-lf"),
        pytest.param(b"", "latin-1", "\n", id="latin-1"),
        pytest.param(b"", "latin-1", "\r", id="latin-1-cr"),
    ],
)
def test_bytes_outside_the_change_are_kept(bom: bytes, encoding: str, newline: str) -> None:
    def written(*lines: str) -> bytes:
        return bom + newline.join(lines).encode(encoding)

    before = written("# café", "torch >=1\t# ü", "\tb  # ß", "onnxruntime-gpu # é")
    assert patched(set_to("==2.6"), before) == written("# café", "torch ==2.6\t# ü", "\tb  # ß", "onnxruntime-gpu # é")
    assert patched(drop(), before) == written("# café", "\tb  # ß", "onnxruntime-gpu # é")
    assert patched(add("a"), before) == written("# café", "torch >=1\t# ü", "\tb  # ß", "onnxruntime-gpu # é", "a")
    assert patched(rename("o"), before) == written("# café", "torch >=1\t# ü", "\tb  # ß", "o # é")


OTHERS = (
    "",
    "# torch==1",
    "numpy>=1  # torch",
    "torchaudio==2.0",
    "a[b]\t;os_name=='nt'",
    "-r torch.txt",
    "foo bar",
    " ",
)
TORCH = {
    "torch": "torch==2.6.0",
    " Torch == 1 # c": " Torch == 2.6.0 # c",
    "torch[a]>=2,<3 ;os_name=='nt'": "torch[a]==2.6.0 ;os_name=='nt'",
    "torch@https://h/t.zip\t# é": "torch==2.6.0\t# é",
    "torch==2.6": "torch==2.6",
    "torch \\\n ~=2.0": "torch \\\n ==2.6.0",
}
LINES = st.sampled_from((*OTHERS, *TORCH))
NEWLINES = st.sampled_from(("\n", "\r\n", "\r"))


@given(st.lists(st.tuples(LINES, NEWLINES), max_size=8))
def test_set_keeps_all_other_lines_byte_for_byte(lines: list[tuple[str, str]]) -> None:
    before = "".join(f"{line}{newline}" for line, newline in lines)
    after = "".join(f"{TORCH.get(line, line)}{newline}" for line, newline in lines)
    assert patched(set_to("==2.6.0"), before.encode()) == after.encode()


@given(st.lists(LINES, max_size=8), NEWLINES)
def test_drop_keeps_all_other_lines_byte_for_byte(lines: list[str], newline: str) -> None:
    before = "".join(f"{line}{newline}" for line in lines)
    after = "".join(f"{line}{newline}" for line in lines if line not in TORCH)
    assert patched(drop(), before.encode()) == after.encode()


@given(st.lists(LINES, max_size=8), NEWLINES, st.sampled_from(("", "b", "b \\", "--pre", "torch")))
def test_add_changes_nothing_but_the_end(lines: list[str], newline: str, last: str) -> None:
    before = "".join(f"{line}{newline}" for line in lines) + last
    after = patched(add("z==1"), before.encode()).decode()
    assert after.startswith(before)
    assert after[len(before) :].strip() == "z==1"
    assert after.endswith(("\n", "\r")) == (before.endswith(("\n", "\r")) or not before)
