"""The checks on requirement files; each fails when one of two edits is missing."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from patchlock.model.patch import Ensure, Op
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops.requirements.ops import DropRequirement, RenameRequirement, SetRequirement
from patchlock.patches.postconditions._requirements import HasRequirement, NoRequirement

PATH = PurePosixPath("requirements.txt")
TORCH = canonicalize_name("torch")
HAS = HasRequirement(name=TORCH, specifier=SpecifierSet("==2.6.0"))
NO = NoRequirement(name=TORCH)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("torch==2.6.0", id="plain"),
        pytest.param("  Torch[a] == 2.6 ; os_name=='nt' # c\r\n", id="extras-marker-comment"),
        pytest.param("torch==2.6.0;os_name=='nt'\n", id="tight-marker"),
        pytest.param("torch \\\n  ==2.6.0 \\\n  --hash=sha256:00\n", id="continued-and-hashed"),
        pytest.param("tor\\\nch==2.6.0\n", id="name-continued"),
        pytest.param("torch==2.6.0\ntorch==2.6.0; os_name=='nt'\ntorchaudio==1\n# torch==1\n", id="twice"),
        pytest.param("# c \\\ntorch==2.6.0", id="behind-comment-with-backslash"),
        pytest.param(
            "torch==2.6.0\n-r torch.txt\ngit+https://h/torch/r\ngit+https://h/o/torch#egg=t\na # torch\n", id="others"
        ),
    ],
)
def test_has_requirement_holds(text: str) -> None:
    assert HAS.problems(PATH, text.encode()) == ()
    assert NO.problems(PATH, text.encode()) != ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("# torch==2.6.0\na # torch==2.6.0\n#torch==2.6.0\n", id="comments"),
        pytest.param("torchaudio==2.6.0\nmy-torch\ntorch.audio\n", id="other-names"),
        pytest.param("a \\\n# torch\n", id="comment-behind-continuation"),
        pytest.param("-r torch.txt\n--find-links torch\n--extra-index-url https://h/torch\n", id="options"),
        pytest.param(
            "git+https://github.com/torch/r\n./torchaudio\nhttps://h/torch/w/a-1.0-py3-none-any.whl\n", id="locations"
        ),
        pytest.param("-e 'a @ git+https://h/o/torch'\n", id="editable-of-another"),
        pytest.param("# caf\xe9\x85 torch\n", id="ellipsis-of-windows"),
    ],
)
def test_no_requirement_holds(text: str) -> None:
    data = text.encode("latin-1")
    assert NO.problems(PATH, data) == ()
    assert HAS.problems(PATH, data) == ("no line requires torch",)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param("torch", "torch", id="bare"),
        pytest.param("Torch >= 2.0 # c", "Torch >= 2.0", id="other-specifier"),
        pytest.param("torch==2.6.0+cu124", "torch==2.6.0+cu124", id="local-version"),
        pytest.param("torch===2.6.0", "torch===2.6.0", id="arbitrary-equality"),
        pytest.param("torch @ https://h/t.zip", "torch @ https://h/t.zip", id="url"),
        pytest.param(
            "torch @ https://h/a.zip; os_name=='nt'", "torch @ https://h/a.zip; os_name=='nt'", id="url-tight-marker"
        ),
        pytest.param("git+https://h/o/r#egg=torch[a]", "git+https://h/o/r#egg=torch[a]", id="egg"),
        pytest.param("-e git+https://h/o/torch.git@v1", "git+https://h/o/torch.git@v1", id="editable"),
        pytest.param('-e "torch @ git+https://h/o/r"', "torch @ git+https://h/o/r", id="editable-by-name"),
        pytest.param("torch-2.0-cp311-cp311-win_amd64.whl", "torch-2.0-cp311-cp311-win_amd64.whl", id="wheel"),
        pytest.param("./w/torch-2.0-py3-none-any.whl", "./w/torch-2.0-py3-none-any.whl", id="wheel-path"),
        pytest.param("https://h/torch-2.0.tar.gz", "https://h/torch-2.0.tar.gz", id="sdist"),
        pytest.param("torch>=1.0.*", "torch>=1.0.*", id="unreadable"),
        pytest.param("torch=2.6.0", "torch=2.6.0", id="one-equals-sign"),
    ],
)
def test_line_that_is_not_as_wanted_is_named(line: str, shown: str) -> None:
    data = f"torch==2.6.0\n\n{line}\n".encode()
    assert HAS.problems(PATH, data) == (f"line 3 has `{shown}`, which is not torch==2.6.0",)
    assert NO.problems(PATH, data)[1:] == (f"line 3 still asks for torch: `{shown}`",)


def test_requirements_with_another_marker_do_not_count() -> None:
    ensure = HasRequirement(name=TORCH, specifier=SpecifierSet("==2"), marker='os_name == "nt"')
    assert ensure.problems(PATH, b"torch==2; os_name=='nt'\ntorch==1; os_name!='nt'\n") == ()
    assert ensure.problems(PATH, b"torch==1; os_name=='nt'\n") == (
        "line 1 has `torch==1; os_name=='nt'`, which is not torch==2",
    )
    assert ensure.problems(PATH, b"torch==2\n") == ('no line requires torch ; os_name == "nt"',)


@pytest.mark.parametrize("cls", [HasRequirement, SetRequirement])
def test_marker_that_is_none_is_refused(cls: type[HasRequirement | SetRequirement]) -> None:
    with pytest.raises(ValueError, match="os is windows"):
        cls(name=TORCH, specifier=SpecifierSet(), marker="os is windows")


def test_url_is_not_an_unpinned_requirement() -> None:
    unpinned = HasRequirement(name=TORCH, specifier=SpecifierSet())
    assert unpinned.problems(PATH, b"torch\n") == ()
    assert unpinned.problems(PATH, b"torch @ https://h/t.zip") == (
        "line 1 has `torch @ https://h/t.zip`, which is not torch",
    )


@pytest.mark.parametrize("ensure", [HAS, NO])
def test_file_that_cannot_be_checked_is_a_problem(ensure: Ensure) -> None:
    assert ensure.problems(PurePosixPath("tox.ini"), b"") == (
        "tox.ini is none of the files whose requirements can be checked",
    )
    assert ensure.problems(PATH, "torch".encode("utf-16-le")) == (
        "the file is not text in an encoding that can be told from its bytes",
    )


@pytest.mark.parametrize(
    ("op", "ensure"),
    [
        pytest.param(SetRequirement(name=TORCH, specifier=SpecifierSet("==2.6.0")), HAS, id="set"),
        pytest.param(DropRequirement(name=TORCH), NO, id="drop"),
        pytest.param(RenameRequirement(name=TORCH, to=Requirement("torch-cpu==1")), NO, id="rename"),
    ],
)
@pytest.mark.parametrize(
    "second", ["torch>=2 ; os_name=='nt'", "torch @ https://h/t.zip", "-e git+https://h/o/r#egg=torch"]
)
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE])
@pytest.mark.parametrize("missing", [0, 1])
def test_fails_without_one_of_two_edits(op: Op, ensure: Ensure, second: str, bom: bytes, missing: int) -> None:
    encoding = "utf-16-le" if bom == codecs.BOM_UTF16_LE else "utf-8"
    source = decode(PATH, bom + f"Torch\t# é\r\nnumpy\r\n{second}".encode(encoding))
    assert isinstance(source, SourceText)
    edits = op.locate(source).edits
    assert len(edits) == 2
    assert ensure.problems(PATH, encode(splice(source, edits))) == ()
    mutant = encode(splice(source, edits[:missing] + edits[missing + 1 :]))
    assert len(ensure.problems(PATH, mutant)) == 1
