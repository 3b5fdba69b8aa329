"""What `new-app` refuses, in one sentence: command lines, repositories and folders that no draft can be made for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_new_app import URL, Face, git, upstream


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param((), "missing argument 'URL'", id="no-address"),
        pytest.param(("mini",), '"mini" is not the address of a repository', id="a-word"),
        pytest.param(("/tmp",), '"/tmp" is not the address of a repository', id="a-folder"),
        pytest.param((URL, "--name", "Mini Voice"), 'the name "Mini Voice" must be lower-case words', id="a-bad-name"),
        pytest.param(
            (URL, "--name", "demo"),
            "already, and nothing is overwritten (patches/demo); give another name with --name; or remove that folder and lockfiles/demo",
            id="taken",
        ),
        pytest.param((URL, "--profile", "cpus"), 'there is no profile "cpus"', id="no-such-profile"),
        pytest.param((URL, "--platform", "amiga"), 'cpu has no platform "amiga"', id="no-such-platform"),
    ],
)
def test_bad_command_lines_are_told_in_one_sentence(face: Face, arguments: tuple[str, ...], says: str) -> None:
    told = face("new-app", *arguments)

    assert told.returncode != 0
    assert says in told.stderr


@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({}, "error[upstream]: the upstream of mini-voice has no commits", id="empty-repository"),
        pytest.param(
            {"app.py": "print()\n"},
            "error[requirements]: no file of that commit says what the app requires",
            id="no-requirements",
        ),
        pytest.param(
            {"requirements.txt": b"\x00\x81\xfe\x00\xff" * 20},
            "error[requirements]: requirements.txt cannot be read as text",
            id="binary-requirements",
        ),
        pytest.param(
            {"requirements.txt": "# none\n", "a/Pipfile": '[packages]\nsix = "*"\n'},
            "a/Pipfile: it is not read: `pipenv requirements > requirements.txt` beside it writes",
            id="pipfile",
        ),
        pytest.param(
            {"requirements.txt": "# none\n"}, "error[requirements]: no file of that commit", id="only-comments"
        ),
    ],
)
def test_repositories_that_say_nothing_are_told(
    face: Face, tmp_path: Path, files: dict[str, str | bytes], says: str
) -> None:
    clone = upstream(tmp_path / "clone", files)

    told = face("new-app", URL, "--source", str(clone), "--into", str(tmp_path / "mine"))

    assert (told.returncode, told.stdout) == (1, "")
    assert says in told.stderr
    assert not (tmp_path / "mine").exists()


def test_address_that_does_not_answer_is_told(face: Face, tmp_path: Path) -> None:
    told = face("new-app", "http://127.0.0.1:9/somebody/mini", "--into", str(tmp_path / "mine"))

    assert told.returncode == 1
    assert (
        "error[upstream]: the upstream of mini could not be fetched (http://127.0.0.1:9/somebody/mini)" in told.stderr
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_catalogue_that_cannot_be_written_asks_for_a_folder(face: Face, tmp_path: Path) -> None:
    into = tmp_path / "mine"
    for part in ("profiles", "patches"):
        (into / part).mkdir(parents=True)
    (into / "patches").chmod(0o500)

    told = face("new-app", URL, "--into", str(into))

    assert told.returncode == 2
    assert "the catalogue in use cannot be written to" in told.stderr


def test_folder_with_something_else_is_refused(face: Face, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"")

    told = face("new-app", URL, "--into", str(tmp_path))

    assert told.returncode == 2
    assert "that folder holds something else than a catalogue" in told.stderr


@pytest.mark.parametrize("taken", ["patches/fix.diff", "docs/schemas/app.json", "lockfiles/uv.txt"])
def test_a_repository_that_uses_a_catalogue_s_names_is_left_alone(face: Face, tmp_path: Path, taken: str) -> None:
    mine = upstream(tmp_path / "mine", {taken: "mine"})

    told = face("new-app", URL, "--into", str(mine))

    assert told.returncode == 2
    assert "name a new or an empty folder, or the root of a git repository" in told.stderr
    assert git(mine, "status", "--porcelain", "--ignored") == ""
