"""What is left out and called all the same is told, apart by whether the program calls it as it starts."""

from __future__ import annotations

import pytest
from test_proposals import tree

from patchlock.catalogue.proposals import findings, module_repairs, reached_code, stand_in_uses
from patchlock.catalogue.proposals._line_patches import MissingModule
from patchlock.catalogue.proposals.imports import Imports
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees

IMPORTS = "from fast import Engine\nimport fast.kernels as k\nimport fast\n\n\n"
OURS = "class Model:\n    def __init__(self, name=''):\n        self.engine = self._setup()\n\n"


def _told(files: dict[str, str]) -> list[tuple[str, str]]:
    made = tree(files)
    trees, command = Trees(made), ("python", "app.py")
    missing = {"fast": MissingModule(name="fast", why="its wheels are for CUDA", profiles=("cpu",))}
    sections = module_repairs.repair(missing, Imports(made, trees), made, lambda *_: "https://example.org")
    started = import_graph.reached(trees.files, command, "", trees).files
    idle = reached_code.idle_lines(trees, started, command)
    found = stand_in_uses.issues(trees, sections, started, command, idle)
    return [(findings.stops(one), str(place)) for one in found for place in one.found]


@pytest.mark.parametrize(
    "code",
    [
        "    def _setup(self):\n        return Engine(1)\n",
        "    def _setup(self):\n        x = [k.make().run(2)]\n",
        "    def _setup(self):\n        with fast.open():\n            pass\n",
    ],
)
def test_what_the_start_calls_stops_it(code: str) -> None:
    app = "from lib.models import Model\nmodel = Model(name='x')\n"

    ((stops, place),) = _told({"app.py": app, "lib/__init__.py": "", "lib/models.py": IMPORTS + OURS + code})

    assert stops == "stops the start"
    assert place.startswith("lib/models.py:11: ")


@pytest.mark.parametrize(
    "body",
    [
        "    if mode:\n        Engine(1)\n",
        "    if mode:\n        return\n    Engine(1)\n",
        "    for one in mode:\n        Engine(one)\n",
    ],
)
def test_what_a_condition_keeps_from_running_may_stop_a_use(body: str) -> None:
    told = _told({"app.py": "from lib import run\nrun(input())\n", "lib.py": f"{IMPORTS}def run(mode):\n{body}"})

    assert [stops for stops, _ in told] == ["stops the first use"]


@pytest.mark.parametrize(
    "body",
    [
        "    try:\n        Engine(1)\n    except Exception:\n        pass\n",
        "    if fast:\n        Engine(1)\n",
        "    kind = Engine\n    other(1)\n",
    ],
)
def test_what_does_no_harm_is_not_told(body: str) -> None:
    assert _told({"app.py": "import lib\nlib.run()\n", "lib.py": f"{IMPORTS}def run():\n{body}"}) == []


def test_function_that_nobody_mentions_is_not_told() -> None:
    assert _told({"app.py": "import lib\n", "lib.py": f"{IMPORTS}def idle():\n    Engine()\n"}) == []
