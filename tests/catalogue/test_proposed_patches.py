"""Which patches and shared sets are proposed for a clone, and what is told of what they find."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from test_proposals import tree
from test_proposed_requirements import repaired

from patchlock.catalogue.proposals import (
    findings,
    narrowing,
    onnx_builds,
    shared_sets,
)
from patchlock.catalogue.proposals.findings import Finding, Issue, SetChoice
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement
from patchlock.catalogue.reader import Catalogue
from patchlock.model.profile import Profile
from patchlock.patches.evaluation import Memoized
from patchlock.patches.import_graph import Trees
from patchlock.patches.ops._insert_statement import InsertStatement
from patchlock.patches.ops.requirements.ops import RenameRequirement

AV_WHY = "av 11 and 14.4.0 have no wheels; 19 dropped metadata_errors, which faster-whisper passes"
PROFILES = tuple(
    Catalogue(root=ROOT).profile(name) for name in ("cpu", "cuda-linux", "mps-macos", "rocm-linux", "directml-vega")
)
NO_BUILD = 'it stays on the CPU on rocm-linux, as the shared set "onnxruntime-one-provider" has no other build there'


def test_narrowed_patch_of_a_set_stays_before_what_goes_after_it() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    files = tree(
        {
            "a.py": 'import torch\nx = f(torch.device("cuda"), dtype=torch.float16)\n',
            "b.py": "import torch\nm = torch.cuda.get_device_properties(0).total_memory\n",
        }
    )

    fitted = narrowing.fit(
        [SetChoice(name=device.name, why="x")], [], {device.name: device}, files, (), ("cpu",), Memoized()
    )

    own = [one.written.patch for one in fitted.sections]
    assert fitted.problems == ()
    assert [patch.id for patch in own] == ["device-helper-on-cpu", "device-helper-in-single-precision"]
    assert [own[0].paths, own[1].after] == [("a.py",), ("device-helper-on-cpu",)]
    assert {str(one.path) for one in fitted.outcomes} == {"a.py"}


def test_patch_that_finds_nothing_is_not_written() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    files = tree({"a.py": "import torch\n", "r.txt": "xformers\n"})
    (used,) = repaired("xformers\n", "r.txt").sections
    patch = dataclasses.replace(used.written.patch, id="idle", paths=("a.py",))
    idle = dataclasses.replace(used, written=dataclasses.replace(used.written, patch=patch))

    fitted = narrowing.fit([], [used, idle], {device.name: device}, files, (), ("cuda-linux", "cpu"), Memoized())

    assert [one.written.patch.id for one in fitted.sections] == ["no-xformers"]  # which finds something on cpu alone


def test_an_answer_that_takes_the_cpu_is_named_where_no_device_is() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    asking = "import torch\nr = Reader(gpu=torch.cuda.is_available())\n"
    files = tree({"a.py": 'import torch\nx = f(torch.device("cuda"))\n', "b.py": asking})

    fitted = narrowing.fit(
        [SetChoice(name=device.name, why="x")], [], {device.name: device}, files, (), ("xpu-linux",), Memoized()
    )

    why = "Not in b.py: line 2: it takes the CPU where there is no CUDA; let it take `xpu` there."
    assert [(one.written.patch.id, one.comment) for one in fitted.sections] == [("device-helper-on-xpu", why)]


def test_patches_are_narrowed_for_every_profile_that_is_named() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    files = tree({"a.py": 'import torch\nx = f(torch.device("cuda"))\n', "b.py": "s = torch.cuda.Stream()\n"})

    def left_out(*profiles: str) -> tuple[str, ...]:
        chosen = [SetChoice(name=device.name, why="x")]
        return narrowing.fit(chosen, [], {device.name: device}, files, (), profiles, Memoized()).sets[0].without

    assert left_out("cpu") == ("device-helper-on-cpu", "device-helper-in-single-precision")
    assert set(left_out("cpu", "mps-macos", "xpu-linux")) - set(left_out("cpu")) == {
        "device-helper-on-metal",
        "device-helper-on-xpu",
    }


def test_patches_that_follow_a_narrowed_one_stay_behind_it(tmp_path: Path) -> None:
    calls = (ROOT / "patches/shared/torch-load-weights-only.toml").read_text()
    follower = """
[[patch]]
id = "later"
why = "it writes to the same place"
source = "https://e.org"
op = "replace-text"
paths = ["good.py"]
after = ["calls"]
old = "(path"
new = "(other"

[[patch.ensure]]
check = "lacks"
text = "(path"
"""
    (tmp_path / "patches/shared").mkdir(parents=True)
    (tmp_path / "patches/shared/loading.toml").write_text(calls + follower)
    one = Catalogue(root=tmp_path).shared("loading")
    files = tree({"good.py": "import torch\ntorch.load(path)\n", "bad.py": "import torch\ntorch.load(path, **more)\n"})

    fitted = narrowing.fit(
        [SetChoice(name="loading", why="x")], [], {"loading": one}, files, ("r.txt",), ("cpu",), Memoized()
    )

    assert [section.written.patch.id for section in fitted.sections] == ["loading-calls", "loading-later"]
    assert fitted.problems == ()
    assert fitted.sets == ()


def test_places_that_matter_on_other_profiles_alone_say_so() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    text = (
        "import torch\n"
        "model = load().cuda()\n"
        "x = model.half()\n"
        "def best():\n"
        "    if torch.cuda.is_available():\n"
        '        device = "cuda"\n'
        "    else:\n"
        '        device = "cpu"\n'
        "    return device\n"
    )
    library = (
        "from faster_whisper import WhisperModel\n"
        'device = "cuda" if torch.cuda.is_available() else "cpu"\n'
        "model = WhisperModel(name, device=device)\n"
        "if torch.cuda.is_available():\n"
        '    kind = "float16"\n'
        "else:\n"
        '    kind = "float32"\n'
        "other = WhisperModel(name, device=device, compute_type=kind)\n"
    )
    choosing = (
        "import torch\n"
        "class A:\n"
        "    def __init__(self, device):\n"
        "        if device is None:\n"
        '            self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        "        if torch.backends.mps.is_available():\n"
        '            self.device = torch.device("mps")\n'
        "    def b(self):\n"
        '        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        "        self.to(device)\n"
        "        if torch.backends.mps.is_available():\n"
        '            device = torch.device("mps")\n'
    )
    files = tree({"a.py": text, "b.py": library, "c.py": choosing})
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=())

    told: list[str] = []
    ((_, issues),) = shared_sets.examine([device], known, Memoized(), told.append)
    chosen = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'

    assert [(findings.stops(one), [(place.line, place.text) for place in one.found]) for one in issues] == [
        ("stops the first use", [(2, "model = load().cuda()")]),
        (
            "slower",
            [
                (3, "x = model.half()"),
                (8, 'device = "cpu" (for mps-macos, xpu-linux, xpu-windows, directml-vega)'),
                (5, f"self.{chosen} (for xpu-linux, xpu-windows, directml-vega)"),  # what follows gives it Metal
                (9, f"{chosen} (for mps-macos, xpu-linux, xpu-windows, directml-vega)"),
            ],
        ),
    ]
    assert issues[1].means == (
        "on the CPU half precision is slow, and kernels without it fail; "
        "its code takes the CPU there, although there is a GPU; "
        "a function takes the CPU where no caller gives it another device, although there is a GPU"
    )
    assert told == ["looking at file 1 of 3"]


@pytest.mark.parametrize(
    ("path", "started", "is_told"),
    [
        ("a/tests/x.py", (), False),
        ("a/test_x.py", (), False),
        ("examples/x.py", (), False),
        ("examples/x.py", ("examples/x.py",), True),
        ("tools/x.py", (), True),
    ],
)
def test_tests_and_examples_count_only_where_the_program_comes_to_them(
    path: str, started: tuple[str, ...], is_told: bool
) -> None:
    files = tree({path: "import torch\nmodel = load().cuda()\n"})
    device = Catalogue(root=ROOT).shared("device-helper")
    imports = Imports(files, Trees(files))
    known = shared_sets.Tree(
        files=files, asked={}, imports=imports, requirement_files=(), started=tuple(map(PurePosixPath, started))
    )

    assert bool(shared_sets.examine([device], known, Memoized())) == is_told


def test_issue_names_the_places_that_the_patches_leave_as_they_are() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    files = tree(dict.fromkeys(("a.py", "b.py"), "import torch\nmodel = load().cuda()\n"))
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=())
    ((choice, (issue,)),) = shared_sets.examine([device], known, Memoized())
    (patch,) = [one for one in device.patches if one.id == issue.found[0].patch]
    without = dataclasses.replace(choice, without=(patch.id,))
    written = dataclasses.replace(patch, paths=("b.py",))

    told = [
        [
            (str(place.path), one.is_left, one.remedy)
            for one in shared_sets.by_what_is_left(issue, *taken, files)
            for place in one.found
        ]
        for taken in ((choice, ()), (without, (written,)), (without, ()), (None, ()))
    ]

    cured = [(path, False, issue.remedy) for path in ("a.py", "b.py")]
    remedies = (
        f'the shared set "device-helper" cannot be applied to {where}: write a patch of your own'
        for where in ("a.py", "a.py and 1 more")
    )
    one, both = ([(path, True, remedy) for path in ("a.py", "b.py")] for remedy in remedies)
    assert told == [cured, [cured[1], one[0]], both, both]


@pytest.mark.parametrize(("profile", "patch"), [("cpu", "on-cpu"), ("mps-macos", "on-metal"), ("xpu-linux", "on-xpu")])
def test_place_is_of_the_patch_that_the_wanted_profile_has(profile: str, patch: str) -> None:
    files = tree({"a.py": "import torch\nmodel = load().cuda()\n"})
    device = Catalogue(root=ROOT).shared("device-helper")
    known = shared_sets.Tree(
        files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=(), profile=profile
    )

    ((_, (issue,)),) = shared_sets.examine([device], known, Memoized())

    assert ([one.patch for one in issue.found], findings.stops(issue)) == (
        [f"device-helper-{patch}"],
        "stops the first use",
    )


@pytest.mark.parametrize(
    ("line", "means"),
    [
        (
            "phonemizer<3.3",
            "phonemizer<3.3 imports pkg_resources, which setuptools 82 removed, and requires no older one",
        ),
        ("phonemizer", ""),
        ("phonemizer>=3.3", ""),
        ("librosa==0.10.2", ""),
        ("jieba", ""),
        ("webrtcvad", "webrtcvad imports pkg_resources, which setuptools 82 removed, and requires no older one"),
    ],
)
def test_pkg_resources_is_brought_to_what_imports_it_in_every_version_that_is_allowed(line: str, means: str) -> None:
    one = Catalogue(root=ROOT).shared("setuptools-pkg-resources")
    files = tree({"requirements.txt": f"{line}\n"})
    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text=line)
    requirement = Requirement(line)
    asked = {canonicalize_name(requirement.name): (LocatedRequirement(requirement=requirement, found=place),)}
    known = shared_sets.Tree(files=files, asked=asked, imports=Imports(files), requirement_files=())

    found = shared_sets.examine([one], known, Memoized())

    assert [issue.means for _, issues in found for issue in issues] == ([means] if means else [])


@pytest.mark.parametrize(
    ("code", "is_chosen"),
    [
        pytest.param("import deepspeed\n", True, id="as-the-module-is-imported"),
        pytest.param("def f(use):\n    if use:\n        import deepspeed\n", False, id="where-it-is-used"),
        pytest.param("try:\n    import deepspeed\nexcept ImportError:\n    pass\n", False, id="guarded"),
    ],
)
def test_deepspeed_keeps_from_starting_only_where_a_module_imports_it(code: str, is_chosen: bool) -> None:
    one = Catalogue(root=ROOT).shared("deepspeed-optional")
    files = tree({"a.py": code, "requirements.txt": "deepspeed==0.8.3\n"})
    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text="deepspeed==0.8.3")
    asked = shared_sets.LocatedRequirement(requirement=Requirement("deepspeed==0.8.3"), found=place)
    imports = Imports(files, Trees(files))
    known = shared_sets.Tree(
        files=files, asked={canonicalize_name("deepspeed"): (asked,)}, imports=imports, requirement_files=()
    )

    found = shared_sets.examine([one], known, Memoized())

    assert [[place.line for place in issue.found] for _, (issue,) in found] == ([[1, 1]] if is_chosen else [])
    (issue,) = repaired("deepspeed==0.8.3\n").issues
    assert (issue.name, findings.stops(issue)) == ("needs-compiler", "stops the first use")


def test_imports_of_some_packages_are_read_without_the_files_that_do_not_name_them() -> None:
    code = {
        "b.py": "def f():\n    import torch.cuda\n",
        "a.py": "from torch import nn\nimport torchaudio\n",
        "c.py": "import os\nfrom . import torch\n",
        "d.py": "import numpy\n",
    }
    trees = Trees(tree(code))
    found = Imports(tree(code), trees)

    assert [(str(one.found), one.module) for one in found.of(["torch"])] == [
        ("a.py:1: from torch import nn", "torch"),
        ("b.py:2: import torch.cuda", "torch.cuda"),
    ]
    assert {str(path) for path in trees.parsed} == {"a.py", "b.py", "c.py"}
    assert [one.module for one in found.all()] == ["torch", "torchaudio", "torch.cuda", "os", "numpy"]


@pytest.mark.parametrize(
    ("code", "line", "more", "wanted", "told"),
    [
        pytest.param(
            'session(providers=["CUDAExecutionProvider"])\n',
            "onnxruntime",
            "torch",
            {"onnxruntime-gpu==1.23.2": ("cuda-linux",)},
            "it stays on the CPU on mps-macos, as the code never asks for CoreMLExecutionProvider; "
            f"{NO_BUILD}; it stays on the CPU on directml-vega, as the code never asks for DmlExecutionProvider",
            id="asks-for-cuda",
        ),
        pytest.param(
            "session(providers=ort.get_available_providers())\n",
            "onnxruntime>=1.20",
            "torch",
            {"onnxruntime-gpu==1.23.2": ("cuda-linux",), "onnxruntime-directml>=1.20": ("directml-vega",)},
            f"onnxruntime-directml>=1.20 takes its place on directml-vega; {NO_BUILD}",
            id="asks-for-what-there-is",
        ),
        pytest.param(
            'import onnxruntime\nsession(providers=["CUDAExecutionProvider"])\n',
            "onnxruntime",
            "",
            {"onnxruntime-gpu[cuda,cudnn]==1.23.2": ("cuda-linux",)},
            "onnxruntime-gpu[cuda,cudnn]==1.23.2 takes its place on cuda-linux",
            id="without-torch",
        ),
        pytest.param(
            'session(providers=["CUDAExecutionProvider"])\n',
            "onnxruntime>=1.24",
            "torch",
            {},
            "it stays on the CPU on cuda-linux, as upstream's versions leave out onnxruntime-gpu==1.23.2",
            id="too-new",
        ),
        pytest.param(
            'if "CPUExecutionProvider" in ort.get_available_providers():\n    session(providers=["CUDAExecutionProvider"])\n',
            'onnxruntime<1.20; python_version < "3.10"\nonnxruntime<2,>=1.20; python_version >= "3.10"',
            "torch",
            {"onnxruntime-gpu==1.23.2": ("cuda-linux",)},
            f"{NO_BUILD}; it stays on the CPU on directml-vega, as the code never asks for DmlExecutionProvider",
            id="line-for-another-python",
        ),
        pytest.param(
            "session(providers=ort.get_available_providers())\n",
            'onnxruntime<1.20; python_version < "3.10"\nonnxruntime<2,>=1.20; python_version >= "3.10"',
            "torch",
            {"onnxruntime-gpu==1.23.2": ("cuda-linux",), "onnxruntime-directml<2,>=1.20": ("directml-vega",)},
            "",
            id="bounds-of-the-line-that-holds",
        ),
        pytest.param(
            "session()\n",
            "onnxruntime",
            "torch",
            {},
            "it stays on the CPU on cuda-linux, as the code never asks for CUDAExecutionProvider",
            id="asks-for-nothing",
        ),
    ],
)
def test_onnxruntime_for_the_cpu_is_told_and_replaced_where_the_code_asks_for_a_card(
    code: str, line: str, more: str, wanted: dict[str, tuple[str, ...]], told: str
) -> None:
    files = tree({"a.py": code, "requirements.txt": f"{line}\n{more}\n"})
    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text=line)
    located = [LocatedRequirement(requirement=Requirement(one), found=place) for one in line.split("\n")]
    patches = Catalogue(root=ROOT).shared(onnx_builds.SET).patches
    asking = onnx_builds.Code(files=files, evaluator=Memoized(), patches=patches)

    sections, (issue,) = onnx_builds.repair(
        located, asking, PROFILES, lambda path, line: f"{path}#{line}", _holds, has_torch=bool(more)
    )

    made = [one.written.patch for one in sections]
    assert {str(one.op.to): one.profiles for one in made if isinstance(one.op, RenameRequirement)} == wanted
    assert told in issue.remedy
    assert findings.stops(issue) == "slower"


@pytest.mark.parametrize(
    ("code", "loading", "left"),
    [
        ("import onnxruntime as ort\n", [("ort.preload_dlls()", "import onnxruntime as ort", ("cuda-linux",))], ""),
        ("import onnxruntime\n", [("onnxruntime.preload_dlls()", "import onnxruntime", ("cuda-linux",))], ""),
        (
            "from onnxruntime import InferenceSession\n",
            [],
            "call onnxruntime.preload_dlls() where the code imports it",
        ),
    ],
)
def test_libraries_of_onnxruntime_s_own_are_loaded_where_it_is_imported(
    code: str, loading: list[tuple[str, str, tuple[str, ...]]], left: str
) -> None:
    files = tree({"a.py": f'{code}session(providers=["CUDAExecutionProvider"])\n', "tests/test_a.py": code})
    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text="onnxruntime")
    located = [LocatedRequirement(requirement=Requirement("onnxruntime"), found=place)]
    patches = Catalogue(root=ROOT).shared(onnx_builds.SET).patches
    asking = onnx_builds.Code(files=files, evaluator=Memoized(), patches=patches)

    sections, issues = onnx_builds.repair(
        located, asking, PROFILES, lambda path, line: f"{path}#{line}", _holds, has_torch=False
    )

    made = [one.written.patch for one in sections if isinstance(one.written.patch.op, InsertStatement)]
    assert [(one.op.statement, one.op.below, one.profiles) for one in made] == loading
    assert {path for one in made for path in one.paths} <= {"a.py"}
    assert [one.remedy.partition(" (https:")[0] for one in issues if one.is_left] == ([left] if left else [])


@pytest.mark.parametrize("line", ["import onnxruntime", "from onnxruntime import InferenceSession"])
def test_onnxruntime_takes_no_libraries_of_its_own_where_the_lock_has_torch(line: str) -> None:
    code = f'{line}\nsession(providers=["CUDAExecutionProvider"])\n'
    files = tree({"a.py": code, "requirements.txt": "onnxruntime\nb\n"})
    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text="onnxruntime")
    located = [LocatedRequirement(requirement=Requirement("onnxruntime"), found=place)]
    patches = Catalogue(root=ROOT).shared(onnx_builds.SET).patches
    asking = onnx_builds.Code(files=files, evaluator=Memoized(), patches=patches)
    without, with_it = (
        onnx_builds.repair(located, asking, PROFILES, lambda path, line: f"{path}#{line}", _holds, has_torch=one)
        for one in (False, True)
    )

    proposal: Any = onnx_builds.with_torch(cast("Any", Drafted(sections=without[0], issues=without[1])))

    assert without != with_it
    assert (proposal.sections, proposal.issues) == with_it


@dataclasses.dataclass(frozen=True)
class Drafted:
    """What is read of a proposal."""

    sections: tuple[findings.ProposedPatch, ...]
    issues: tuple[Issue, ...]


def _holds(requirement: Requirement, profile: Profile) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"python_version": str(profile.python)})


def test_reason_is_that_of_the_patch_that_finds_the_place() -> None:
    files = tree({"a.py": 'session(["CUDAExecutionProvider", "CPUExecutionProvider"])\n'})
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([Catalogue(root=ROOT).shared(onnx_builds.SET)], known, Memoized())

    assert findings.stops(issue) == "slower"
    assert issue.means == (
        "without a CUDA provider, an ONNX Runtime session that requests it warns at every start and runs on the CPU"
    )


def test_set_is_not_taken_for_what_only_an_extra_asks_for() -> None:
    text = '[project]\nname = "a"\ndependencies = ["onnxruntime"]\n[project.optional-dependencies]\ngpu = ["onnxruntime-gpu"]\n'
    files = tree({"pyproject.toml": text})
    place = Finding(path=PurePosixPath("pyproject.toml"), line=3, text="onnxruntime")
    located = LocatedRequirement(requirement=Requirement("onnxruntime"), found=place)
    known = shared_sets.Tree(
        files=files,
        asked={canonicalize_name("onnxruntime"): (located,)},
        imports=Imports(files),
        requirement_files=("pyproject.toml",),
    )
    one = Catalogue(root=ROOT).shared(onnx_builds.SET)

    assert shared_sets.examine([one], known, Memoized()) == ()


@pytest.mark.parametrize(("torch", "holds"), [("2.4.1", False), ("2.6.0", True), ("", True)])
def test_issue_is_told_only_where_it_holds_with_the_locked_version(torch: str, *, holds: bool) -> None:
    issue = Issue(name="torch-load-weights-only", title="", means="", found=(), remedy="")
    versions = {canonicalize_name("torch"): Version(torch)} if torch else {}

    assert shared_sets.holds(issue, versions) is holds


@pytest.mark.parametrize(
    ("path", "librosa", "holds"),
    [("requirements.txt", "0.9.2", True), ("requirements.txt", "0.11.0", False), ("app.py", "0.11.0", True)],
)
def test_pkg_resources_is_missed_only_by_what_is_locked_or_by_the_app(path: str, librosa: str, *, holds: bool) -> None:
    place = Finding(path=PurePosixPath(path), line=1, text="x")
    issue = Issue(name="setuptools-pkg-resources", title="", means="", found=(place,), remedy="")

    assert shared_sets.holds(issue, {canonicalize_name("librosa"): Version(librosa)}) is holds
    assert shared_sets.holds(issue, {})


def test_what_only_goes_with_a_change_is_no_place_that_is_wrong() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    code = (
        "import click, torch\n"
        '@click.option("--device", type=click.Choice(["auto", "cuda", "none"]), default="auto")\n'
        "def f(device):\n"
        '    with torch.autocast("cuda", enabled=False):\n'
        '        run = partial(autocast, "cuda", enabled=False)\n'
        '    return torch.zeros(1, device="cuda")\n'
    )
    files = tree({"a.py": code})
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([device], known, Memoized())

    assert [one.line for one in issue.found] == [6]


@pytest.mark.parametrize(
    ("profile", "labels"),
    [
        ("cpu", ["", "", " (for mps-macos, xpu-linux, xpu-windows, directml-vega)"]),
        (
            "rocm-linux",
            [
                " (for cpu, directml-onnx, mps-macos, xpu-linux, xpu-windows, directml-vega)",
                " (for cpu, directml-onnx)",
                " (for mps-macos, xpu-linux, xpu-windows, directml-vega)",
            ],
        ),
        ("mps-macos", ["", " (for cpu, directml-onnx)", ""]),
    ],
)
def test_places_of_other_profiles_than_the_wanted_one_say_for_which(profile: str, labels: list[str]) -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    code = ["model.cuda()", "x = model.half()", 'd = "cuda" if torch.cuda.is_available() else "cpu"']
    files = tree({"a.py": "\n".join(["import torch", *code, ""])})
    known = shared_sets.Tree(
        files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=(), profile=profile
    )

    ((_, issues),) = shared_sets.examine([device], known, Memoized())

    found = sorted((place.line, place.text) for one in issues for place in one.found)
    assert [text for _, text in found] == [text + label for text, label in zip(code, labels, strict=True)]


def test_place_that_a_patch_refuses_is_told_by_its_code_and_why_for_every_device() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    code = (
        "import torch\nmodel = load()\nif torch.cuda.is_available():\n    model.cuda()\n    torch.cuda.synchronize()\n"
    )
    files = tree({"a.py": code})
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([device], known, Memoized())

    assert [(one.line, one.text) for one in issue.found] == [
        (4, "model.cuda() (for mps-macos, xpu-linux, xpu-windows, directml-vega)")
    ]
    assert issue.means == "it takes a GPU only where there is CUDA"


def test_default_is_told_as_one_and_a_replaced_value_not_at_all() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    code = 'import torch\ndef f(x, *, device="cuda"):\n    where = "cuda"\n    where = device\n    return x.to(where)\n'
    files = tree({"a.py": code})
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([device], known, Memoized())

    assert (findings.stops(issue), [one.line for one in issue.found]) == ("cosmetic", [2])
    assert issue.means == "a function takes an NVIDIA card where no caller gives it another device"


def test_precision_by_default_is_told_as_one() -> None:
    device = Catalogue(root=ROOT).shared("device-helper")
    files = tree({"a.py": "import torch\ndef f(x, dtype=torch.float16):\n    return x.to(dtype)\n"})
    known = shared_sets.Tree(files=files, asked={}, imports=Imports(files, Trees(files)), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([device], known, Memoized())

    assert issue.means == "on the CPU half precision is slow, and kernels without it fail"


def test_places_that_a_program_does_not_come_to_are_told_apart() -> None:
    api, run = PurePosixPath("remote/api.py"), PurePosixPath("run.py")
    places = tuple(Finding(path=path, line=line, text="x") for path, line in ((api, 1), (run, 2), (run, 9)))
    old = Issue(name="old-module", title="", means="", found=places, remedy="")
    for issue, worst in ((old, "stops the start"), (dataclasses.replace(old, name="av-wheel"), "stops the first use")):
        told = findings.of_program([issue], [run], {run: {9}}, [])
        assert [(findings.stops(one), one.found) for one in told] == [
            ("may stop a use", (places[0], places[2])),
            (worst, (places[1],)),
        ]
        later = findings.of_program(told, [run], {api: set(), run: {9}}, [])
        assert {str(place): findings.stops(one) for one in later for place in one.found} == {
            "remote/api.py:1: x": "stops the first use",
            "run.py:2: x": worst,
            "run.py:9: x": "may stop a use",
        }
        assert len({findings.stops(one) for one in later}) == len(later)
        (whole,) = findings.of_program(later, [api, run], {api: set(), run: set()}, [])
        assert (dataclasses.replace(whole, found=()), {*whole.found}) == (
            dataclasses.replace(issue, found=()),
            {*places},
        )
    slow = dataclasses.replace(old, is_slower=True)
    assert findings.of_program([slow], [run], {}, []) == (slow,)  # it says nothing of a failure
    required = dataclasses.replace(old, found=places[:1])
    assert findings.of_program([required], [run], {}, [api, run]) == (required,)  # a setup.py is no code of it


@pytest.mark.parametrize(
    ("required", "stops", "means"),
    [
        (["av"], "cosmetic", "av 11 and 14.4.0 have no wheels"),
        (["av==11.0"], "stops the first use", "av 11 and 14.4.0 have no wheels"),
        (["av", "faster-whisper"], "stops the first use", AV_WHY),
    ],
    ids=["alone", "without-a-wheel", "with-what-fails"],
)
def test_version_of_av_is_told_as_what_it_does_to_the_app(required: list[str], stops: str, means: str) -> None:
    places = {
        one: LocatedRequirement(
            requirement=Requirement(one), found=Finding(path=PurePosixPath("requirements.txt"), line=1, text=one)
        )
        for one in required
    }
    asked = {canonicalize_name(one.requirement.name): (one,) for one in places.values()}
    known = shared_sets.Tree(files={}, asked=asked, imports=Imports({}, Trees({})), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([Catalogue(root=ROOT).shared("av-wheel")], known, Memoized())

    assert (findings.stops(issue), issue.means) == (stops, means)


def test_set_that_bounds_a_version_does_not_say_that_it_fixes_the_code() -> None:
    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text="av>=14")
    asked = {canonicalize_name("av"): (LocatedRequirement(requirement=Requirement("av>=14"), found=place),)}
    known = shared_sets.Tree(files={}, asked=asked, imports=Imports({}, Trees({})), requirement_files=())

    ((_, (issue,)),) = shared_sets.examine([Catalogue(root=ROOT).shared("av-wheel")], known, Memoized())

    assert issue.remedy == 'the shared set "av-wheel" bounds the version'
