"""Each mistake that somebody can make in a file of the catalogue, with the sentence that he gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from miniature import APP, PROFILE
from test_catalogue_reader import COMMIT, INDEX, PATCH, SHA256

from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import CatalogueError

END = APP.count("\n")
ONE, OTHER = PATCH.format(id="one", more=""), PATCH.format(id="other", more="")

FIVE_MISTAKES = """\
[app]
title = "t"
licence = "MIT"
license = "MIT"
source = "s"
python = 3.11
requirements = ["requirements.txt"]

[upstream]
url = "https://git.test/x.git"
commit = "main"

[launch]
command = ["python"]

[[patch]]
id = "one"
why = "w"
source = "s"
op = "drop-requirment"
paths = ["requirements.txt"]
name = "a"

[[patch.ensure]]
check = "lacks"
text = "a"

[[patch]]
id = "two"
why = "w"
source = "s"
op = "drop-requirement"
paths = ["requirements.txt"]
name = "a"

[[patch.ensure]]
check = "lacks"
text = "a"

[[patch.ensure]]
check = "no-string2"
value = "a"
"""


def _problems(tmp_path: Path, name: str, data: bytes, read: Callable[[Catalogue], object]) -> list[str]:
    for file, text in {"profiles/tiny.toml": PROFILE, "profiles/indexes/cpu.toml": INDEX}.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(CatalogueError) as caught:
        read(Catalogue(root=tmp_path))
    return [str(problem).removeprefix(name) for problem in sorted(caught.value.problems, key=lambda p: p.line)]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        pytest.param(b"[app]\ntitle =\n", ":2: it is not TOML: Invalid value (at line 2, column 8)", id="no-toml"),
        pytest.param(
            b"[app",
            ": it is not TOML: Expected ']' at the end of a table declaration (at end of document)",
            id="cut-off",
        ),
        pytest.param(b"[app]\ntitle = 'caf\xe9'\n", ":2: it is not UTF-8; save it as UTF-8", id="latin-1"),
        pytest.param(APP.encode("utf-16"), ":1: it is not UTF-8; save it as UTF-8", id="utf-16"),
        pytest.param(
            b"[app]\ntitle = '1'\ntitle = '2'\n",
            ":3: it is not TOML: Cannot overwrite a value (at line 3, column 12)",
            id="twice",
        ),
    ],
)
def test_file_that_is_no_toml(tmp_path: Path, data: bytes, sentence: str) -> None:
    assert _problems(tmp_path, "patches/mini/app.toml", data, lambda c: c.app("mini")) == [sentence]


def test_utf_8_with_bom_and_crlf_is_fine(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + APP.replace('license = "MIT"', "license = 1").replace("\n", "\r\n").encode()
    problems = _problems(tmp_path, "patches/mini/app.toml", data, lambda c: c.app("mini"))
    assert problems == [":3: app.license: it is a number, and must be a text"]


def test_five_different_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    assert _problems(tmp_path, "patches/mini/app.toml", FIVE_MISTAKES.encode(), lambda c: c.app("mini")) == [
        ':3: app.licence: the key "licence" is unknown; did you mean "license"?',
        ":6: app.python: it is a number, and must be a text",
        ':11: upstream.commit: "main" must be a commit id of 40 hexadecimal digits',
        ':20: patch[0].op: there is no op "drop-requirment"; did you mean "drop-requirement"?',
        ':41: patch[1].ensure[1].check: there is no check "no-string2"; did you mean "no-string"?',
    ]


IN_APP: list[Any] = [
    # --- keys that nobody knows
    pytest.param("[launch]", "[launch]\nbeside.VOICE = 'voice'", ':15: launch.beside.VOICE: there is no other app "voice"', id="app-beside"),
    pytest.param("[launch]", "[launch]\nbeside.VOICE = 'mini'", ':15: launch.beside.VOICE: there is no other app "mini"', id="itself-beside"),
    pytest.param("[launch]", "[launch]\nenvironment.A = 'a'\nbeside.A = 'mini'",
        [':16: launch.beside.A: there is no other app "mini"', ":16: launch.beside.A: it is in launch.environment too"], id="beside-twice"),
    pytest.param("[launch]", "[launch]\nsay = 'x'", ':15: launch.say: the key "say" is unknown; did you mean "says"?', id="key-of-launch"),
    pytest.param("", '[[refused]]\nprofile = "tiny"\nwhy = "w"\nsource = "s"\nplatform = "x"', f':{END + 5}: refused[0].platform: the key "platform" is unknown; did you mean "platforms"?', id="key-of-refused"),
    pytest.param("", '[[constraint]]\nrequirement = "a<2"\nwhy = "w"\nsource = "s"\nwy = "x"', f':{END + 5}: constraint[0].wy: the key "wy" is unknown; did you mean "why"?', id="key-of-a-constraint"),
    pytest.param("", PATCH.format(id="one", more='profile = ["tiny"]'), f':{END + 10}: patch[2].profile: the key "profile" is unknown; did you mean "profiles"?', id="key-of-a-patch"),
    pytest.param("timeout = 60", "timeout = 60\ntimeouts = 60", ':57: check[1].timeouts: the key "timeouts" is unknown; did you mean "timeout"?', id="key-of-a-check"),
    # --- order and names
    pytest.param("", ONE + ONE, f':{END + 16}: patch[3].id: the id "one" is taken by the patch at patches/mini/app.toml:{END + 2}', id="same-id"),
    pytest.param("", PATCH.format(id="one", more='after = ["othr"]') + OTHER, f':{END + 10}: patch[2].after: there is no patch "othr"; did you mean "other"?', id="after-unknown"),
    pytest.param("", PATCH.format(id="one", more='after = ["other"]') + OTHER, f':{END + 10}: patch[2].after: the patch "other" comes later; write it first', id="after-later"),
    pytest.param("", PATCH.format(id="other", more="advisory = true") + PATCH.format(id="one", more='after = ["other"]'), f':{END + 23}: patch[3].after: the patch "other" is advisory, so that it may be left out; make this one advisory, too, or that one required', id="after-advisory"),
    pytest.param("", PATCH.format(id="one", more='advisory = true\noptional = "x"\ngives = "y"'), f":{END + 10}: patch[2].advisory: what a person chooses by name is never left out; remove the key", id="advisory-and-optional"),
    pytest.param("", PATCH.format(id="one", more='profiles = ["tinny"]'), f':{END + 10}: patch[2].profiles: there is no profile "tinny"; did you mean "tiny"?', id="profile-of-a-patch"),
    pytest.param("", '[[refused]]\nprofile = "tinny"\nwhy = "w"\nsource = "s"', f':{END + 2}: refused[0].profile: there is no profile "tinny"; did you mean "tiny"?', id="profile-refused"),
    pytest.param("", '[[refused]]\nprofile = "tiny"\nplatforms = ["macos-amd64"]\nwhy = "w"\nsource = "s"', f':{END + 3}: refused[0].platforms: there is no platform "macos-amd64"; did you mean "macos-arm64"?', id="platform-refused"),
    # --- ensure
    pytest.param('\n[[patch.ensure]]\ncheck = "no-string"\nvalue = "cuda"\n', "", ":31: patch[1].ensure: a patch must say what holds afterwards; add an [[patch.ensure]] table", id="no-ensure"),
    pytest.param('value = "cuda"', 'text = "cuda"', [':41: patch[1].ensure[0].value: the key "value" is missing; write value = "a text"', ':43: patch[1].ensure[0].text: the key "text" is unknown; known: check, value'], id="key-of-an-ensure"),
    # --- fields of ops
    pytest.param('specifier = "==1.0"\n\n[[patch.ensure]]', 'specifier = "1.0"\n\n[[patch.ensure]]', ':24: patch[0].specifier: "1.0" is not a version specifier such as ">=1.2,<2"', id="specifier"),
    pytest.param("", ONE.replace('old = "pip"', 'old = ""'), f":{END + 2}: patch[2]: `old` is empty", id="op-refuses"),
    pytest.param("", ONE.replace('paths = ["start.bat"]', "paths = []"), f":{END + 7}: patch[2].paths: it is empty", id="no-paths"),
    pytest.param("", PATCH.format(id="one", more="expect = { site = 1 }"), f':{END + 10}: patch[2].expect.site: the key "site" is unknown; did you mean "sites"?', id="expect"),
    pytest.param("", ONE.replace('op = "replace-text"\n', "").replace('old = "pip"\nnew = ""\n', ""), f':{END + 2}: patch[2].op: the key "op" is missing; write op = "a text"', id="no-op"),
    pytest.param("", ONE.replace("start.bat", "../start.bat"), f""":{END + 7}: patch[2].paths: "../start.bat" must be a POSIX path inside the app's folder""", id="path-outside"),
    pytest.param("", ONE.replace("start.bat", "/start.bat"), f""":{END + 7}: patch[2].paths: "/start.bat" must be a POSIX path inside the app's folder""", id="path-absolute"),
    pytest.param("", ONE.replace('id = "one"', 'id = "one: it"'), f':{END + 3}: patch[2].id: the id "one: it" must be lower-case words joined by "-"', id="id"),
    # --- checks
    pytest.param("timeout = 60", "timeout = 0", ":56: check[1].timeout: it must be a number of seconds above 0", id="no-time"),
    pytest.param("timeout = 60", "timeout = 60\nmemory-gb = -1", ":57: check[1].memory-gb: it must be a number of gigabytes above 0", id="no-memory"),
    pytest.param('id = "says-where"', 'id = "imports"', ':52: check[1].id: the id "imports" is taken by another check', id="same-id-of-checks"),
    pytest.param("timeout = 60", 'timeout = "60"', ":56: check[1].timeout: it is a text, and must be a whole number", id="timeout"),
    pytest.param('id = "says-where"', 'id = ""', ":52: check[1].id: it is empty", id="check-without-id"),
    pytest.param('command = ["python", "app.py"]\nprints', "command = []\nprints", ":54: check[1].command: it is empty", id="check-without-command"),
    pytest.param('kind = "command"', 'kind = "comand"', ':53: check[1].kind: there is no kind "comand"; did you mean "command"?', id="kind"),
    pytest.param('kind = "command"\ncommand = ["python", "app.py"]', 'kind = "python"\ncode = "1 +"', ":54: check[1].code: it is not Python: invalid syntax (says-where, line 1)", id="check-code"),
    # --- the rest
    pytest.param('commit = "0000000000000000000000000000000000000000"', f'commit = "{COMMIT.upper()}"', f':12: upstream.commit: "{COMMIT.upper()}" must be a commit id of 40 hexadecimal digits', id="commit"),
    pytest.param('date = "2026-01-01T00:00:00Z"', 'date = "2026-01-01"', ':11: upstream.date: "2026-01-01" must be a time such as "2026-01-31T00:00:00Z"', id="date"),
    pytest.param('embedded = "upstream"', 'embedded = "../x"', ':9: upstream.embedded: "../x" must be a POSIX path inside the clone', id="embedded"),
    pytest.param('branch = "main"', "directory = 'a\\b'", r':10: upstream.directory: "a\b" must be a POSIX path inside the clone', id="backslash"),
    pytest.param('branch = "main"', 'branch = "--upload-pack=x"', ':10: upstream.branch: "--upload-pack=x" is not the name of a branch', id="branch"),
    pytest.param('requirements = ["requirements.txt"]', 'requirements = "a.txt"', ":6: app.requirements: it is a text, and must be a list of texts", id="wrong-kind-read-twice"),
    pytest.param("[launch]", "[launch]\nlistens = 80", ":15: launch.listens: it is a number, and must be a table", id="wrong-kind-of-a-table"),
    pytest.param('\n[[patch.ensure]]\ncheck = "no-string"\nvalue = "cuda"\n', "ensure = 3\n", ":40: patch[1].ensure: it is a number, and must be a list of tables", id="wrong-kind-of-tables"),
    pytest.param('requirements = ["requirements.txt"]', "requirements = []", ":6: app.requirements: it is empty", id="no-requirements"),
    pytest.param('branch = "main"', 'directory = "/x"', ':10: upstream.directory: "/x" must be a POSIX path inside the clone', id="directory"),
    pytest.param('embedded = "upstream"', "", [':8: upstream.url: the key "url" is missing; write url = "a text"', ':11: upstream.date: the key "date" is unknown; known: as-of, branch, commit, directory, submodules, url'], id="no-upstream"),
    pytest.param('command = ["python", "app.py"]\n\n', "command = []\n\n", ":15: launch.command: it is empty", id="launch"),
    pytest.param("[launch]", '[launch.listens]\nport = 65536\nsource = "s"\n[launch]', ":15: launch.listens.port: it must be the number of a port, 1 to 65535", id="port"),
    pytest.param("[launch]", "[launch.listens]\nport = 80\n[launch]", ':14: launch.listens.source: the key "source" is missing; write source = "a text"', id="port-without-source"),
    pytest.param("[launch]", '[launch.listens]\nport = 80\nsource = "s"\nargument = ["x"]\n[launch]', ':17: launch.listens.argument: the key "argument" is unknown; did you mean "arguments"?', id="key-of-listens"),
    pytest.param('python = ">=3.10"', 'python = "3.10"', ':5: app.python: "3.10" is not a version specifier such as ">=1.2,<2"', id="python"),
    pytest.param("", '[[constraint]]\nrequirement = "numpy 2"\nwhy = "w"\nsource = "s"', f':{END + 2}: constraint[0].requirement: "numpy 2" is not a requirement: Expected semicolon (after name with no version specifier) or end', id="constraint"),
    pytest.param("", '[[exclude]]\nname = "a>1"\nwhy = "w"\nsource = "s"', f':{END + 2}: exclude[0].name: "a>1" is not the name of a distribution', id="exclude-1-12"),
    pytest.param("", '[[override]]\nrequirement = "numpy 2"\nwhy = "w"\nsource = "s"', f':{END + 2}: override[0].requirement: "numpy 2" is not a requirement: Expected semicolon (after name with no version specifier) or end', id="override-1-23"),
    pytest.param("", '[[build]]\nnames = []\nwhy = "w"\nsource = "s"', f":{END + 2}: build[0].names: it names no distribution", id="build-1-10"),
    pytest.param("", '[[build]]\nnames = ["a>1"]\nwhy = "w"\nsource = "s"', f':{END + 2}: build[0].names: "a>1" is not the name of a distribution', id="build-1-15"),
    pytest.param("", '[[build]]\nnames = ["a"]\nplatforms = ["linux-x86"]\nwhy = "w"\nsource = "s"', f':{END + 3}: build[0].platforms: there is no platform "linux-x86"; did you mean "linux-x86_64"?', id="build-platform"),
    pytest.param("", '[[newer]]\nname = "a"\nuntil = "tomorrow"\nwhy = "w"\nsource = "s"', f':{END + 3}: newer[0].until: "tomorrow" must be a time such as "2026-01-31T00:00:00Z"', id="newer-2-30"),
    pytest.param("", '[lunch]\ncommand = ["x"]', f':{END + 1}: lunch: the key "lunch" is unknown; did you mean "launch"?', id="table"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "sentences"), IN_APP)
def test_mistake_in_an_app(tmp_path: Path, before: str, after: str, sentences: str | list[str]) -> None:
    assert APP.count(before) == 1 or not before
    text = APP.replace(before, after) if before else APP + after
    problems = _problems(tmp_path, "patches/mini/app.toml", text.encode(), lambda c: c.app("mini"))
    assert problems == ([sentences] if isinstance(sentences, str) else sentences)


def test_numbers_of_patches_do_not_move_behind_one_that_cannot_be_read(tmp_path: Path) -> None:
    text = (
        APP + ONE.replace("replace-text", "replace-txt") + PATCH.format(id="one", more='after = ["one", "on-the-cpu"]')
    )
    assert _problems(tmp_path, "patches/mini/app.toml", text.encode(), lambda c: c.app("mini")) == [
        f':{END + 6}: patch[2].op: there is no op "replace-txt"; did you mean "replace-text"?',
        f':{END + 16}: patch[3].id: the id "one" is taken by the patch at patches/mini/app.toml:{END + 2}',
    ]


def test_name_of_an_app_is_checked(tmp_path: Path) -> None:
    problems = _problems(tmp_path, "patches/My App/app.toml", APP.encode(), lambda c: c.app("My App"))
    assert problems == [':1: app: the name "My App" must be lower-case words joined by "-"']


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param('"linux-x86_64"', '"linux-x86-64"', ':5: profile.platforms: there is no platform "linux-x86-64"; did you mean "linux-x86_64"?', id="platform"),
        pytest.param("specificity = 0", 'specificity = 0\nindexes = ["cpus"]', ':7: profile.indexes: there is no recorded index "cpus"; did you mean "cpu"?', id="index"),
        pytest.param("specificity = 0", "specificity = true", ":6: profile.specificity: it is true or false, and must be a whole number", id="specificity"),
        pytest.param('python = "', 'python = "3.', ':4: profile.python: "3.3.11" must be a Python version of two numbers, such as "3.11"', id="python"),
        pytest.param("specificity = 0", "specificity = 0\n[environment]\nA = 1", ":7: environment: it must be a table of texts", id="environment"),
        pytest.param('title = "A machine for tests"', 'title = "t"\ntitel = "t"', ':3: profile.titel: the key "titel" is unknown; did you mean "title"?', id="key"),
    ],
)  # fmt: skip
def test_mistake_in_a_profile(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    text = PROFILE.replace('python = "3.10"', 'python = "3.11"').replace(before, after).encode()
    assert _problems(tmp_path, "profiles/tiny.toml", text, lambda c: c.profile("tiny")) == [sentence]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        pytest.param("-win_amd64.whl", ".whl", ':5: wheel[0].filename: "torch-2.1.1+cpu-cp311-cp311.whl" is not the name of a wheel', id="filename"),
        pytest.param(SHA256, SHA256[1:], f':6: wheel[0].sha256: "{SHA256[1:]}" must be a sha256 of 64 hexadecimal digits', id="sha256"),
        pytest.param('"filelock"', '"file lock"', ':7: wheel[0].requires: "file lock" is not a requirement: Expected semicolon (after name with no version specifier) or end', id="requires"),
        pytest.param('source = "tests"', "", ':4: wheel[0].source: the key "source" is missing; write source = "a text"', id="source"),
        pytest.param('source = "tests"', 'source = "tests"\nrequire = []', ':9: wheel[0].require: the key "require" is unknown; did you mean "requires"?', id="key-of-a-wheel"),
        pytest.param("[index]\nurl", "[index]\nuri = 'x'\nurl", ':2: index.uri: the key "uri" is unknown; did you mean "url"?', id="key"),
        pytest.param('source = "tests"', 'source = "tests"\nuploaded = "2025-01-01"', ':9: wheel[0].uploaded: "2025-01-01" must be a time with its zone, such as "2026-01-31T00:00:00Z"', id="uploaded-without-zone"),
        pytest.param('source = "tests"', 'source = "tests"\nuploaded = "soon"', ':9: wheel[0].uploaded: "soon" must be a time with its zone, such as "2026-01-31T00:00:00Z"', id="uploaded-no-time"),
    ],
)  # fmt: skip
def test_mistake_in_an_index(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    text = INDEX.replace(before, after).encode()
    assert _problems(tmp_path, "profiles/indexes/cpu.toml", text, lambda c: c.index("cpu")) == [sentence]


@pytest.mark.parametrize(
    ("keep", "sentence"),
    [
        pytest.param('distributions = ["torch >"]\npythons = ["3.11"]\nplatforms = ["linux-x86_64"]', 'distributions: "torch >" is not a requirement', id="distribution"),
        pytest.param('distributions = ["torch"]\npythons = ["3"]\nplatforms = ["linux-x86_64"]', 'pythons: "3" must be a Python version of two numbers, such as "3.11"', id="python"),
        pytest.param('distributions = ["torch"]\npythons = ["3.11"]\nplatforms = ["linux"]', 'platforms: there is no platform "linux"; did you mean "linux-aarch64" or "linux-x86_64"?', id="platform"),
        pytest.param('distributions = []\npythons = ["3.11"]\nplatforms = ["linux-x86_64"]', "distributions: it is empty", id="empty"),
        pytest.param('distributions = ["torch"]\nplatforms = ["linux-x86_64"]', 'pythons: the key "pythons" is missing', id="missing"),
        pytest.param('distributions = ["torch"]\npythons = ["3.11"]\nplatforms = ["linux-x86_64"]\npython = "x"', 'python: the key "python" is unknown; did you mean "pythons"?', id="unknown"),
    ],
)  # fmt: skip
def test_mistake_in_what_an_index_keeps(tmp_path: Path, keep: str, sentence: str) -> None:
    text = f"{INDEX}\n[index.keep]\n{keep}\n".encode()
    (found,) = _problems(tmp_path, "profiles/indexes/cpu.toml", text, lambda c: c.index("cpu"))
    assert f"index.keep.{sentence}" in found


def test_same_file_twice_in_an_index_is_a_mistake(tmp_path: Path) -> None:
    wheel = INDEX[INDEX.index("[[wheel]]") :]
    (found,) = _problems(tmp_path, "profiles/indexes/cpu.toml", f"{INDEX}\n{wheel}".encode(), lambda c: c.index("cpu"))
    assert found.endswith('-win_amd64.whl" is there already; write what it was before as [[wheel.earlier]]')
