"""`patch new` and `patch test` as a maintainer runs them: on clones, on folders, on history."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World

IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    """Run git as the user."""
    done = subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(clone: Path, **texts: str | None) -> str:
    """Write or delete files and commit them; in a name `__` is a slash and `_` a dot."""
    for name, text in texts.items():
        path = clone / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "x")
    return git(clone, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with one commit."""
    made = tmp_path / "clone"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    commit(made, app__app_py='DEVICE = "cuda"\n', app__requirements_txt="alpha==9.0\n", notes_md="# notes\n")
    return made


# --- patch new --------------------------------------------------------------------------------------------------------

CPU = """\
[[patch]]
id = "mine-cpu"
why = "TODO: say what is wrong with upstream's code here, and for whom"
source = "TODO: a link that shows the trouble"
op = "replace-expression"
paths = ["app.py"]
literal = ["cuda"]
expect = { sites = 1, exact = true }
pattern = '"cuda"'
replacement = '"cpu"'

[[patch.ensure]]
check = "no-string"
value = "cuda"

[[patch.ensure]]
check = "has-statement"
statement = "DEVICE = 'cpu'"
"""


def test_edits_of_a_clone_become_tables(clone: Path, patchlock: Patchlock) -> None:
    (clone / "app" / "app.py").write_text('DEVICE = "cpu"\n')
    (clone / "notes.md").write_text("of another folder\n")
    done = patchlock("patch", "new", "--source", str(clone / "app"), "--id", "mine")
    assert done.returncode == 0, done.stderr
    assert done.stdout == CPU
    head = git(clone, "rev-parse", "HEAD")[:12]
    assert done.stderr == (
        f"app.py: replace-expression; applied to commit {head}, it gives the same bytes\n"
        "now write down why: each patch has a `why` and a `source` that begin with TODO\n"
    )
    assert git(clone, "status", "--porcelain") == "M app/app.py\n M notes.md"


def test_fork_that_commits_what_the_patches_write_can_take_it_out(clone: Path, patchlock: Patchlock) -> None:
    commit(clone, app__requirements_txt="numpy\ntorch\n")
    head = git(clone, "rev-parse", "HEAD")
    (clone / "app" / "requirements.txt").write_text("numpy\ntorch>=2.0,<2.5\n")
    into = clone / "patches.toml"
    done = patchlock("patch", "new", "--source", str(clone), "--into", str(into), "--json")
    [note] = json.loads(done.stdout)["data"]["notes"]
    back, renew = re.findall("`(git [^`]*|patchlock patch apply [^`]*)`", note)
    assert subprocess.run(back.split(), check=False, capture_output=True).returncode == 0
    assert patchlock(*renew.split()[1:]).returncode == 0
    commit(clone)
    fresh = clone.parent / "fresh"
    git(clone.parent, "clone", "-q", str(clone), str(fresh))
    options = ("--patches", str(fresh / "patches.toml"), "--source", str(fresh))
    assert patchlock("patch", "apply", *options).returncode == 0
    assert patchlock("patch", "undo", "--source", str(fresh)).returncode == 0
    assert git(fresh, "diff", head, "--stat", "--", "app") == ""


def test_patch_that_was_removed_and_written_anew_stops_no_other(clone: Path, patchlock: Patchlock) -> None:
    head = git(clone, "rev-parse", "HEAD")
    text = 'DEVICE = "cuda"\n\n# a remark\n# of two lines\nif True:\n    print("x")\n'
    (clone / "app" / "app.py").write_text(text)
    into = clone / "patches.toml"
    new = ("patch", "new", "--source", str(clone), "--base", head, "--into", str(into))
    assert patchlock(*new).returncode == 0
    *_, last = re.split(r"(?m)^(?=\[\[patch\]\])", into.read_text())[1:]
    assert re.search(r"(?m)^after = ", last)
    commit(clone, app__app_py=text.replace("x", "y"))
    into.write_text(last)
    apply = ("patch", "apply", "--patches", str(into), "--source", str(clone))
    assert (patchlock(*new).returncode, patchlock(*apply).returncode) == (0, 0)
    assert git(clone, "diff", "--name-only") == "patches.toml"


def test_comment_whose_patch_was_removed_is_written_again(clone: Path, patchlock: Patchlock) -> None:
    head = git(clone, "rev-parse", "HEAD")
    text = 'DEVICE = "cuda"\n# a remark\nif True:\n    print("x")\n'
    (clone / "app" / "app.py").write_text(text)
    into = clone / "patches.toml"
    new = ("patch", "new", "--source", str(clone), "--base", head, "--into", str(into))
    assert patchlock(*new).returncode == 0
    tables = re.split(r"(?m)^(?=\[\[patch\]\])", into.read_text())[1:]
    kept = [table for table in tables if "# a remark" not in table]
    assert 0 < len(kept) < len(tables)
    commit(clone)
    apply = ("patch", "apply", "--patches", str(into), "--source", str(clone))
    assert patchlock(*apply).returncode == 0
    into.write_text("".join(kept))
    assert (patchlock(*new).returncode, patchlock(*apply).returncode) == (0, 0)
    assert (clone / "app" / "app.py").read_text() == text


def test_another_base_and_new_deleted_and_ignored_files(clone: Path, patchlock: Patchlock) -> None:
    first = git(clone, "rev-parse", "HEAD")
    commit(clone, app__app_py='DEVICE = "tpu"\n', app__requirements_txt=None, _gitignore="*.log\n")
    (clone / "app" / "start.sh").write_text("#!/bin/sh\n")
    (clone / "app" / "start.sh").chmod(0o755)
    (clone / "app" / "x.log").write_text("x\n")
    done = patchlock("patch", "new", "--source", str(clone / "app"), "--base", first, "--json")
    data = json.loads(done.stdout)["data"]
    assert [(one["op"], one["paths"]) for one in data["patches"]] == [
        ("replace-expression", ["app.py"]),
        ("add-file", ["start.sh"]),
    ]
    assert "executable = true" in data["toml"]
    assert data["notes"] == [
        "requirements.txt was deleted: no patch deletes a file; neutralise what uses it",
        "git ignores x.log: not looked at; for a patch that adds such a file, first `git add -f FILE`",
    ]


@pytest.mark.parametrize(
    ("text", "is_into", "paths"),
    [
        pytest.param(CPU.replace("TODO: say", "It is"), True, ["requirements.txt"], id="why-written"),
        pytest.param("", True, ["app.py", "requirements.txt"], id="emptied"),
        pytest.param(CPU, False, ["app.py", "requirements.txt"], id="of-others"),
    ],
)
def test_files_of_patches_are_no_edits(
    clone: Path, patchlock: Patchlock, text: str, is_into: bool, paths: list[str]
) -> None:
    mine = clone / "app" / "mine.toml"
    upstream = git(clone, "rev-parse", "HEAD")
    commit(clone, app__mine_toml=CPU, app__app_py='DEVICE = "cpu"\n')
    (clone / "app" / "more.toml").write_text(CPU)
    (clone / "app" / "requirements.txt").write_text("alpha==9.1\n")
    for base, wanted in (("HEAD", ["requirements.txt"]), (upstream, paths)):
        mine.write_text(text)
        into = ("--into", str(mine)) if is_into else ()
        done = patchlock("patch", "new", "--source", str(mine.parent), "--base", base, *into, "--json")
        assert [path for one in json.loads(done.stdout)["data"]["patches"] for path in one["paths"]] == wanted


def test_two_folders_are_compared_without_git(tmp_path: Path, patchlock: Patchlock) -> None:
    for name, text in (("old", 'x = "cuda"\n'), ("new", 'x = "cpu"\n')):
        (tmp_path / name / "__pycache__").mkdir(parents=True)
        (tmp_path / name / "__pycache__" / "x.pyc").write_text(name)
        (tmp_path / name / "x.py").write_text(text)
    done = patchlock("patch", "new", "--source", "new", "--base-dir", "old", "--json")
    data = json.loads(done.stdout)["data"]
    assert [(one["op"], one["paths"]) for one in data["patches"]] == [("replace-expression", ["x.py"])]
    assert data["notes"] == []


def test_tables_are_appended_and_can_be_tried_at_once(
    world: World, clone: Path, patchlock: Patchlock, tmp_path: Path
) -> None:
    before = world.app.read_text()
    edited = tmp_path / "edited"
    edited.mkdir()
    for file in world.upstream.iterdir():
        (edited / file.name).write_bytes(file.read_bytes().replace(b"# miniature", b"# minimal"))
    words = ("patch", "new", "--source", str(edited), "--base-dir", str(world.upstream), "--into", str(world.app))
    assert patchlock(*words).returncode == 0
    assert world.app.read_text().startswith(before)
    done = patchlock("patch", "test", "mini")
    assert done.returncode == 0, done.stdout
    assert "to be explained (why or source begins with TODO): readme-by-text" in done.stdout
    again = patchlock(*words)
    assert again.returncode == 0
    assert (
        again.stderr
        == f"note: 1 change is already in {world.app} or its shared sets (readme-by-text): not written again\n"
    )
    assert re.findall(r'id = "(readme.*)"', world.app.read_text()) == ["readme-by-text"]


SHARED = """\
[set]
title = "no CUDA in the text"
source = "https://example.com/why"

[[patch]]
id = "text"
why = "there is none"
source = "https://example.com/why"
op = "replace-text"
paths = ["README.md"]
old = "# miniature"
new = "# minimal"
ensure = [{{ check = "lacks", text = "# miniature" }}]
{}
"""


@pytest.mark.parametrize(
    ("shared", "more", "is_written", "note"),
    [
        (
            'shared = ["words"]',
            "",
            False,
            "1 change is already in {app} or its shared sets (words-text): not written again",
        ),
        (
            "",
            "",
            True,
            (
                'the shared set "words" makes such an edit too (words-text): to use it, add "words" to `shared` in [app] '
                "of {app}, and remove the new patch readme-by-text"
            ),
        ),
        (
            'shared = ["words"]',
            'profiles = ["tiny"]',
            True,
            (
                'the shared set "words" makes such an edit too (words-text): remove the new patch readme-by-text, or give '
                "it other `profiles` than tiny"
            ),
        ),
    ],
    ids=["used", "unused", "for-a-profile"],
)
def test_a_shared_set_that_makes_the_edit_is_told(
    shared: str, more: str, is_written: bool, note: str, world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    (folder := world.catalogue / "patches" / "shared").mkdir()
    (folder / "words.toml").write_text(SHARED.format(more))
    world.app.write_text(world.app.read_text().replace("[app]\n", f"[app]\n{shared}\n"))
    (edited := tmp_path / "edited").mkdir()
    for file in world.upstream.iterdir():
        (edited / file.name).write_bytes(file.read_bytes().replace(b"# miniature", b"# minimal"))
    words = ("patch", "new", "--source", str(edited), "--base-dir", str(world.upstream), "--into", str(world.app))
    done = patchlock(*words)
    assert done.returncode == 0, done.stderr
    assert ("readme-by-text" in world.app.read_text()) == is_written
    assert f"note: {note.format(app=world.app)}\n" in done.stderr


def test_a_shared_set_that_changes_an_edited_line_otherwise_is_told(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    (folder := world.catalogue / "patches" / "shared").mkdir()
    text = SHARED.format("").replace("# minimal", "# tiny")
    (folder / "words.toml").write_text(text.replace('"lacks", text = "# miniature"', '"contains", text = "# tiny"'))
    world.app.write_text(world.app.read_text().replace("[app]\n", '[app]\nshared = ["words"]\n'))
    (edited := tmp_path / "edited").mkdir()
    for file in world.upstream.iterdir():
        (edited / file.name).write_bytes(file.read_bytes().replace(b"# miniature", b"# minimal"))
    words = ("patch", "new", "--source", str(edited), "--base-dir", str(world.upstream), "--into", str(world.app))
    done = patchlock(*words)
    assert done.returncode == 0, done.stderr
    assert (
        'note: the shared set "words" changes lines of your edits in another way (words-text at README.md:1): remove the '
        f'new patch readme-by-text, or leave out those of the set: `without = ["words-text"]` in [app] of {world.app}\n'
    ) in done.stderr
    assert (
        "note: README.md is text for people and no code: remove its patch, unless it must be patched\n" in done.stderr
    )
    world.app.write_text(world.app.read_text().replace("[app]\n", '[app]\nwithout = ["words-text"]\n'))
    assert patchlock("patch", "test", "mini").returncode == 0


def test_all_profiles_on_which_a_shared_set_changes_edited_lines_are_named(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    world.profile.with_name("other.toml").write_text(world.profile.read_text().replace("Tiny", "Other"))
    (folder := world.catalogue / "patches" / "shared").mkdir()
    title, table = SHARED.split("[[patch]]")
    text = f"[[patch]]{table}".replace("# minimal", "# tiny").replace(
        '"lacks", text = "# miniature"', '"contains", text = "#"'
    )
    other = text.replace('"text"', '"more"').format('profiles = ["other"]')
    (folder / "words.toml").write_text(title + text.format('profiles = ["tiny"]') + other)
    world.app.write_text(world.app.read_text().replace("[app]\n", '[app]\nshared = ["words"]\n'))
    (edited := tmp_path / "edited").mkdir()
    for file in world.upstream.iterdir():
        (edited / file.name).write_bytes(file.read_bytes().replace(b"# miniature", b"# minimal"))
    (edited / "new.py").write_text("new = 1\n")
    words = ("patch", "new", "--source", str(edited), "--base-dir", str(world.upstream), "--into", str(world.app))
    done = patchlock(*words)
    assert 'paths = ["new.py"]' in world.app.read_text()
    assert (
        'note: the shared set "words" changes lines of your edits in another way (words-text at README.md:1, words-more '
        "at README.md:1): remove the new patch readme-by-text, or give it other `profiles` than other, tiny, or leave out "
        f'those of the set: `without = ["words-text", "words-more"]` in [app] of {world.app}\n'
    ) in done.stderr


def test_a_shared_set_that_makes_the_edit_on_one_of_its_profiles_is_told(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    world.profile.with_name("other.toml").write_text(world.profile.read_text().replace("Tiny", "Other"))
    (folder := world.catalogue / "patches" / "shared").mkdir()
    title, table = SHARED.split("[[patch]]")
    tiny, other = (f"[[patch]]{table}".format(f'profiles = ["{name}"]') for name in ("tiny", "other"))
    other = other.replace('"text"', '"more"', 1).replace("# minimal", "# small")
    (folder / "words.toml").write_text(title + tiny + other)
    world.app.write_text(world.app.read_text().replace("[app]\n", '[app]\nshared = ["words"]\n'))
    (edited := tmp_path / "edited").mkdir()
    for file in world.upstream.iterdir():
        (edited / file.name).write_bytes(file.read_bytes().replace(b"# miniature", b"# minimal"))
    done = patchlock(
        "patch", "new", "--source", str(edited), "--base-dir", str(world.upstream), "--into", str(world.app)
    )
    assert (
        'note: the shared set "words" makes such an edit too (words-text), but words-more changes these lines in another '
        "way: remove the new patch readme-by-text, or give it other `profiles` than other, tiny\n"
    ) in done.stderr


def test_patches_of_some_profiles_that_change_edited_lines_may_go_instead_of_the_new_one(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    table = "[[patch]]" + SHARED.split("[[patch]]")[1].format("")
    same = table.replace("text", "same", 1).rstrip() + '\nprofiles = ["cpu"]\n'
    other = table.replace("text", "other", 1).replace("# minimal", "# small").rstrip() + '\nprofiles = ["cuda-linux"]\n'
    world.app.write_text(f"{world.app.read_text()}\n{same}\n{other}")
    (edited := tmp_path / "edited").mkdir()
    for file in world.upstream.iterdir():
        (edited / file.name).write_bytes(file.read_bytes().replace(b"# miniature", b"# minimal"))

    words = ("patch", "new", "--source", str(edited), "--base-dir", str(world.upstream), "--into", str(world.app))
    done = patchlock(*words)

    lines = world.app.read_text().splitlines()
    places = {
        one.split('"')[1]: f"{world.app}:{number - 1}"
        for number, one in enumerate(lines, start=1)
        if one.startswith("id = ") and lines[number - 2] == "[[patch]]"
    }
    new = f"remove readme-by-text ({places['readme-by-text']}) or give it other `profiles`"
    assert (
        f"note: same does what readme-by-text does, for cpu alone: remove same ({places['same']}), or {new}\n"
        "note: other does something else in lines of readme-by-text, for cuda-linux alone: remove other "
        f"({places['other']}), or {new}\n"
    ) in done.stderr
    assert "any more" not in done.stderr  # each of them fits, on its profile


def test_what_patches_of_a_profile_did_to_a_clone_is_no_edit(
    world: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    (folder := world.catalogue / "patches" / "shared").mkdir()
    (folder / "words.toml").write_text(SHARED.format('profiles = ["tiny"]'))
    world.app.write_text(world.app.read_text().replace("[app]\n", '[app]\nshared = ["words"]\n'))
    (clone := tmp_path / "clone").mkdir()
    git(clone, "init", "-q", "-b", "main")
    commit(clone, **{file.name.replace(".", "_"): file.read_text() for file in world.upstream.iterdir()})
    applied = patchlock("patch", "apply", "mini", "--profile", "tiny", "--source", str(clone))
    assert applied.returncode == 0, applied.stderr
    before = world.app.read_text()
    done = patchlock("patch", "new", "--source", str(clone), "--into", str(world.app))
    assert (world.app.read_text(), "words-text" in done.stderr) == (before, True), done.stderr


def test_nothing_edited_is_said(clone: Path, patchlock: Patchlock) -> None:
    done = patchlock("patch", "new", "--source", str(clone))
    assert (done.returncode, done.stdout) == (0, "")
    head = git(clone, "rev-parse", "HEAD")
    assert done.stderr == (
        f"nothing differs from HEAD (commit {head[:12]}); if your edits are committed, name upstream's commit: "
        "--base COMMIT\n"
    )
    named = patchlock("patch", "new", "--source", str(clone), "--base", head)
    assert named.stderr == f"nothing differs from commit {head[:12]}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--source", "nowhere"), r"there is no such folder \(nowhere\)"),
        (("--source", "."), r"that folder is not a git clone \(\.\); say what it was made from: --base-dir FOLDER"),
        (
            ("--source", "clone", "--base", "v9"),
            r'that clone has no commit "v9" \(clone\); name one with --base COMMIT',
        ),
        (
            ("--source", "clone", "--base", "x", "--base-dir", "."),
            "--base and --base-dir exclude each other; name a commit or a folder",
        ),
        (("--source", "clone", "--id", "A b"), 'the id "A b" must be lower-case words joined by "-"; use --id a-b'),
        (("--source", "clone", "--into", "bad.toml"), r"that file is not TOML: .* \(bad.toml\); correct it first"),
        (("--source", "clone", "--into", "no/app.toml"), "there is no folder no; make it first, or correct --into"),
    ],
    ids=["no-folder", "no-clone", "no-commit", "two-bases", "id", "into", "into-no-folder"],
)
def test_mistakes_of_patch_new(
    clone: Path, patchlock: Patchlock, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "bad.toml").write_text("[")
    done = patchlock("patch", "new", *words)
    assert done.returncode == 2
    assert re.fullmatch(rf"error\[usage\]: {message}\n", done.stderr), done.stderr


def test_settings_of_a_clone_start_no_program(clone: Path, patchlock: Patchlock, tmp_path: Path) -> None:
    trap = f"touch {tmp_path / 'sprung'}"
    for name in (
        "filter.x.clean",
        "filter.x.smudge",
        "diff.x.textconv",
        "diff.external",
        "core.fsmonitor",
        "gpg.program",
    ):
        git(clone, "config", name, trap)
    git(clone, "config", "log.showSignature", "true")
    (clone / ".gitattributes").write_text("* filter=x diff=x\n")
    (clone / "app" / "app.py").write_text('DEVICE = "cpu"\n')
    done = patchlock("patch", "new", "--source", str(clone))
    assert done.returncode == 0, done.stderr
    assert "replace-expression" in done.stdout
    assert not (tmp_path / "sprung").exists()


# --- patch test -------------------------------------------------------------------------------------------------------


def case(world: World, patch: str, name: str, **texts: str) -> Path:
    """Write a case; `before__app_py` is `before/app.py`."""
    folder = world.app.parent / "cases" / patch / name
    for path, text in texts.items():
        file = folder / path.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_pairs_beside_a_patch_are_run(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    folder = case(world, "on-the-cpu", "one", before__a_py='x = "cuda"\n', after__a_py='x = "cpu"\n')
    case(world, "on-the-cpu", "two", before__a_py='g("cuda"\n', outcome="unparsable upstream\n")
    (compiled := folder / "before" / "__pycache__").mkdir()  # as pip leaves it in a catalogue that came in a wheel
    (compiled / "a.cpython-311.pyc").write_bytes(b"\0cuda")
    done = patchlock("patch", "test", "mini")
    assert done.returncode == 0, done.stdout
    head = world.name_commit(tmp_path)
    assert done.stdout == (
        f"mini: 2 cases, 2 as written; together on commit {head[:12]}\n  without a case: alpha-that-exists\n"
    )
    assert patchlock("lock", "mini").returncode == 0
    case(world, "on-the-cpu", "one", after__a_py='x = "tpu"\n')
    failed = patchlock("patch", "test", "mini")
    assert failed.returncode == 1
    assert "  on-the-cpu/one: a.py:1: it becomes 'x = \"cpu\"\\n', not 'x = \"tpu\"\\n'\n" in failed.stdout
    assert patchlock("patch", "test", "mini", "--patch", "alpha-that-exists").returncode == 0
    assert patchlock("lock", "--check").returncode == 0, "cases make no lock stale"


def test_a_patch_that_finds_nothing_on_the_source_is_named(world: World, clone: Path, patchlock: Patchlock) -> None:
    text = world.app.read_text()
    line = text[: text.index('id = "alpha-that-exists"')].count("\n")
    done = patchlock("patch", "test", "mini", "--source", str(clone))  # its requirements.txt is in a folder
    means = "upstream no longer has what it changes there, or its paths or the names in it are wrong"
    assert done.stdout.splitlines()[1:-1] == [
        f"  alpha-that-exists finds nothing to patch (patches/mini/app.toml:{line}): {means}; correct it, or remove it"
    ]


def test_a_shared_patch_with_cases_that_the_app_has_no_file_for_is_not_without_a_case(
    world: World, patchlock: Patchlock
) -> None:
    shared = world.catalogue / "patches" / "shared"
    shared.mkdir()
    title = '[set]\ntitle = "no gamma"\nsource = "https://example.com/why"\n'
    drop = (
        'op = "drop-requirement"\nname = "gamma"\npaths = ["{requirements}"]\n'
        'ensure = [{ check = "lacks", text = "gamma" }]\n'
    )
    told = 'why = "x"\nsource = "https://example.com/why"\n'
    patches = (f'\n[[patch]]\nid = "{name}"\n{told}{drop}' for name in ("lines", "more"))
    (shared / "gamma.toml").write_text(title + "".join(patches))
    (case := shared / "cases" / "gamma-lines" / "one" / "before").mkdir(parents=True)
    (case / "requirements.txt").write_text("gamma\n")
    (case.parent / "outcome").write_text("needed\n")
    text = world.app.read_text().replace('requirements = ["requirements.txt"]', 'requirements = ["pyproject.toml"]')
    world.app.write_text(text.replace("[app]\n", '[app]\nshared = ["gamma"]\n'))
    done = patchlock("patch", "test", "mini")
    assert "  without a case: gamma-more, alpha-that-exists, on-the-cpu\n" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("patch", "texts", "message"),
    [
        ("on-the-gpu", {"before__a_py": ""}, 'there is no patch "on-the-gpu"; did you mean "on-the-cpu"?'),
        ("on-the-cpu", {"before__a_py": "", "outcome": "need"}, 'there is no outcome "need"; did you mean "needed"?'),
        ("on-the-cpu", {"outcome": "gone"}, "it has no folder `before`; write what upstream has there"),
        ("on-the-cpu", {"before__a_py": ""}, "it has no folder `after`; write what becomes of it, or a file `outcome`"),
    ],
    ids=["patch", "outcome", "before", "after"],
)
def test_mistakes_of_cases_are_told(
    world: World, patchlock: Patchlock, patch: str, texts: dict[str, str], message: str
) -> None:
    case(world, patch, "c", **texts)
    done = patchlock("patch", "test", "mini")
    assert done.returncode == 1
    assert message in done.stderr
    assert f"patches/mini/cases/{patch}/c" in done.stderr


def test_history_is_walked_and_nothing_silent(world: World, clone: Path, patchlock: Patchlock) -> None:
    text = (
        world.app.read_text().replace("**/*.py", "app/*.py").replace('["requirements.txt"]', '["app/requirements.txt"]')
    )
    world.app.write_text(text)
    first = git(clone, "rev-parse", "HEAD")
    broken = commit(clone, app__app_py='DEVICE = ("cuda"\n')
    git(clone, "checkout", "-q", "-b", "side")
    commit(clone, app__b_py='OTHER = "cuda"\n')
    git(clone, "checkout", "-q", "main")
    fixed = commit(clone, app__app_py='DEVICE = "cpu"  # no cuda\n')
    git(clone, "merge", "-q", "--no-edit", "side")
    last = git(clone, "rev-parse", "HEAD")

    done = patchlock("patch", "test", "mini", "--source", str(clone), "--since", first, "--json")
    assert done.returncode == 0, done.stdout
    (tried,) = json.loads(done.stdout)["data"]["apps"]
    table = {one["patch"]: one for one in tried["survival"]}
    assert (tried["commits"], tried["states"]) == (4, 4)
    pin, cpu = table["alpha-that-exists"], table["on-the-cpu"]
    assert (pin["with_target"], pin["right"], pin["refused"], pin["silent"]) == (4, 4, 0, 0)
    assert (cpu["with_target"], cpu["right"], cpu["refused"], cpu["silent"]) == (3, 2, 1, 0)
    assert [(run["what"], run["first"], run["last"]) for run in cpu["runs"]] == [
        ("needed", first, first),
        ("unparsable upstream", broken, broken),
        ("gone", fixed, fixed),
        ("needed", last, last),
    ]
    assert list(cpu["reasons"]) == ["app/app.py: unparsable upstream: it does not parse: '(' was never closed"]

    every = patchlock("patch", "test", "mini", "--source", str(clone), "--since", first, "--all", "--json")
    assert json.loads(every.stdout)["data"]["apps"][0]["commits"] == 5
    assert (tried["merged"], json.loads(every.stdout)["data"]["apps"][0]["merged"]) == (1, 0)
    shown = patchlock("patch", "test", "mini", "--source", str(clone), "--since", first)
    assert re.search(r"^  on-the-cpu +3 +2 +1 +0 +3$", shown.stdout, re.MULTILINE)
    assert "  4 commits, without 1 that came in by merges (try them too with --all), 4 states of" in shown.stdout


def test_patches_of_two_profiles_never_meet_in_history(world: World, clone: Path, patchlock: Patchlock) -> None:
    other = world.profile.with_name("other.toml")
    other.write_text(world.profile.read_text().replace("Tiny", "Other"))
    tables = world.app.read_text().replace("**/*.py", "app/*.py").replace("requirements.txt", "app/requirements.txt")
    head, cpu = tables.partition('[[patch]]\nid = "on-the-cpu"')[::2]
    cpu, end = cpu.partition("[[check]]")[::2]
    both = [
        f'[[patch]]\nid = "on-{profile}"\nprofiles = ["{profile}"]' + cpu.replace('"cpu"', f'"{profile}"')
        for profile in ("tiny", "other")
    ]
    world.app.write_text(head + "".join(both) + "[[check]]" + end)
    done = patchlock("patch", "test", "mini", "--source", str(clone), "--since", git(clone, "rev-parse", "HEAD"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^  on-tiny +1 +1 +0 +0 +0\n  on-other +1 +1 +0 +0 +0$", done.stdout, re.MULTILINE)


def test_patches_that_meet_on_a_refused_profile_alone_never_meet(
    world: World, clone: Path, patchlock: Patchlock
) -> None:
    other = world.profile.with_name("other.toml")
    other.write_text(world.profile.read_text().replace("Tiny", "Other"))
    tables = world.app.read_text().replace("**/*.py", "app/*.py").replace("requirements.txt", "app/requirements.txt")
    head, cpu = tables.partition('[[patch]]\nid = "on-the-cpu"')[::2]
    cpu, end = cpu.replace('literal = ["cuda"]\n', "").partition("[[check]]")[::2]
    on_other = '[[patch]]\nid = "on-other"\nprofiles = ["other"]' + cpu.replace('"cpu"', '"other"')
    table = f'{head}{on_other}[[patch]]\nid = "on-the-cpu"{cpu}[[check]]{end}'
    words = ("patch", "test", "mini", "--source", str(clone))
    world.app.write_text(table)
    assert "on-other changes the same place first" in patchlock(*words).stdout
    world.app.write_text(table + '\n[[refused]]\nprofile = "other"\nwhy = "w"\nsource = "s"\n')
    done = patchlock(*words)
    assert (done.returncode, "changes the same place first" in done.stdout) == (0, False), done.stdout
    assert patchlock(*words, "--patch", "on-other").returncode == 0


def test_history_ends_where_upstream_was_fetched_and_a_patch_must_hold_there(
    world: World, clone: Path, patchlock: Patchlock, tmp_path: Path
) -> None:
    lines = f'[upstream]\nurl = "{clone}"\nbranch = "main"\ncommit = "{git(clone, "rev-parse", "HEAD")}"\n'
    text = (
        world.app.read_text().replace("**/*.py", "app/*.py").replace('["requirements.txt"]', '["app/requirements.txt"]')
    )
    world.app.write_text(re.sub(r"\[upstream\]\n(?:[^\[\n].*\n)*", lines, text))
    first, mine = git(clone, "rev-parse", "HEAD"), tmp_path / "mine"
    git(tmp_path, "clone", "-q", str(clone), str(mine))
    words = ("patch", "test", "mini", "--source", str(mine))
    broken = commit(clone, app__app_py='DEVICE = ("cuda"\n')
    git(mine, "fetch", "-q")
    assert patchlock(*words).returncode == 0, "HEAD, which is as it was"
    done = patchlock(*words, "--since", first)
    assert done.returncode == 1
    assert f"together on commit {broken[:12]}\n" in done.stdout
    assert "  2 commits, 2 states" in done.stdout
    wrong = "app/app.py:1: unparsable upstream: it does not parse: '(' was never closed"
    assert f"  on-the-cpu: {wrong}\n" in done.stdout
    commit(mine, app__app_py='DEVICE = "cpu"\n')
    assert f"together on commit {broken[:12]}\n" in patchlock(*words, "--since", first).stdout, "not the fork's own"
    why = f"the catalogue's, as HEAD of {mine} has commits that upstream lacks"
    assert f"together on commit {first[:12]}, {why}\n" in patchlock(*words).stdout
    alone = patchlock("patch", "test", "mini")
    assert (alone.returncode, alone.stdout.partition("\n")[0]) == (
        0,
        "mini: 0 cases, 0 as written; not tried on upstream: add --source CLONE",
    )


def test_what_an_op_misses_is_silent_and_fails(world: World, clone: Path, patchlock: Patchlock) -> None:
    # The check forbids what the op, which looks inside one function only, does not find.
    text = (
        world.app.read_text()
        .replace("**/*.py", "app/*.py")
        .replace("replacement = ", 'within = ["main"]\nreplacement = ')
    )
    world.app.write_text(text)
    first = git(clone, "rev-parse", "HEAD")
    done = patchlock(
        "patch", "test", "mini", "--patch", "on-the-cpu", "--source", str(clone), "--since", first, "--json"
    )
    assert done.returncode == 1
    (tried,) = json.loads(done.stdout)["data"]["apps"]
    assert [(one["right"], one["silent"]) for one in tried["survival"]] == [(0, 1)]
    assert list(tried["survival"][0]["reasons"]) == ["app/app.py: line 1: it has the string 'cuda'"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--since", "HEAD"), "usage", "--since, --source, --commit and --patch are about one app; name it"),
        (("mini", "--patch", "on-the-gpu"), "usage", 'mini has no patch "on-the-gpu"; did you mean "on-the-cpu"?'),
        (
            ("mini", "--since", "v1", "--source", "clone"),
            "upstream",
            "commit v1 is not in that upstream; name one that is before its HEAD",
        ),
        (
            ("mini", "--source", "clone", "--commit", "v2"),
            "upstream",
            r"that clone has no commit v2 \(clone\); name one with --commit",
        ),
    ],
    ids=["no-app", "no-patch", "no-since", "no-commit"],
)
def test_mistakes_of_patch_test(
    world: World, clone: Path, patchlock: Patchlock, words: tuple[str, ...], code: str, message: str
) -> None:
    done = patchlock("patch", "test", *words)
    assert done.returncode in {1, 2}
    assert re.fullmatch(rf"error\[{code}\]: {message}\n".replace("?", r"\?"), done.stderr), done.stderr
