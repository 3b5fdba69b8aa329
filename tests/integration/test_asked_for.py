"""What a project asks for ends in its lock, is named as not covered, or is refused; nothing else is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, index, lock_here, wheel

LOCK = ("lockfiles", "mini", "tiny.linux-x86_64.txt")
PROJECT = """\
[project]
name = "mini"
dependencies = ["alpha"]

[project.optional-dependencies]
web = ["beta<1.5"]

[dependency-groups]
dev = ["gamma"]

[tool.uv]
override-dependencies = ["gamma<2"]
constraint-dependencies = ["zeta<2"]
exclude-dependencies = ["delta"]
"""


@pytest.fixture
def world_with_more(world: World) -> World:
    """An index in which there is something to choose, and an app that asks for it in other ways."""
    root = Path(world.env["UV_DEFAULT_INDEX"].removeprefix("file://"))
    made = [wheel(world.wheels, name, version) for name, version in (("beta", "1.2"), ("zeta", "1.0"), ("zeta", "2.0"))]
    made += [wheel(world.wheels, "zeta", "3.0rc1"), wheel(world.wheels, "delta", "1.0")]
    index(root, made)
    return world


def _asks(world: World, tmp_path: Path, files: dict[str, str], requirements: str, more: str = "") -> None:
    for name, text in files.items():
        path = world.upstream / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    text = world.app.read_text().replace('["requirements.txt"]\n', f"{requirements}\n{more}", 1)
    world.app.write_text(text)
    world.name_commit(tmp_path)


def _pins(world: World) -> list[str]:
    lines = world.catalogue.joinpath(*LOCK).read_text().splitlines()
    return [line.partition(" ")[0] for line in lines if not line.startswith("#")]


def _head(world: World) -> str:
    return world.catalogue.joinpath(*LOCK).read_text().partition("# ///\n")[0]


def _detail(patchlock: Patchlock) -> str:
    pair: dict[str, str] = json.loads(patchlock("lock", "mini", "--json").stdout)["data"]["pairs"][0]
    return pair["detail"]


def test_extras_groups_and_settings_of_uv_are_part_of_it(
    world_with_more: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    wanted = 'extras = ["web"]\ngroups = ["Dev"]\n'
    text = PROJECT.replace('"alpha"]', '"alpha==1.0", "zeta", "delta"]')
    _asks(world_with_more, tmp_path, {"pyproject.toml": text}, '["pyproject.toml"]', wanted)
    failed = patchlock(*lock_here())
    assert "gamma<2" in failed.stdout + failed.stderr  # the override stands in the place of alpha's `gamma<3`
    (world_with_more.upstream / "pyproject.toml").write_text(text.replace("gamma<2", "gamma>=3"))
    world_with_more.name_commit(tmp_path)

    done = patchlock(*lock_here())

    assert done.returncode == 0, done.stdout
    assert _pins(world_with_more) == ["alpha==1.0", "beta==1.2", "gamma==3.0", "zeta==1.0"]
    lock = world_with_more.catalogue.joinpath(*LOCK).read_text()
    assert "# pyproject.toml:9 · pyproject.toml:12 · via alpha · wheel py3-none-any" in lock
    assert "# pyproject.toml:3 · pyproject.toml:13 · wheel py3-none-any" in lock
    assert "not-covered" not in lock


def test_what_is_not_asked_for_is_named_in_the_lock(
    world_with_more: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    text = PROJECT.partition("[tool.uv]")[0].replace('"alpha"]', '"alpha[fast]"]')
    _asks(world_with_more, tmp_path, {"pyproject.toml": text}, '["pyproject.toml"]')

    done = patchlock(*lock_here())

    named = [
        'pyproject.toml: the extra "web" (beta), which `extras` of app.toml would add',
        'pyproject.toml: the group "dev" (gamma), which `groups` of app.toml would add',
        'pyproject.toml:3: alpha has no extra "fast"',
    ]
    assert done.returncode == 0, done.stdout
    assert [line.partition("not covered: ")[2] for line in done.stderr.splitlines() if "not covered" in line] == named
    assert f"# not-covered = {json.dumps(named)}\n" in _head(world_with_more)
    assert patchlock("lock", "mini", "--check", "--profile", "tiny").returncode in {0, 1}
    assert "stale" not in patchlock("lock", "--check").stdout


@pytest.mark.parametrize(
    ("files", "requirements", "told"),
    [
        pytest.param(
            {"environment.yml": "dependencies:\n  - ffmpeg\n"},
            '["environment.yml"]',
            "environment.yml asks for no package on linux-x86_64, and a lock without any installs nothing",
            id="conda",
        ),
        pytest.param(
            {"requirements.txt": "alpha; sys_platform == 'aix'\n"},
            '["requirements.txt"]',
            "requirements.txt asks for no package on linux-x86_64, and a lock without any installs nothing",
            id="another-machine",
        ),
        pytest.param(
            {"pyproject.toml": '[project]\ndynamic = ["dependencies"]\n'},
            '["pyproject.toml"]',
            "`dependencies` is dynamic, and its build backend finds it elsewhere (pyproject.toml:2); name the file that "
            "says it in `requirements` of app.toml, such as setup.cfg or setup.py; or write the requirements into a "
            "file with a patch (add-file), and name that in `requirements`",
            id="dynamic",
        ),
        pytest.param(
            {"requirements.txt": "alpha\n"},
            '["gone.txt"]',
            "upstream has no file gone.txt; correct `requirements` in patches/mini/app.toml",
            id="no-file",
        ),
    ],
)
def test_lock_of_nothing_has_to_be_asked_for(
    world: World, patchlock: Patchlock, tmp_path: Path, files: dict[str, str], requirements: str, told: str
) -> None:
    text = world.app.read_text()
    start, end = text.index("[[patch]]"), text.index('[[patch]]\nid = "on-the-cpu"')
    world.app.write_text(text[:start] + text[end:])
    _asks(world, tmp_path, files, requirements)
    assert told in _detail(patchlock)
    assert not world.catalogue.joinpath(*LOCK).exists()


def test_lock_of_nothing_that_is_asked_for(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    files = {"environment.yml": "dependencies:\n  - ffmpeg\n"}
    _asks(world, tmp_path, files, '["environment.yml"]', "installs-nothing = true\n")
    done = patchlock(*lock_here())
    assert done.returncode == 0, done.stdout
    assert _pins(world) == []
    assert '# not-covered = ["environment.yml:2: ffmpeg is a package of conda\'s"]\n' in _head(world)


def test_project_for_another_python_is_named(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    text = '[project]\nrequires-python = ">=3.99"\ndependencies = ["beta"]\n'
    _asks(world, tmp_path, {"pyproject.toml": text}, '["pyproject.toml"]')
    done = patchlock(*lock_here())
    assert done.returncode == 0, done.stdout
    assert "pyproject.toml:2 asks for Python >=3.99, and the profile has 3.11" in done.stderr
    assert ">=3.99" not in world.catalogue.joinpath(*LOCK).read_text()


def test_dynamic_list_is_followed_to_its_file(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    text = '[project]\ndynamic = ["dependencies"]\n[tool.setuptools.dynamic]\ndependencies = { file = ["deps/main"] }\n'
    _asks(world, tmp_path, {"pyproject.toml": text, "deps/main": "beta\n"}, '["pyproject.toml"]')
    done = patchlock(*lock_here())
    assert done.returncode == 0, done.stdout
    assert _pins(world) == ["beta==1.5"]
    head = _head(world)
    assert '"upstream:deps/main"' in head
    assert '"upstream:pyproject.toml"' in head


def test_files_of_the_repository_are_read_and_no_others(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    for stranger in (tmp_path / "base.txt", world.catalogue / "base.txt", world.upstream.parent / "base.txt"):
        stranger.write_text("gamma\n")
    app = world.app.read_text()
    world.app.write_text(app.replace('branch = "main"\n', 'branch = "main"\ndirectory = "apps/x"\n'))
    start, end = app.index("[[patch]]"), app.index("[[check]]")
    world.app.write_text(world.app.read_text().replace(app[start:end], ""))
    files = {"base.txt": "beta\n", "apps/x/requirements.txt": "-r ../../base.txt\nalpha==1.0\n"}
    _asks(world, tmp_path, files, '["requirements.txt"]')

    done = patchlock(*lock_here())

    assert done.returncode == 0, done.stdout
    assert _pins(world) == ["alpha==1.0", "beta==1.5", "gamma==2.0"]
    assert "# ../../base.txt:1 · wheel py3-none-any" in world.catalogue.joinpath(*LOCK).read_text()
    assert '"upstream:../../base.txt"' in _head(world)
    assert '"upstream:requirements.txt"' in _head(world)
    (world.upstream / "apps" / "x" / "requirements.txt").write_text("-r ../../../base.txt\n")
    world.name_commit(tmp_path)
    assert _detail(patchlock) == (
        '"-r ../../../base.txt" leads out of the repository (requirements.txt:1); drop the line with a patch '
        "(replace-text)"
    )


def test_comment_that_ends_in_a_backslash_hides_no_line(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    _asks(world, tmp_path, {"requirements.txt": "alpha==9.0\n# pinned \\\nbeta\n"}, '["requirements.txt"]')
    assert patchlock(*lock_here()).returncode == 0
    assert _pins(world) == ["alpha==1.0", "beta==1.5", "gamma==2.0"]


def test_early_releases_are_taken_where_the_file_says_so(
    world_with_more: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    _asks(world_with_more, tmp_path, {"requirements.txt": "alpha==9.0\nzeta\n"}, '["requirements.txt"]')
    assert patchlock(*lock_here()).returncode == 0
    assert _pins(world_with_more)[-1] == "zeta==2.0"
    (world_with_more.upstream / "requirements.txt").write_text("--pre\nalpha==9.0\nzeta\n")
    world_with_more.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    assert _pins(world_with_more)[-1] == "zeta==3.0rc1"


PATCH_OF_AN_INCLUDED_FILE = """\
[[patch]]
id = "one-index"
why = "a lock asks one index only"
source = "https://example.com/why"
op = "replace-text"
paths = ["base.txt"]
old = "--extra-index-url https://example.com/simple\\n"
new = ""

[[patch.ensure]]
check = "lacks"
text = "extra-index-url"

"""


def test_patch_mends_a_file_that_another_one_includes(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    included = "--extra-index-url https://example.com/simple\nbeta\n"
    files = {"requirements.txt": "-r base.txt\nalpha==9.0\n", "base.txt": included}
    _asks(world, tmp_path, files, '["requirements.txt"]')
    assert _detail(patchlock).endswith("what only that place has is named by a recorded index of the profile")
    world.app.write_text(world.app.read_text().replace("[[check]]", PATCH_OF_AN_INCLUDED_FILE + "[[check]]", 1))

    done = patchlock(*lock_here())

    assert done.returncode == 0, done.stdout
    assert _pins(world) == ["alpha==1.0", "beta==1.5", "gamma==2.0"]


def test_bounds_of_upstream_may_be_for_others(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    settings = "".join(f'{kind}-dependencies = ["other"]\n' for kind in ("override", "constraint", "exclude"))
    files = {"pyproject.toml": '[project]\ndependencies = ["beta"]\n', "uv.toml": settings}
    _asks(world, tmp_path, files, '["pyproject.toml"]')
    done = patchlock(*lock_here())
    assert done.returncode == 0, done.stdout
    assert _pins(world) == ["beta==1.5"]
    assert '"upstream:uv.toml"' in _head(world)
