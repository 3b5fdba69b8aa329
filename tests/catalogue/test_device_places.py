"""To which places of its code a program comes, and on which machines a device counts there."""

from __future__ import annotations

import ast
import re
from pathlib import PurePosixPath

import pytest
from conftest import ROOT
from test_proposals import tree

from patchlock.catalogue.proposals import (
    device_places,
    device_switches,
    findings,
    reached_code,
    required_cuda,
    shared_sets,
)
from patchlock.catalogue.proposals.device_places import Verdict
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.reader import Catalogue
from patchlock.patches.evaluation import Memoized
from patchlock.patches.import_graph import Trees

NEVER, ENDED, BY_DEFAULT, IF_GIVEN = Verdict
KINDS = ("cpu", "mps", "xpu", "privateuseone")
ABOVE = [
    ("if torch.cuda.is_available():\n    x", "cpu mps xpu privateuseone", NEVER),
    ("if torch.cuda.is_available():\n    y\nelse:\n    x", "", None),
    ("if torch.backends.mps.is_available():\n    y\nelse:\n    x", "mps", NEVER),
    ("if platform.system() == 'Darwin':\n    y\nelif ready:\n    x", "mps", NEVER),
    ("if platform.system() != 'Darwin':\n    x", "mps", NEVER),
    ("if sys.platform == 'darwin' and torch.backends.mps.is_available():\n    x", "xpu privateuseone", NEVER),
    ("if 'cuda' in self._device:\n    x", "cpu mps xpu privateuseone", NEVER),
    ("if device == 'xpu':\n    x", "cpu mps privateuseone", NEVER),
    ("if ready and 'CUDAExecutionProvider' in providers:\n    x", "cpu mps xpu privateuseone", NEVER),
    ("if not has_cuda or eager:\n    x", "", None),
    ("def f():\n    if not torch.cuda.is_available():\n        return\n    x", "cpu mps xpu privateuseone", NEVER),
    ("assert device.type == 'cuda'\nx", "cpu mps xpu privateuseone", ENDED),
    ("import tensorrt_llm.runtime\nx", "cpu mps xpu privateuseone", ENDED),
    ("x = 'cuda'\nd = torch.device(x if torch.cuda.is_available() else 'cpu')", "cpu mps xpu privateuseone", NEVER),
    ("d = x if torch.cuda.is_available() else 'cpu'", "", None),  # the CPU stands on the same line
    ("x = 'cuda'\ny = 1\nx = pick()\nuse(x)", "cpu mps xpu privateuseone", NEVER),
    ("x = 'cuda'\nuse(x)\nx = pick()", "", None),
    ("x = 'cuda'\nx = pick(x)", "", None),
    ("x = 'cuda'\nif slow:\n    x = pick()\nuse(x)", "", None),
    (
        "x = 'cpu'\nif torch.cuda.is_available():\n    x = 'cuda'\nif torch.backends.mps.is_available():\n    x = 'mps'\nuse(x)",
        "mps",
        NEVER,
    ),
    ("def f(device=x): ...", "cpu mps xpu privateuseone", BY_DEFAULT),
    ("def f(device=None):\n    if not device:\n        x", "cpu mps xpu privateuseone", BY_DEFAULT),
    ("def f(gpu_id):\n    if gpu_id is not None:\n        x", "cpu mps xpu privateuseone", IF_GIVEN),
    (
        "def f(device_id):\n    if device_id is None:\n        y\n    else:\n        x",
        "cpu mps xpu privateuseone",
        IF_GIVEN,
    ),
    ("def f(text):\n    if text is not None:\n        x", "", None),
]


@pytest.mark.parametrize(("code", "kinds", "verdict"), ABOVE)
def test_what_stands_above_a_place_says_on_which_machines_it_counts(
    code: str, kinds: str, verdict: Verdict | None
) -> None:
    line = next(number for number, text in enumerate(code.splitlines(), 1) if re.search(r"\bx\b", text))

    judged = {kind: device_places.verdicts(ast.parse(code), kind, {}).get(line) for kind in KINDS}

    assert judged == {kind: verdict if kind in kinds.split() else None for kind in KINDS}


@pytest.mark.parametrize(
    ("called", "verdict"),
    [
        ("", BY_DEFAULT),
        ("a.Net(1)", None),
        ("Net(1, d); a.Net(1, device=d)", NEVER),
        ("Net(1, d); Net(2)", None),
        ("Net(*given)", BY_DEFAULT),
        ("def never():\n    Net(1)", BY_DEFAULT),
    ],
)
def test_default_of_a_class_counts_as_the_program_makes_one(called: str, verdict: Verdict | None) -> None:
    path = PurePosixPath("run.py")
    trees = Trees({path: called.encode()})
    made = device_places.calls_of_classes(trees, {path: [2]})
    module = ast.parse("class Net:\n    def __init__(self, n,\n                 device='cuda'): ...")
    assert device_places.verdicts(module, "cpu", made).get(3) is verdict


GRAPHS = {
    "app.py": """
from net import Net, Engine
def main(device):
    net = Net()
    if "cuda" in device:
        net.capture()
main(pick())
""",
    "net.py": """
class Net(Module):
    def forward(self):
        self.graphs = defaultdict(dict[bool, Graph])
    @torch.inference_mode()
    def capture(self):
        Graph(torch.cuda.Stream())
class Graph(Module):
    def run(self):
        torch.cuda.synchronize()
class Engine:
    def run(self):
        use()
""",
}


@pytest.mark.parametrize(("kind", "lines"), [("cpu", {7, 10}), ("cuda", set())])
def test_what_only_code_for_cuda_calls_does_not_run_elsewhere(kind: str, lines: set[int]) -> None:
    trees = Trees(tree(GRAPHS))
    files, command = [*map(PurePosixPath, GRAPHS)], ("python", "app.py")

    anywhere = reached_code.idle_lines(trees, files, command)
    idle = device_places.idle_lines(kind, trees, files, command, "", anywhere)

    assert anywhere[files[1]] == {13}
    assert {*idle[files[1]]} == lines


REACHED = """
from net import called as named, never
def main():
    named()
    return 1
    dead()
def unused():
    main()
@route("/")
def handler():
    use()
class Net(Module):
    def forward(self):
        use()
class Plain:
    def __init__(self, x=once()):
        self.run()
    def run(self):
        use()
    def other(self):
        use()
class Idle(Module):
    def forward(self):
        use()
if __name__ == "__main__":
    main()
    Net()
    call(getattr(Plain(), "by_word"))
"""
NET = """
__all__ = ["never"]
def called():
    use()
def never():
    use()
def by_word():
    use()
if __name__ == "__main__":
    never()
"""


def test_code_whose_name_nothing_mentions_that_runs_is_idle() -> None:
    trees = Trees(tree({"app.py": REACHED, "net.py": NET}))
    files = [*map(PurePosixPath, ("app.py", "net.py"))]

    idle = reached_code.idle_lines(trees, files, ("python", "app.py"))

    assert {str(path): sorted(lines) for path, lines in idle.items()} == {
        "app.py": [6, 8, 21, 24],
        "net.py": [6, 10],
    }
    typed = reached_code.idle_lines(trees, files, ("python", "-c", "from app import unused; unused()"))
    assert {*range(3, 7)} & typed[files[0]] == {6}


LATE = {
    "app.py": """
try:
    from late import start
    start()
except Exception:
    print("?")
if TYPE_CHECKING:
    import types_only
def never():
    import nobody
def shown():
    from .parts import one
    import parts.two as two
shown()
""",
    "late.py": "def start():\n    import later\n    later.go()\ndef other():\n    import nobody\n",
    "later.py": "class Base(Lib): ...\nclass Own(Base):\n    def of_lib(self): ...\ndef go():\n    Own()\n",
    "parts/__init__.py": "",
    "parts/one.py": "",
    "parts/two.py": "",
    "types_only.py": "",
    "nobody.py": "",
}


def test_files_that_code_imports_later_count_as_soon_as_it_does() -> None:
    trees = Trees(tree(LATE))

    idle = reached_code.idle_lines(trees, [PurePosixPath("app.py")], ("python", "app.py"))

    assert {str(path): sorted(lines) for path, lines in idle.items()} == {
        "app.py": [8, 10],
        "late.py": [5],
        "later.py": [],
        "parts/__init__.py": [],
        "parts/one.py": [],
        "parts/two.py": [],
    }


ENDS = """import torch
if not torch.cuda.is_available():
    raise RuntimeError("an NVIDIA GPU is required")
import more
model = more.load().to("cuda")
def later(x):
    assert torch.cuda.is_available()
    return x.to("cuda")
def asked(x):
    if x.device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError
    try:
        assert torch.cuda.is_available()
    except AssertionError:
        pass
    if not torch.cuda.is_available():
        print("none")
        sys.exit(1)
def other(device, cuda_graphs):
    assert device in ("cpu", "cuda")
    assert cuda_graphs
    if "cuda" in device:
        assert torch.cuda.is_available()
    if not torch.cuda.is_available():
        return None
"""


def test_end_where_cuda_is_missing_is_told_and_not_that_the_cpu_is_taken_after_it() -> None:
    files = tree({"app.py": ENDS, "tests/a.py": ENDS})
    trees = Trees(files)

    told = required_cuda.issues(trees)

    assert [(findings.stops(one), [str(place) for place in one.found]) for one in told] == [
        ("stops the start", ["app.py:2: if not torch.cuda.is_available():"]),
        (
            "stops the first use",
            ["app.py:7: assert torch.cuda.is_available()", "app.py:16: if not torch.cuda.is_available():"],
        ),
    ]
    assert all(one.is_left for one in told)
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, trees), requirement_files=())
    assert [
        issues for _, issues in shared_sets.examine([Catalogue(root=ROOT).shared("device-helper")], known, Memoized())
    ] == [()]


CHOOSES = """
def best():
    # Select the best device, skipping MPS due to float64 limitations
    if torch.cuda.is_available():
        device = "cuda"
    else:
        device = "cpu"
    return device
def named():
    # MPS first
    return "mps" if torch.backends.mps.is_available() else "cuda" if torch.cuda.is_available() else "cpu"
def other():
    # MPS is fine
    return 1
"""
BESIDE = """# speaks of mps elsewhere

# no xpu yet: https://e.test/1
device = "cuda" if torch.cuda.is_available() else "cpu"
"""


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (CHOOSES, [("mps", 3, "Select the best device, skipping MPS due to float64 limitations")]),
        (BESIDE, [("xpu", 3, "no xpu yet: https://e.test/1")]),
        (CHOOSES.replace("MPS due", "it due"), []),
    ],
)
def test_comment_says_why_a_device_is_left_out(code: str, wanted: list[tuple[str, int, str]]) -> None:
    path = PurePosixPath("app.py")
    trees = Trees(tree({"app.py": code, "tests/app.py": code}))

    found = device_switches.left_out(trees, (), {})

    assert [(one.device, one.found.line, one.found.text) for one in found] == wanted
    assert device_switches.left_out(trees, [path], {path: range(99)}) == ()


def test_device_that_upstream_leaves_out_is_given_by_no_patch_and_misses_nowhere() -> None:
    files = tree({"app.py": "import torch\n" + CHOOSES})
    known = shared_sets.Tree(
        files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=(), left_out=("mps",)
    )

    ((choice, issues),) = shared_sets.examine([Catalogue(root=ROOT).shared("device-helper")], known, Memoized())

    assert choice.without == ("device-helper-on-metal",)
    assert not [place for issue in issues for place in issue.found if "mps-macos" in place.text]
