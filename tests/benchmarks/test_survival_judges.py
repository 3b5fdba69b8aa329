"""The judges of the measurement: what they see, and that each notices one edit that was taken out of a result."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from histories.apps import rows
from histories.judge_calls import Lacks, LacksImport, NoDeviceLiteral, NoRunTimeInstall
from histories.judge_imports import ImportsWithout
from histories.judge_requirements import Dropped, Pinned
from histories.states import Judge
from test_survival_events import BASE, SET

from patchlock.catalogue.reader import Catalogue
from patchlock.model.text_files import Edit, SourceText, decode, encode, splice
from patchlock.patches.engine import apply

PATH = PurePosixPath("requirements.txt")
CODE = PurePosixPath("app/run.py")
TORCH = Pinned(pins={"torch": "==2.5.1"})
DEEPSPEED = ImportsWithout(package="deepspeed")
UTF16 = b"\xff\xfe" + "torch==1\r\n".encode("utf-16-le")


@pytest.mark.parametrize(
    ("judge", "bad", "good"),
    [
        pytest.param(TORCH, b"torch==2.1.1\n", b"torch==2.5.1\n", id="pin"),
        pytest.param(TORCH, b"Torch [x] >=2 ; python_version>'3'\n", b"torchaudio==1\n", id="extras and marker"),
        pytest.param(TORCH, b"torch @ https://x/y.whl\n", b"# torch==1\n", id="URL"),
        pytest.param(TORCH, b"torch\\\n==1\n", b"torch==2.5.1  # pinned\n", id="continued"),
        pytest.param(TORCH, UTF16, b"", id="UTF-16"),
        pytest.param(Pinned(pins={"a": ""}, adds=True), b"b\n", b"a\n", id="added"),
        pytest.param(Dropped(names=frozenset({"av"})), b"av==11\n", b"avro\n-r av.txt\n", id="dropped"),
        pytest.param(Dropped(names=frozenset({"x"})), b"-e git+https://h/r#egg=x\n", b"y\n", id="egg"),
        pytest.param(DEEPSPEED, b"import deepspeed\n", b"def f():\n    import deepspeed\n", id="import"),
        pytest.param(DEEPSPEED, b"def f():\n    import deepspeed\nf()\n", b"import deepspeeder\n", id="called"),
        pytest.param(
            DEEPSPEED,
            b"try:\n    import deepspeed\nexcept ImportError:\n    raise\n",
            b"try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n",
            id="handler",
        ),
        pytest.param(
            DEEPSPEED,
            b"try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\nX = deepspeed.zero\n",
            b"if is_deepspeed_available():\n    import deepspeed\n",
            id="unset",
        ),
        pytest.param(
            NoRunTimeInstall(),
            b"c = ['pip', 'install', 'x']\nsubprocess.run(c)\n",
            b"subprocess.run(['git', 'pull'])\n",
            id="argv in a variable",
        ),
        pytest.param(
            NoRunTimeInstall(),
            b"def run(c):\n    os.system(c)\nrun(f'{python} -m pip install x')\n",
            b"def f():\n    return\n    os.system('pip install x')\n",
            id="helper",
        ),
        pytest.param(NoRunTimeInstall(), b"pip.main(['install', 'x'])\n", b"print('pip install x')\n", id="API"),
        pytest.param(NoDeviceLiteral(), b"x.to('cuda:0')\n", b"x.to(device)\n", id="to"),
        pytest.param(NoDeviceLiteral(), b"def f(device='cuda'): pass\n", b"# x.cuda()\n", id="default"),
        pytest.param(
            NoDeviceLiteral(),
            b"if not torch.cuda.is_available(): x.cuda()\n",
            b"if x.is_cuda: y.cuda()\nz = x.device == torch.device('cuda')\n",
            id="asked",
        ),
        pytest.param(
            NoDeviceLiteral(),
            b"device = torch.device('cuda')\nif device.type == 'cuda' and y: x.cuda(rank)\n",
            b"if self.device.type == 'cuda' and y: x.cuda(rank)\n",
            id="chosen",
        ),
        pytest.param(
            NoDeviceLiteral(),
            b"def f(mode='cuda'):\n    if mode == 'cuda': x.cuda(rank)\n",
            b"def f(mode):\n    if mode == 'cuda': x.cuda(rank)\n",
            id="given by default",
        ),
        pytest.param(
            NoDeviceLiteral(),
            b"d = 'cuda'\nif str(d) == 'cuda': d = torch.device('cuda:0')\n",
            b"if str(self.d) == 'cuda': self.d = torch.device('cuda:0')\n",
            id="numbered",
        ),
        pytest.param(NoDeviceLiteral(), b"if d == 'cuda' or y: x.cuda()\n", b"if d == 'cuda': x.cuda()\n", id="or"),
        pytest.param(Lacks(pattern=r"f\(\)"), b"x = f( )\n", b"x = g()\n", id="expression"),
        pytest.param(Lacks(pattern=r"f\(\)", within="h"), b"def h():\n    f()\n", b"def g():\n    f()\n", id="within"),
        pytest.param(
            Lacks(pattern="a is None", is_test=True), b"if a is None: b\n", b"if a is None and b: c\n", id="test"
        ),
        pytest.param(LacksImport(module="distutils"), b"from distutils.core import x\n", b"import dist\n", id="module"),
    ],
)
def test_judge_sees_the_trouble_and_only_it(judge: Judge, bad: bytes, good: bytes) -> None:
    assert judge.violations(PATH, bad)
    assert not judge.violations(PATH, good)
    assert not judge.damage(PATH, good, good)


@pytest.mark.parametrize(
    ("judge", "before", "after"),
    [
        pytest.param(TORCH, b"torch==1\nnumpy\n", b"torch==2.5.1\n", id="another requirement lost"),
        pytest.param(TORCH, b"torch[x]==1\n", b"torch==2.5.1\n", id="extra lost"),
        pytest.param(TORCH, b"torch==1\r\n", b"torch==2.5.1\n", id="line ending"),
        pytest.param(TORCH, b"\xef\xbb\xbftorch==1\n", b"torch==2.5.1\n", id="byte order mark"),
        pytest.param(Dropped(names=frozenset({"a"})), b"a\nb\n", b"", id="two dropped"),
        pytest.param(DEEPSPEED, b"import deepspeed\nx = 1\n", b"x = 2\n", id="other code"),
        pytest.param(Lacks(pattern="f"), b"def g(): f\n", b"", id="function lost"),
        pytest.param(NoRunTimeInstall(), b"a\n", b"if:\n", id="does not parse"),
    ],
)
def test_judge_sees_damage(judge: Judge, before: bytes, after: bytes) -> None:
    assert judge.damage(PATH, before, after)


JUDGES: dict[str, tuple[PurePosixPath, Judge]] = {
    "pin": (PATH, TORCH),
    "optional": (PurePosixPath("app/train.py"), DEEPSPEED),
    "device": (CODE, Lacks(pattern="'cuda'")),
    "loader": (PurePosixPath("app/load.py"), Lacks(pattern="read.*weights_only=True.*")),
}


@pytest.mark.parametrize("name", JUDGES)
def test_judge_notices_each_edit_that_is_taken_out(name: str) -> None:
    path, judge = JUDGES[name]
    [patch] = [patch for patch in SET if patch.id == name]
    before = BASE[str(path)]
    source = decode(path, before)
    assert isinstance(source, SourceText)
    edits = patch.op.locate(source).edits
    [change] = apply([patch], {path: before}).changes
    assert encode(splice(source, edits)) == change.after
    assert not judge.violations(path, change.after)
    assert not judge.damage(path, before, change.after)
    for left in edits:
        if left.text.strip():
            kept: tuple[Edit, ...] = tuple(edit for edit in edits if edit is not left)
            mutant = encode(splice(source, kept))
            assert judge.violations(path, mutant) or judge.damage(path, before, mutant) or "class" in left.text


def test_every_patch_of_an_app_for_cpu_has_its_judge() -> None:
    from conftest import ROOT

    found = list(rows(Catalogue(root=ROOT)))
    assert len({row.name for row in found}) == len(found) > 40
    assert all(row.is_app for row in found)
