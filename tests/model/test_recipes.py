"""Recipes and in-tree builds as tables and values: jobs from memory, order, mistakes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue import _apps_and_profiles
from patchlock.catalogue import _recipes as catalogue_recipes
from patchlock.catalogue.table_reader import Report, Table
from patchlock.environments.builds import _tools
from patchlock.model import recipes
from patchlock.model.recipes import InTree, Jobs, Recipe

GB = 1_000_000_000


@pytest.mark.parametrize(
    ("jobs", "memory", "processors", "count"),
    [
        pytest.param(
            Jobs(memory_per_job_gb=6, reserve_gb=8, least=2, most=12), 128 * GB, 14, 12, id="onnxruntime, Thor"
        ),
        pytest.param(Jobs(memory_per_job_gb=6, reserve_gb=8, least=2, most=12), 64 * GB, 14, 9, id="onnxruntime, Orin"),
        pytest.param(Jobs(memory_per_job_gb=6, reserve_gb=8, least=2, most=12), 8 * GB, 8, 2, id="at least"),
        pytest.param(Jobs(), 16 * GB, 4, 4, id="no more than processors"),
        pytest.param(Jobs(least=4), 2 * GB, 2, 2, id="least is not a reason for more than processors"),
        pytest.param(Jobs(reserve_gb=8), 2 * GB, 8, 1, id="little memory"),
    ],
)
def test_jobs_follow_memory_and_processors(jobs: Jobs, memory: int, processors: int, count: int) -> None:
    assert jobs.count(memory, processors) == count


@pytest.mark.parametrize(
    ("files", "gigabytes"),
    [
        pytest.param({}, 16, id="no container"),
        pytest.param({"sys/fs/cgroup/memory.max": "max\n"}, 16, id="v2 without limit"),
        pytest.param({"sys/fs/cgroup/memory.max": "4000000000\n"}, 4, id="v2, the container's own root"),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2000000000\n"}, 2, id="v2, a group below"
        ),
        pytest.param({"sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000000\n"}, 3, id="v1"),
        pytest.param(
            {"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16, id="v1 without limit"
        ),
        pytest.param(
            {
                "proc/self/cgroup": "5:cpu:/x\n4:memory:/x\n",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1000000000\n",
            },
            1,
            id="v1, a group below",
        ),
    ],
)
def test_memory_is_that_of_the_container(tmp_path: Path, files: dict[str, str], gigabytes: int) -> None:
    for name, text in {"proc/meminfo": "MemTotal:       15625000 kB\nMemFree: 1 kB\n", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _tools.memory(tmp_path) == gigabytes * GB


def _read(text: str) -> tuple[tuple[Recipe, ...], tuple[InTree, ...], list[str]]:
    report = Report(file="app.toml", text=text)
    root = Table(tomllib.loads(text), report)
    found = catalogue_recipes.recipes(root, ("cpu",), _apps_and_profiles.patches)
    built = catalogue_recipes.in_tree(root, ("cpu",))
    return found, built, [f"{p.line} {p.key}: {p.what}" for p in report.problems]


RECIPE = '[[recipe]]\nname = "Py_World"\nwhy = "x"\nsource = "y"\n'
RECIPE_PATCH = """[[recipe.patch]]
id = "a"
why = "x"
source = "y"
advisory = true
op = "replace-text"
paths = ["a.py"]
old = "a"
new = "b"
ensure = [{ check = "lacks", text = "a" }]
"""
IN_TREE = (
    '[[in-tree]]\nid = "align"\nfolder = "modules/a"\nrequires = ["cython>=3"]\ncommand = ["python", "setup.py"]\n'
    'products = ["a/core.*"]\nwhy = "x"\nsource = "y"\n'
)


def test_tables_become_values() -> None:
    text = RECIPE + 'versions = ">=0.3"\nneeds = ["cc"]\njobs = { memory-per-job-gb = 6, max = 12 }\n'
    (recipe,), (built,), problems = _read(text + '[recipe.environment]\nCFLAGS = "-O1"\n' + IN_TREE)
    assert problems == []
    assert (recipe.name, recipe.environment, recipe.jobs.memory_per_job_gb) == ("py-world", {"CFLAGS": "-O1"}, 6)
    assert (str(built.folder), built.products, [str(one) for one in built.requires]) == (
        "modules/a",
        ("a/core.*",),
        ["cython>=3"],
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (RECIPE + 'after = ["torch"]\n', "5 recipe[0].after: no recipe of torch comes earlier"),
        (RECIPE + RECIPE, "6 recipe[1].name: there is a recipe of py-world for the same versions already"),
        (RECIPE + "jobs = { min = 3, max = 2 }\n", "5 recipe[0].jobs: each job needs memory, and `min` is at least 1 and at most `max`"),
        (RECIPE + 'environment = { HOME = "/x" }\n', "5 recipe[0].environment: HOME is set by patchlock"),
        (RECIPE + 'needs = ["sudo rm"]\n', '5 recipe[0].needs: "sudo rm" is not the name of a program'),
        (RECIPE + 'profiles = ["gpu"]\n', '5 recipe[0].profiles: there is no profile "gpu"'),
        (RECIPE + 'platforms = ["linux"]\n', '5 recipe[0].platforms: there is no platform "linux"'),
        (RECIPE + 'flags = "x"\n', '5 recipe[0].flags: the key "flags" is unknown'),
        (RECIPE + RECIPE_PATCH, "1 recipe[0].patch: what is built is patched completely or not at all"),
        (IN_TREE.replace("modules/a", "../a"), '3 in-tree[0].folder: "../a" must be a POSIX path inside the folder'),
        (IN_TREE.replace("modules/a", ".git/hooks"), '3 in-tree[0].folder: ".git/hooks" must be a POSIX path inside the folder'),
        (IN_TREE.replace("a/core.*", "*/core.*"), '6 in-tree[0].products: "*/core.*" may have wildcards only in its last part'),
        (IN_TREE.replace('["a/core.*"]', "[]"), "6 in-tree[0].products: it is empty"),
        (IN_TREE + IN_TREE, '10 in-tree[1].id: the id "align" is taken by another in-tree build'),
    ],
)  # fmt: skip
def test_mistake_is_named_with_its_line(text: str, problem: str) -> None:
    assert _read(text)[2] == [problem]


def test_builds_go_in_the_order_of_their_recipes() -> None:
    (first, second), _, _ = _read(RECIPE + RECIPE.replace("Py_World", "alpha"))
    names = [canonicalize_name(name) for name in ("zeta", "alpha", "beta", "py-world")]
    assert recipes.in_order(names, (first, second)) == ("py-world", "alpha", "beta", "zeta")


def test_recipe_is_for_its_versions() -> None:
    (old, new), _, _ = _read(RECIPE + 'versions = "<1"\n' + RECIPE + 'versions = ">=1"\n')
    name = canonicalize_name("py-world")
    assert recipes.recipe_for(name, Version("0.3"), (old, new)) is old
    assert recipes.recipe_for(name, Version("1.5b1"), (old, new)) is new
    assert recipes.recipe_for(name, Version("2"), (old, new)) is new
    assert recipes.recipe_for(name, Version("2"), (old,)) is None


ARCHIVE = """
[[recipe]]
name = "torch"
versions = "==2.0"
why = "x"
source = "tests"

[recipe.archive]
option = "torch-from-source"
url = "https://example.org/torch-v2.0.tar.gz"
sha256 = "{digest}"
hours = 5
processors = 12
memory-gb = 26
disk-gb = 60
gives = "torch built here"
"""


def test_source_builds_of_one_name_cost_together() -> None:
    both = ARCHIVE.format(digest="0" * 64)
    both += both.replace('"torch"', '"torchaudio"').replace("hours = 5", "hours = 1").replace("= 60", "= 5")
    both = both.replace("torch built here", "torchaudio too", 2).replace("torchaudio too", "torch built here", 1)
    report = Report(file="app.toml", text=both)
    found = catalogue_recipes.recipes(Table(tomllib.loads(both), report), None, lambda _: ())
    assert not report.problems
    [build] = recipes.source_builds(found)
    assert [one.name for one in build.recipes] == ["torch", "torchaudio"]
    assert build.told() == (
        "torch built here; torchaudio too; it takes about 6 hours on 12 CPU cores, 24.2 GiB of memory and 60.5 GiB of disk"
    )


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("torch-from-source", "torch", '"torch" must be lower-case words joined by "-" that end in "-from-source"'),
        ("https://", "http://", "must be the https address of a .tar.gz, .tar.xz or .zip file"),
        ("0" * 64, "0" * 63, "it is not 64 lower-case hexadecimal digits"),
        ("hours = 5\n", "", 'the key "hours" is missing'),
    ],
    ids=["option", "address", "digest", "hours"],
)
def test_mistakes_of_an_archive_are_named(old: str, new: str, what: str) -> None:
    text = ARCHIVE.format(digest="0" * 64)
    assert old in text
    text = text.replace(old, new)
    report = Report(file="app.toml", text=text)
    catalogue_recipes.recipes(Table(tomllib.loads(text), report), None, lambda _: ())
    assert [what in problem.what for problem in report.problems] == [True]
