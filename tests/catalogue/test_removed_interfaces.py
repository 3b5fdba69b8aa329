"""Interfaces that are gone from the locked libraries are found, in an app's code and in what is built for it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version
from policy_values import package
from sdists import info, sdist
from test_proposals import tree

from patchlock.catalogue.proposals import findings, removed_interfaces, requirement_repairs
from patchlock.model.digests import sha256
from patchlock.operations import _locked_needs
from patchlock.patches.import_graph import Trees


@pytest.mark.parametrize(
    ("code", "locked", "wanted"),
    [
        ("import torchaudio\ntorchaudio.load(p, backend='sox')\n", "torchaudio 2.11.0", [2]),
        ("import torchaudio as ta\nx = ta.AudioMetaData\n", "torchaudio 2.9.1", [2]),
        ("import torchaudio as ta\nta.save(p, x, rate)\n", "torchaudio 2.11.0", [2]),
        ("import torchaudio as ta\nta.save(p, x, rate)\n", "torchaudio 2.11.0, torchcodec 0.9", []),
        ("import torchaudio\ntorchaudio.load(p, backend='sox')\n", "torchaudio 2.8.0", []),
        ("from torch._six import inf\n", "torch 2.1.0", [1]),
        ("import torch\ntorch.stft(x, 4)\ntorch.stft(x, 4, return_complex=True)\n", "torch 2.1.0", [2]),
        ("import numpy as np\na = np.float(1)\nb = np.float32(1)\n", "numpy 1.26.0", [2]),
        ("import numpy as np\na = np.Inf\n", "numpy 1.26.0", []),
        ("import numpy as np\na = np.Inf\n", "numpy 2.1.0", [2]),
        ("import gradio as gr\ngr.inputs.Textbox()\n", "gradio 4.1.0", [2]),
        ("import gradio as gr\ngr.Audio(source='microphone')\ngr.Audio(sources=['upload'])\n", "gradio 4.1.0", [2]),
        ("import gradio as gr\ngr.Dropdown.update(visible=True)\ngr.update()\n", "gradio 4.1.0", [2]),
        (
            "import gradio\nui.queue(concurrency_count=3).launch(enable_queue=True)\nui.queue()\n",
            "gradio 4.1.0",
            [2, 2],
        ),
        ("import gradio\nui.queue(concurrency_count=3).launch(show_api=False)\n", "gradio 3.50.2", []),
        ("import gradio\nui.launch(show_api=False)\nui.launch()\nlaunch(show_api=1)\n", "gradio 6.2.0", [2]),
        ("import gradio as gr\ngr.Chatbot(type='messages')\n", "gradio 6.0.0", [2]),
        ("from pydantic import BaseSettings\n", "pydantic 2.1.0", [1]),
        (
            "import librosa\nlibrosa.resample(y, 1, 2)\nlibrosa.resample(y, orig_sr=1, target_sr=2)\n",
            "librosa 0.11",
            [2],
        ),
        ("import pkg_resources\n", "setuptools 82.0.0", [1]),
        ("import av\nav.open('r', 'rb')\nav.open(p, 'r')\nav.open(p, mode='wb')\n", "av 12.3.0", [2, 4]),
        ("import numpy as np\na = np.bool\n", "numpy 1.26.0", [2]),
        ("import numpy as np\na = np.bool\n", "numpy 2.1.0", []),
        ("import librosa\nlibrosa.filters.mel(22050)\n", "librosa 0.10.0", [2]),
        ("from torchvision.transforms.functional_tensor import rgb_to_grayscale\n", "torchvision 0.19.1", [1]),
        ("from transformers import AdamW\n", "transformers 4.50.0", [1]),
        ("from transformers import AdamW\n", "transformers 4.49.0", []),
        ("from transformers.generation_utils import GenerationMixin\n", "transformers 4.40.0", [1]),
        ("float = 1\nnumpy = x\nnumpy.float\n", "numpy 2.1.0", []),
    ],
)
def test_interface_that_the_lock_lacks_is_found(code: str, locked: str, wanted: list[int]) -> None:
    versions = {canonicalize_name(name): Version(found) for name, found in map(str.split, locked.split(", "))}
    trees = Trees(tree({"app.py": code, "tests/test_app.py": code}))

    found = removed_interfaces.find(trees, versions, {})

    assert [place.line for issue in found for place in issue.found] == wanted
    assert all(str(place.path) == "app.py" for issue in found for place in issue.found)


@pytest.mark.parametrize(
    ("path", "is_told"),
    [
        ("lib/examples/go.py", True),
        ("lib/examples/a.py", True),
        ("lib/examples/more/a.py", True),
        ("tests/a.py", False),
        ("docs/examples/a.py", False),
    ],
)
def test_examples_count_where_the_program_is_one_of_them(path: str, *, is_told: bool) -> None:
    trees = Trees(tree({path: "from torch._six import inf\n"}))

    found = removed_interfaces.find(
        trees, {canonicalize_name("torch"): Version("2.1")}, {}, [PurePosixPath("lib/examples/go.py")]
    )

    assert bool(found) is is_told


def test_interface_that_a_built_library_takes_and_the_lock_lacks_is_found(tmp_path: Path) -> None:
    code = {"old/a.py": "from torchvision.transforms import functional_tensor\n", "PKG-INFO": info("old")}
    packed = sdist(tmp_path, "old", "1.0", code).read_bytes()
    place = tmp_path / "sdists" / sha256(packed) / "old-1.0.tar.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(packed)
    locked = [package("old", "1.0", why="a · sdist", sha256=sha256(packed)), package("new", "1.0", why="a · sdist")]

    trees = Trees(_locked_needs.sdist_code(locked, tmp_path))

    (found,) = removed_interfaces.find(trees, {canonicalize_name("torchvision"): Version("0.19.1")}, {})
    assert list(map(str, found.found)) == ["old-1.0/old/a.py:1: from torchvision.transforms import functional_tensor"]


def test_what_a_package_does_as_a_program_is_no_use_of_an_app() -> None:
    call = "torchaudio.load('test.wav')\n"
    trees = Trees(
        tree(
            {
                "x-1/x/__main__.py": f"import torchaudio\n{call}",
                "x-1/x/a.py": f"import torchaudio\ndef f():\n    {call}if __name__ == '__main__':\n    {call}",
            }
        )
    )

    (found,) = removed_interfaces.of_packages(trees, {canonicalize_name("torchaudio"): Version("2.11.0")}, {})

    assert list(map(str, found.found)) == ["x-1/x/a.py:3: torchaudio.load('test.wav')"]
    assert findings.stops(found) == "may stop a use"


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("gradio>=5", ["take footer_links, or keep gradio below 6", "leave it out, or keep gradio below 6"]),
        ("gradio>=6.0.0", ["take footer_links", "leave it out"]),
    ],
)
def test_older_library_is_advice_where_upstream_allows_it(asked: str, wanted: list[str]) -> None:
    files = tree({"requirements.txt": asked, "app.py": "import gradio as gr\ngr.Chatbot(type=x).launch(show_api=1)\n"})
    located = requirement_repairs.located(files, [PurePosixPath("requirements.txt")])

    found = removed_interfaces.find(Trees(files), {canonicalize_name("gradio"): Version("6.1")}, located)

    assert [one.remedy for one in found] == wanted


def test_code_has_to_change_where_upstream_allows_no_library_that_has_it() -> None:
    files = tree({"requirements.txt": "gradio>=4", "app.py": "import gradio\ngradio.Box()\n"})
    located = requirement_repairs.located(files, [PurePosixPath("requirements.txt")])

    (found,) = removed_interfaces.find(Trees(files), {canonicalize_name("gradio"): Version("4.1")}, located)

    assert found.remedy == "change the code: upstream's bounds of gradio leave out 3.50.2"


def test_removed_interface_tells_where_both_releases_show_it() -> None:
    for row in removed_interfaces._REMOVED:
        assert Version(row.before) < Version(row.since), row
        assert not row.is_gone_from(Version(row.before)), row
        assert row.is_gone_from(Version(row.since)), row
    sources = {row.source for row in removed_interfaces._REMOVED}
    assert "transformers/__init__.py in the wheels of transformers 4.49.0 and 4.50.0 on PyPI" in sources
