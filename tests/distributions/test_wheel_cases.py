"""Running cases: what passes and fails is told, nothing but the wheel is seen, and nothing gets out."""

from __future__ import annotations

import json
import sys
from pathlib import Path, PurePosixPath

import pytest

from patchlock.distributions import wheel_cases
from patchlock.model.errors import PatchError

FILES = {PurePosixPath("alpha/__init__.py"): b"ANSWER = 41\n", PurePosixPath("alpha/data.txt"): b"data"}


def _run(tmp_path: Path, text: str, stubs: tuple[str, ...] = (), files: dict[str, str] | None = None, **more: float):
    script = tmp_path / "cases.py"
    script.write_text(text, encoding="utf-8")
    added = {PurePosixPath(name): text.encode() for name, text in (files or {}).items()}
    return wheel_cases.run(script, FILES | added, stubs, **more)


def _why(tmp_path: Path, body: str, **more: object) -> str:
    (result,) = _run(tmp_path, f"def case_it():\n    {body}\n", **more)
    assert not result.passed
    return result.why


def test_each_case_is_told_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        "import alpha\n"
        "def helper():\n    raise KeyError\n"
        "def case_wrong():\n    assert alpha.ANSWER == 42\n"
        "def control_answer():\n    print('noise')\n    return {'answer': alpha.ANSWER}\n"
        "def case_ends():\n    raise SystemExit('bye')\n"
        "def case_right():\n    assert alpha.ANSWER == 41, 'never'\n"
    )
    assert [(r.id, r.is_control, r.passed, r.value, r.why) for r in _run(tmp_path, text)] == [
        ("case_wrong", False, False, "null", "AssertionError: assert alpha.ANSWER == 42"),
        ("control_answer", True, True, '{"answer": 41}', ""),
        ("case_ends", False, False, "null", "SystemExit: bye"),
        ("case_right", False, True, "null", ""),
    ]


def test_value_that_is_no_json_is_a_failure(tmp_path: Path) -> None:
    assert _why(tmp_path, "return {1, 2}") == "TypeError: Object of type set is not JSON serializable"


@pytest.mark.parametrize(
    ("body", "event"),
    [
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "socket.getaddrinfo"),
        ("import socket; socket.socket().connect(('127.0.0.1', 9))", "socket.connect"),
        ("import urllib.request as u; u.urlopen('http://127.0.0.1:9')", "socket.getaddrinfo"),
        ("import subprocess, sys; subprocess.run([sys.executable, '-V'])", "subprocess.Popen"),
        ("import os; os.system('true')", "os.system"),
        pytest.param(
            "import os; os.fork()", "os.fork", marks=pytest.mark.skipif(sys.platform == "win32", reason="no fork")
        ),
    ],
)
def test_network_and_programs_are_refused(tmp_path: Path, body: str, event: str) -> None:
    assert f"{event} is refused while cases run" in _why(tmp_path, body)


@pytest.mark.parametrize(
    "body",
    [
        "open({place!r}, 'w')",
        "open({place!r}, 'a')",
        "open({place!r}, 'r+')",
        "import os; os.open({place!r}, os.O_CREAT | os.O_WRONLY)",
        "import pathlib; pathlib.Path({place!r}).unlink()",
        "import os; os.rename({place!r}, 'here')",
        "import os; open('own', 'w').close(); os.replace('own', {place!r})",
        "import os; open('own', 'w').close(); os.link('own', {place!r} + '.link')",
        "import os; os.symlink({place!r}, 'link'); open('link', 'w')",
        "import os; os.mkdir({place!r} + '.d')",
        "import os; os.chmod({place!r}, 0)",
        "import shutil; shutil.rmtree(os.path.dirname({place!r})) if (os := __import__('os')) else 0",
        "open('../../escaped', 'w')",
    ],
)
def test_writing_outside_is_refused(tmp_path: Path, body: str) -> None:
    place = tmp_path / "precious" / "file"
    place.parent.mkdir()
    place.write_text("mine")
    assert "is refused while cases run" in _why(tmp_path, body.format(place=str(place)))
    assert place.read_text() == "mine"


def test_own_folder_may_be_written(tmp_path: Path) -> None:
    text = (
        "import os, tempfile\n"
        "def case_it():\n"
        "    open('a', 'w').close(); os.rename('a', 'b'); os.remove('b'); open(os.devnull, 'w').close()\n"
        "    with tempfile.TemporaryDirectory() as name:\n        open(os.path.join(name, 'c'), 'w').close()\n"
    )
    assert [(r.passed, r.why) for r in _run(tmp_path, text)] == [(True, "")]


def test_nothing_but_the_wheel_and_the_standard_library_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leak.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SECRET", "s")
    for name in ("packaging", "patchlock", "leak"):
        assert _why(tmp_path, f"import {name}") == f"ModuleNotFoundError: No module named '{name}'"
    text = (
        "import os, sys, json, alpha, importlib.resources as r\n"
        "def case_it():\n"
        "    assert (r.files(alpha) / 'data.txt').read_text() == 'data'\n"
        "    assert 'SECRET' not in os.environ and os.path.expanduser('~') == os.getcwd()\n"
    )
    assert [r.why for r in _run(tmp_path, text)] == [""]


def test_stubs_let_a_module_be_imported(tmp_path: Path) -> None:
    module = (
        "from __future__ import annotations\nimport heavy.nested as nested\nfrom heavy import Base, tool\nimport heavy\n"
        "class Own(Base):\n    kind = heavy.Kind.ONE\n"
        "def typed(value: heavy.Thing[int] | None = None): return 1\n"
        "PAIRS = [heavy.A.B, nested.C]\nUnion = heavy.A | None\nMore = None | heavy.A\nItem = heavy.A[int]\n"
    )
    text = "from alpha import user\ndef case_it():\n    assert user.typed() == 1 and user.Own().kind\n"
    assert [r.why for r in _run(tmp_path, text, ("heavy",), {"alpha/user.py": module})] == [""]
    with pytest.raises(PatchError, match=r"^the cases cannot run: ModuleNotFoundError: No module named 'heavy'"):
        _run(tmp_path, text, (), {"alpha/user.py": module})


def test_endless_case_ends_in_time(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match=r"^the cases gave no answer: .* did not end within 1 seconds"):
        _run(tmp_path, "def case_it():\n    while True: pass\n", timeout=1)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def case_it(:\n", "the cases cannot run: SyntaxError: "),
        ("import nowhere\ndef case_it(): pass\n", "the cases cannot run: ModuleNotFoundError: "),
        ("def control_it(): pass\n", "the cases cannot run: it has no function case_…"),
        ("import os\ndef case_it(): os._exit(0)\n", "the cases gave no answer: it printed no answer"),
        ("import os\ndef case_it(): os._exit(3)\n", "the cases gave no answer: .* failed with exit code 3"),
    ],
    ids=["syntax", "import", "no-case", "silent", "dead"],
)
def test_cases_that_cannot_be_run_are_a_mistake_of_the_catalogue(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(PatchError, match=rf"^{sentence}") as caught:
        _run(tmp_path, text)
    assert caught.value.where == str(tmp_path / "cases.py")


@pytest.mark.parametrize("how", ["print({!r})", "import os; os.write(1, {!r}.encode())"])
def test_forged_answer_is_not_taken_from_what_upstream_prints(tmp_path: Path, how: str) -> None:
    forged = json.dumps([{"id": "case_it", "passed": True, "value": None, "why": ""}])
    (result,) = _run(tmp_path, f"def case_it():\n    {how.format(forged)}\n    raise ValueError('no')\n")
    assert (result.passed, result.why) == (False, "ValueError: no")
