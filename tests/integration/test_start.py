"""An app starts, or what stops it is named with the line of whose file: its own command, alone, without a network."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path, PurePosixPath

import miniature
import pytest

from patchlock.core import uv
from patchlock.environments import venv
from patchlock.model.app import Launch, Listens
from patchlock.model.checks import CommandCheck, ImportsCheck, LoadsCheck, OwnCheck, SmokeImport, SmokeImportCheck
from patchlock.model.models import Model, ModelFile
from patchlock.verify import _supervisor, checks, start
from patchlock.verify.checks import CheckContext, CheckResult, ShownModules

pytestmark = pytest.mark.slow

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PORT = 18431
SERVER = """
import http.server
import sys
{before}
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status})
        self.end_headers()
        self.wfile.write(b"a page")
http.server.HTTPServer(("127.0.0.1", {port}), Page).serve_forever()
"""
DOWNLOADS = """
import urllib.request
urllib.request.urlopen("https://models.example/voice.onnx")
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with alpha 1.0."""
    folder = tmp_path_factory.mktemp("home") / "mini@tiny" / "environments" / "one"
    held = os.open(tmp_path_factory.mktemp("lock") / "lock", os.O_CREAT | os.O_RDWR)
    venv.create(folder, VERSION, lock=held)
    os.close(held)
    wheel = miniature.wheel(tmp_path_factory.mktemp("wheels"), "alpha", "1.0")
    python = str(venv.interpreter(folder))
    command = [str(uv.find()), "pip", "install", "-q", "--offline", "--no-index", "--python", python, str(wheel)]
    subprocess.run(command, check=True)
    return folder


def server(before: str = "", status: int | str = 200, port: int | str = PORT) -> str:
    return SERVER.format(before=before, status=status, port=port)


def proved(
    environment: Path,
    folder: Path,
    files: dict[str, str],
    command: tuple[str, ...] = ("python", "app.py"),
    variables: dict[str, str] | None = None,
    port: int = PORT,
    user: dict[str, str] | None = None,
    models: tuple[Model, ...] = (),
) -> CheckResult:
    """Start an app of these files; one without a port is asked for its help."""
    declared = start.DeclaredModels(app="mini", models=models) if models else None
    result = started(environment, folder, files, command, variables, port, declared=declared, user=user).result
    assert (result.id, result.level) == ("start", "starts")
    return result


def started(
    environment: Path,
    folder: Path,
    files: dict[str, str],
    command: tuple[str, ...] = ("python", "app.py"),
    variables: dict[str, str] | None = None,
    port: int = PORT,
    wanted: tuple[LoadsCheck | OwnCheck, ...] = (),
    declared: start.DeclaredModels | None = None,
    user: dict[str, str] | None = None,
) -> start.StartProof:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    listens = Listens(port=port, environment={}, arguments=()) if port else None
    launch = Launch(command=command, environment=variables or {}, listens=listens)
    env = venv.launch_variables(environment, {}, launch.environment) | (user or {})
    place = CheckContext(environment=environment, folder=folder, variables=env)
    return start.prove(launch, place, "cpu", wanted, declared)


@pytest.mark.parametrize("status", [200, 404])
def test_server_that_answers(environment: Path, tmp_path: Path, status: int) -> None:
    found = proved(environment, tmp_path, {"app.py": server("import alpha", status)})
    assert found.passed, found.detail
    assert found.detail.startswith(f"it answers on port {PORT} with status {status}, after")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a second where a program says no more."""
    monkeypatch.setattr(start, "_QUIET", 1)


@pytest.mark.usefixtures("impatient")
def test_server_on_another_port_than_was_said(environment: Path, tmp_path: Path) -> None:
    found = proved(environment, tmp_path, {"app.py": server(port=PORT + 1)})
    assert not found.passed
    told = f"python app.py answers on port {PORT + 1} with status 200, and not on port {PORT}, which [launch.listens] names, "
    assert found.detail.startswith(told)


@pytest.mark.usefixtures("impatient")
def test_port_of_the_users_own_variable(environment: Path, tmp_path: Path) -> None:
    text = server("import os", port="int(os.environ['APP_PORT'])")
    found = proved(environment, tmp_path, {"app.py": text}, variables={}, user={"APP_PORT": str(PORT + 2)})
    assert found.detail.startswith(f"it answers on port {PORT + 2} with status 200")
    assert not proved(environment, tmp_path, {"app.py": text}, variables={"APP_PORT": str(PORT + 2)}).passed


def test_page_may_come_after_another_server_of_the_app(environment: Path, tmp_path: Path) -> None:
    text = "import subprocess, sys, time\nsubprocess.Popen([sys.executable, 'back.py'])\ntime.sleep(2)\n"
    found = proved(environment, tmp_path, {"app.py": text + server(), "back.py": server(port=5001)})
    assert found.detail.startswith(f"it answers on port {PORT} with status 200")
    found = proved(environment, tmp_path, {"app.py": text + "1 / 0\n", "back.py": server(port=5001)})
    assert not found.passed
    assert "app.py:4: ZeroDivisionError: division by zero" in found.detail


UNUSUAL = {
    "only IPv6": server("import socket\nhttp.server.HTTPServer.address_family = socket.AF_INET6").replace(
        "127.0.0.1", "::1"
    ),
    "all addresses": server().replace("127.0.0.1", "0.0.0.0"),
    "unavailable at first": server(
        "import time\nbegun = time.time()", status="503 if time.time() - begun < 2 else 200"
    ),
    "prints much": server("print('loading ' * 1_000_000)"),
    "a helper of its own": server("import subprocess\nsubprocess.Popen(['sleep', '99'], start_new_session=True)"),
    "does not end when it is asked to": server("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says where a program listens")
@pytest.mark.parametrize("way", UNUSUAL)
def test_server_of_an_unusual_shape(environment: Path, tmp_path: Path, way: str) -> None:
    found = proved(environment, tmp_path, {"app.py": UNUSUAL[way]})
    assert found.detail.startswith(f"it answers on port {PORT} with status 200"), found.detail


TALKS = """
import socket
page = socket.create_server(("127.0.0.1", {port}))
while True:
    client, _ = page.accept()
    client.sendall(b"SSH-2.0-mine\\r\\n")
    client.close()
"""
ON_A_FILE = """
import http.server
import socketserver
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words):
        pass
socketserver.UnixStreamServer("app.sock", Page).serve_forever()
"""


def test_server_that_speaks_another_language(environment: Path, tmp_path: Path) -> None:
    found = proved(environment, tmp_path, {"app.py": TALKS.format(port=PORT)})
    assert found.detail.startswith(f"it answers on port {PORT}, though not by HTTP, after")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says where a program listens")
def test_server_on_a_file(environment: Path, tmp_path: Path) -> None:
    found = proved(environment, tmp_path, {"app.py": ON_A_FILE}, port=0)
    assert found.detail.startswith("it answers on app.sock with status 200, after")


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.exit(sys.stderr.write('Usage: app.py FILE') and 0)\n",
        "import sys\nsys.stderr.write('usage: app.py FILE')\nsys.exit(2)\n",
        "import argparse\nargparse.ArgumentParser(add_help=False).parse_args()\n",
        "import argparse\nargparse.ArgumentParser().add_subparsers(required=True)\nprint('usage')\n",
    ],
    ids=["to standard error", "with 2", "no option for it", "subcommands"],
)
def test_help_of_an_unusual_shape(environment: Path, tmp_path: Path, text: str) -> None:
    found = proved(environment, tmp_path, {"app.py": text}, port=0)
    assert found.passed, found.detail


NO_HELP = {
    "nothing runs": (
        "def main():\n    pass\n",
        "ends with exit code 0, has printed nothing and answered nothing, after",
    ),
    "an error that is caught": (
        "import traceback\ntry:\n    import gradium\nexcept ImportError:\n    traceback.print_exc()\n",
        "app.py:3: ModuleNotFoundError: No module named 'gradium'",
    ),
    "an import after the arguments": (
        "import argparse\nargparse.ArgumentParser().parse_args()\nimport gradium\n",
        "what no package of the lock brings: gradium (app.py:3); `python app.py --help` succeeds",
    ),
    "an import in the function that runs": (
        "import argparse\ndef main():\n    argparse.ArgumentParser().parse_args()\n    import gradium\nmain()\n",
        "what no package of the lock brings: gradium (app.py:4); `python app.py --help` succeeds",
    ),
    "another exit code": ("import sys\nprint('usage: no')\nsys.exit(3)\n", "--help ends with exit code 3 after"),
}


@pytest.mark.parametrize("way", NO_HELP)
def test_help_that_shows_no_start(environment: Path, tmp_path: Path, way: str) -> None:
    text, told = NO_HELP[way]
    found = proved(environment, tmp_path, {"app.py": text}, port=0)
    assert not found.passed
    assert told in found.detail


@pytest.mark.parametrize("says", ["import logging; logging.warning('no GPU; memory usage is high')", "print('hello')"])
def test_program_that_shows_no_help_is_not_said_to_start(environment: Path, tmp_path: Path, says: str) -> None:
    found = started(environment, tmp_path, {"app.py": says + "\ndef main():\n    pass\n"}, port=0)
    assert (found.result.level, found.result.passed) == ("loads", True)
    assert found.unverified == (
        "`python app.py --help` ends and shows no help, so that nothing has shown that the app starts"
    )


def test_server_that_a_child_runs(environment: Path, tmp_path: Path) -> None:
    files = {"app.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'page.py'])\n", "page.py": server()}
    assert proved(environment, tmp_path, files).passed


def test_command_line_tool_is_asked_for_its_help(environment: Path, tmp_path: Path) -> None:
    text = "import argparse, alpha\nargparse.ArgumentParser().parse_args()\nraise SystemExit('it did its work')\n"
    found = proved(environment, tmp_path, {"app.py": text}, ("python", "app.py", "--input", "a.wav"), port=0)
    assert found.passed
    assert found.detail.startswith("`python app.py --help` succeeds, after")


SELFTEST = CommandCheck(id="selftest", command=("python", "app.py", "--test"), prints="well", timeout=60)
ASKED = (
    ImportsCheck(id="imports", present=("alpha", "inner", "json"), absent=("gradium",)),
    SmokeImportCheck(id="smoke", smoke=SmokeImport(modules=("inner",), blocked=("deepspeed",))),
    SELFTEST,
)


def test_check_that_starts_the_program_is_its_start(environment: Path, tmp_path: Path) -> None:
    text = "import sys, alpha, inner, types\ntry:\n    import gradium\nexcept ImportError:\n    pass\n"
    text += "sys.modules['deepspeed'] = types.ModuleType('deepspeed')\n"
    text += "print('a warning', file=sys.stderr)\nsys.exit(print('all is well') if '--test' in sys.argv else 'no')\n"
    found = started(environment, tmp_path, {"app.py": text, "inner.py": ""}, port=0, wanted=ASKED)
    assert found.result.passed
    assert found.result.detail.startswith("`python app.py --test` succeeds, after")
    assert found.check is SELFTEST
    told = '`python app.py --test` prints "well"'
    assert found.computed == (CheckResult(id="selftest", level="computes", passed=True, detail=told),)
    assert found.shown == ShownModules(
        imported=frozenset({"alpha", "inner"}), absent=frozenset({"gradium", "deepspeed"})
    )


@pytest.mark.parametrize(
    "text",
    [
        "import os, sys\nprint('usage: app')\nsys.exit('--test' in sys.argv and not os.path.exists(os.path.expanduser('~/voice')))",
        "import sys, urllib.request\nprint('usage: app')\n'--test' in sys.argv and urllib.request.urlopen('https://models.example')",
        "print('bad')",
    ],
    ids=["needs its home", "needs a network", "prints something else"],
)
def test_check_that_does_not_pass_contained_is_left_to_run_as_ever(
    environment: Path, tmp_path: Path, text: str
) -> None:
    found = started(environment, tmp_path, {"app.py": text}, port=0, wanted=(SELFTEST,))
    assert (found.check, found.computed, found.shown) == (None, (), None)
    assert found.result.detail.startswith("`python app.py --help` ")


def test_check_of_another_program_starts_nothing(environment: Path, tmp_path: Path) -> None:
    text = "import sys\nsys.exit('--help' not in sys.argv)\n"
    other = CommandCheck(id="other", command=("python", "tool.py"), prints="", timeout=60)
    assert started(environment, tmp_path, {"app.py": text, "tool.py": ""}, port=0, wanted=(other,)).check is None


def test_what_a_start_has_shown_is_not_imported_again(tmp_path: Path) -> None:
    nowhere = CheckContext(environment=tmp_path / "no environment", folder=tmp_path, variables={})
    shown = ShownModules(imported={"alpha", "inner", "json"}, absent={"gradium", "deepspeed"})
    assert [(one.passed, one.detail) for one in checks.run(ASKED[:2], nowhere, print, shown)] == [
        (True, "alpha, inner, json, no gradium"),
        (True, "inner without deepspeed"),
    ]
    for less in (
        ShownModules(imported={"alpha", "json"}, absent=shown.absent),
        ShownModules(imported=shown.imported),
        None,
    ):
        assert not any(one.passed for one in checks.run(ASKED[:2], nowhere, print, less))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets few users make links")
def test_standard_library_is_not_compiled_again(environment: Path, tmp_path: Path) -> None:
    code = "import json, sys; print(json.__cached__)"
    python, place = str(venv.interpreter(environment)), f"pycache_prefix={venv.bytecode(environment)}"
    done = subprocess.run([python, "-I", "-X", place, "-c", code], check=True, capture_output=True, text=True)
    cached = Path(done.stdout.strip())
    assert cached.is_relative_to(venv.bytecode(environment))
    assert cached.is_symlink()
    assert cached.samefile(json.__cached__)


def test_first_download_is_named(environment: Path, tmp_path: Path) -> None:
    found = proved(environment, tmp_path, {"app.py": f"import alpha\n{DOWNLOADS}"})
    assert found.passed, found.detail
    assert found.detail.startswith("it comes to its first download, https://models.example/voice.onnx, after")


WAITS = "import time\ntry:\n    import voice\nexcept OSError:\n    time.sleep(99)\n"


@pytest.mark.usefixtures("impatient")
def test_program_that_waits_for_a_download(environment: Path, tmp_path: Path) -> None:
    declared = Model(
        repository="https://models.example/voices",
        why="speaks",
        license="MIT",
        source="tests",
        files=(),
    )
    found = proved(environment, tmp_path, {"app.py": WAITS, "voice.py": DOWNLOADS}, models=(declared,))
    assert found.detail.startswith("it comes to its first download, from models.example, after")
    says = WAITS.replace("    time", "    print('retry: ConnectionError')\n    time")
    found = proved(environment, tmp_path, {"app.py": says, "voice.py": DOWNLOADS})
    assert found.detail.startswith("it comes to its first download, from models.example, after")


OTHERWISE = {
    "it hangs": (WAITS, "python app.py does not answer, and goes on after"),
    "it ends with 0": (WAITS.replace("time.sleep(99)", "print('bye')"), "ends with exit code 0 after"),
    "it fails": (WAITS.replace("time.sleep(99)", "pass\nraise KeyError('download_root')"), "KeyError: 'download_root'"),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("way", OTHERWISE)
def test_question_for_a_newer_version_is_no_download(environment: Path, tmp_path: Path, way: str) -> None:
    text, told = OTHERWISE[way]
    voice = DOWNLOADS.replace("models.example/voice.onnx", "api.github.example/releases")
    found = proved(environment, tmp_path, {"app.py": text, "voice.py": voice})
    assert not found.passed
    assert told in found.detail


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a program names of its own")
def test_download_past_the_proxy_is_named(environment: Path, tmp_path: Path) -> None:
    text = "import socket\nsocket.create_connection(('models.example', 443))\n"
    found = proved(environment, tmp_path, {"app.py": text})
    assert found.detail.startswith("it comes to its first download, from models.example, after")


def test_error_that_a_refused_download_has_led_to(environment: Path, tmp_path: Path) -> None:
    text = "try:\n    import voice\nexcept OSError as error:\n    raise RuntimeError('no voice') from error\n"
    found = proved(environment, tmp_path, {"app.py": text, "voice.py": DOWNLOADS})
    assert found.detail.startswith("it comes to its first download, https://models.example/voice.onnx, after")


def test_address_of_a_model_is_told_where_the_program_says_it(environment: Path, tmp_path: Path) -> None:
    text = DOWNLOADS.replace(
        "urllib.request.urlopen", "print('https://models.example/voice.onnx')\nurllib.request.urlopen"
    )
    found = proved(environment, tmp_path, {"app.py": text})
    assert "first download, https://models.example/voice.onnx, after" in found.detail


VOICE = Model(
    repository="acme/voice",
    why="it speaks",
    license="MIT",
    source="tests",
    files=(ModelFile(path=PurePosixPath("voice.onnx"), bytes=1_800_000_000),),
)
WHOSE = {
    "the address of its file": (
        "https://huggingface.co/acme/voice/resolve/main/voice.onnx",
        "import sys\nprint(sys.argv, URL)\n",
        "s: it wants its model acme/voice, 1.7 GiB: patchlock models mini --fetch",
    ),
    "a host alone": (
        "https://huggingface.co/",
        "",
        "s: its models there are acme/voice, 1.7 GiB: patchlock models mini --fetch",
    ),
    "a host, and the program's words": (
        "https://huggingface.co/",
        "print('asks for acme/voice')\n",
        "s: it wants its model acme/voice, 1.7 GiB: patchlock models mini --fetch",
    ),
    "a model that is not declared": (
        "https://huggingface.co/acme/other/resolve/main/voice.onnx",
        "print(URL)\n",
        "s: no [[model]] of patches/mini/app.toml declares it",
    ),
    "a host that is not declared": (
        "https://models.example/",
        "",
        "s: no [[model]] of patches/mini/app.toml declares it",
    ),
}


@pytest.mark.parametrize("way", WHOSE)
def test_first_download_is_tied_to_a_declared_model(environment: Path, tmp_path: Path, way: str) -> None:
    address, says, told = WHOSE[way]
    text = f"URL = '{address}'\n{says}import urllib.request\nurllib.request.urlopen(URL)\n"
    declared = start.DeclaredModels(app="mini", models=(VOICE,))
    found = started(environment, tmp_path, {"app.py": text}, declared=declared).result
    assert found.passed
    assert told in found.detail


IN_A_THREAD = f"""
import http.server
import threading
asked = threading.Event()
class Page(http.server.SimpleHTTPRequestHandler):
    def log_request(self, *words):
        asked.set()
threading.Thread(target=http.server.HTTPServer(("127.0.0.1", {PORT}), Page).serve_forever, daemon=True).start()
"""
BROKEN = {
    "a package that nothing requires": (
        {"app.py": "import pages\n", "pages.py": "import os\n\nimport gradium\n"},
        (
            "pages.py:3: ModuleNotFoundError: No module named 'gradium'; it imports at its start what no package of the lock "
            "brings: gradium (pages.py:3)"
        ),
    ),
    "a part of a package that an extra brings": (
        {"app.py": "import alpha.more\n"},
        "app.py:1: ModuleNotFoundError: No module named 'alpha.more'",
    ),
    "a submodule that is not there": (
        {"app.py": "from third_party.matcha import models\n", "third_party/README": ""},
        "it imports at its start what no package of the lock brings: third_party.matcha (app.py:1)",
    ),
    "a wrong PYTHONPATH": ({"app.py": "import inner\n", "src/inner/__init__.py": ""}, "No module named 'inner'"),
    "a card at import": (
        {"app.py": "import card\n", "card.py": "raise RuntimeError('Found no NVIDIA driver on your system')\n"},
        "card.py:1: RuntimeError: Found no NVIDIA driver on your system",
    ),
    "a model that is not there": ({"app.py": "open('voice.onnx')\n"}, "No such file or directory: 'voice.onnx'"),
    "a server that fails": (
        {"app.py": server(status=500)},
        f"python app.py answers on port {PORT} with status 500, and goes on after",
    ),
    "a server that takes questions only": (
        {"app.py": f"import socket, time\ns = socket.create_server(('127.0.0.1', {PORT}))\ntime.sleep(99)\n"},
        "python app.py does not answer, and goes on after",
    ),
    "a server that ends": (
        {"app.py": "import page\npage.asked.wait()\n1 / 0\n", "page.py": IN_A_THREAD},
        "and then ends with exit code 1 after",
    ),
    "a server in the background": (
        {"app.py": "import os\nif os.fork():\n    os._exit(0)\nos.setsid()\n" + server()},
        "ends with exit code 0 and goes on in the background, where `patchlock run` could not end it, after",
    ),
    "a library of the system": (
        {"app.py": "import ctypes\nctypes.CDLL('libvoice.so.9')\n"},
        "app.py:2: OSError: libvoice.so.9: cannot open shared object file",
    ),
    "a program that fails": (
        {"app.py": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '1 / 0'], check=True)\n"},
        "app.py:2: subprocess.CalledProcessError",
    ),
    "output without end": (
        {"app.py": "while True:\n    print('voice ' * 9999)\n"},
        "prints without end and does not answer",
    ),
    "all memory": (
        {"app.py": "many = []\nwhile True:\n    many.append(b'x' * 9_000_000)\n"},
        "has more memory than the 286.1 MiB that it may have, and is ended after",
    ),
    "all memory, in a session of its own": (
        {
            "app.py": "import subprocess, sys\nsubprocess.run([sys.executable, 'c.py'], start_new_session=True)\n",
            "c.py": "many = []\nwhile True:\n    many.append(b'x' * 9_000_000)\n",
        },
        "has more memory than the 286.1 MiB that it may have, and is ended after",
    ),
    "a variable that is not set": (
        {"app.py": "import os\nos.environ['VOICE_KEY']\n"},
        "app.py:2: KeyError: 'VOICE_KEY'",
    ),
    "a program that ends before it serves": ({"app.py": "print('bye')\n"}, "ends with exit code 0 after"),
    "a crash": ({"app.py": "import os\nos.abort()\n"}, "python app.py is ended by SIGABRT after"),
    "syntax of another Python": ({"app.py": "print 'old'\n"}, "app.py:1: SyntaxError: "),
    "a question to the user": ({"app.py": "input('language? ')\n"}, "app.py:1: EOFError"),
    "its port is in use": (
        {"app.py": "import socket\ns = socket.create_server(('127.0.0.1', 18431))\n" + server()},
        "Address already in use",
    ),
    "what is imported after a first download": (
        {"app.py": f"{DOWNLOADS}import gradium\n"},
        "it imports at its start what no package of the lock brings: gradium (app.py:4); it comes to its first download",
    ),
    "an error of its own beside a download": (
        {"app.py": "try:\n    import later\nexcept OSError:\n    pass\n1 / 0\n", "later.py": DOWNLOADS},
        "app.py:5: ZeroDivisionError: division by zero",
    ),
}


def test_modules_of_packages_without_init_are_found(environment: Path, tmp_path: Path) -> None:
    packages = next((environment / "lib").glob("python*/site-packages"))
    (packages / "outer" / "inner" / "deep").mkdir(parents=True)
    (packages / "outer" / "inner" / "deep" / "one.py").write_text("")
    text = f"{DOWNLOADS}import outer.inner.deep.one, outer.inner.deep\nimport os.path, sys, alpha\n"
    assert proved(environment, tmp_path, {"app.py": text}).passed
    gone = proved(environment, tmp_path, {"app.py": text + "import outer.inner.deep.two\n"})
    assert "no package of the lock brings: outer.inner.deep.two (app.py:6); it comes" in gone.detail


@pytest.mark.parametrize("way", BROKEN)
def test_what_stops_a_start_is_named(
    environment: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_SECONDS", 8)
    monkeypatch.setattr(_supervisor, "memory_limit", lambda wanted=0: wanted or 300_000_000)
    files, told = BROKEN[way]
    found = proved(environment, tmp_path, files)
    assert not found.passed
    assert told in found.detail


def test_program_that_no_package_brings(environment: Path, tmp_path: Path) -> None:
    found = proved(environment, tmp_path, {}, ("webui", "--port", "1"))
    assert not found.passed
    assert found.detail == "webui is not in the environment: no package of the lock brings that program"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives a program a network of its own")
def test_program_is_alone_in_its_network(environment: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        text = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=5)\n"
        found = proved(environment, tmp_path, {"app.py": text})
    assert "ConnectionRefusedError" in found.detail
    with socket.create_server(("127.0.0.1", PORT)):  # it is free for the app
        assert proved(environment, tmp_path, {"app.py": server()}).passed


def test_nothing_of_the_users_home_is_seen(environment: Path, tmp_path: Path) -> None:
    before = "import os, pathlib\nassert os.listdir(pathlib.Path.home()) == []\n"
    before += "assert os.environ['HF_HOME'] != 'mine'"
    found = proved(environment, tmp_path, {"app.py": server(before)}, variables={"HF_HOME": "mine"})
    assert found.passed, found.detail


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lays what is written into another folder")
def test_app_s_folder_stays_as_it_was(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("mine")
    before = "import pathlib\npathlib.Path('made.txt').write_text('x')\npathlib.Path('kept.txt').write_text('x')\n"
    before += "assert pathlib.Path('kept.txt').read_text() == pathlib.Path('made.txt').read_text() == 'x'"
    found = proved(environment, tmp_path, {"app.py": server(before)})
    assert found.passed, found.detail
    assert not (tmp_path / "made.txt").exists()
    assert (tmp_path / "kept.txt").read_text() == "mine"


WRITES = """
import logging, multiprocessing, os, pathlib, pty, shutil, sqlite3, sys, tempfile, threading
logging.basicConfig(filename="app.log")
pathlib.Path("outputs/today").mkdir(parents=True)
shutil.rmtree("old")
pathlib.Path("old").mkdir()
os.replace("settings.json", "settings.old")
with sqlite3.connect("history.db") as book:
    book.execute("create table jobs (name)")
for place in ("~/.cache/voice", "~/.config/voice", "/tmp/gradio-voice", "/var/tmp/voice"):
    place = pathlib.Path(place).expanduser()
    place.mkdir(parents=True)
    (place / "one").write_text("x")
pathlib.Path(sys.prefix, "nltk_data").mkdir()
tempfile.NamedTemporaryFile(dir="/dev/shm").write(b"x")
tempfile.TemporaryFile().write(b"x")
pty.openpty()
os.open("/dev/stderr", os.O_WRONLY)
def add(queue, lock):
    with lock:
        queue.put(1)
lock, queue = multiprocessing.Lock(), multiprocessing.Queue()
one = multiprocessing.Process(target=add, args=(queue, lock))
one.start()
assert queue.get() == 1
with multiprocessing.Manager() as manager:
    assert manager.list([1])[0] == 1
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux contains a start")
def test_server_that_writes_where_servers_write(environment: Path, tmp_path: Path) -> None:
    files = {"app.py": server(WRITES), "settings.json": "{}", "old/one": "mine"}
    found = proved(environment, tmp_path / "app", files)
    assert found.detail.startswith(f"it answers on port {PORT} with status 200"), found.detail
    assert {path.name for path in (tmp_path / "app").rglob("*")} == {"app.py", "settings.json", "old", "one"}
    assert not (environment / "nltk_data").exists()
    assert not any(Path(place).exists() for place in ("/tmp/gradio-voice", "/var/tmp/voice"))


def test_clone_above_the_app_s_folder_may_be_written_into(environment: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    before = "import pathlib\npathlib.Path('../made.txt').write_text('x')\n"
    found = proved(environment, tmp_path / "inner", {"app.py": server(before)})
    assert found.passed, found.detail
    assert sys.platform != "linux" or not (tmp_path / "made.txt").exists()


LISTENS_FOR_A_MOMENT = """
import os, socket, time
for number in range(9):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("moment.sock")
        one.listen()
        os.unlink("moment.sock")
        time.sleep(0.3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says where a program listens")
def test_socket_that_is_gone_when_it_is_asked(environment: Path, tmp_path: Path) -> None:
    found = proved(environment, tmp_path, {"app.py": server(LISTENS_FOR_A_MOMENT)})
    assert found.detail.startswith(f"it answers on port {PORT} with status 200"), found.detail


LEAVES = """
import signal
import subprocess
import sys
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
print("left", subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which processes come from a program")
@pytest.mark.parametrize("then", ["sys.exit('it ends')", "import time; time.sleep(99)"], ids=["it ends", "it goes on"])
def test_nothing_that_was_started_goes_on(
    environment: Path, tmp_path: Path, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_SECONDS", 2)
    assert not proved(environment, tmp_path, {"app.py": f"{LEAVES}{then}\n"}).passed
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # of a process that has ended meanwhile
            assert str(environment).encode() not in path.read_bytes()


@pytest.mark.skipif(not shutil.which("unshare") or not shutil.which("setpriv"), reason="needs Linux and util-linux")
def test_system_that_gives_a_network_and_no_power_in_it(tmp_path: Path) -> None:
    for name in ("home", "written", "app"):
        (tmp_path / "start" / name).mkdir(parents=True)
    wanted = {"command": [sys.executable, "-c", "print('hello')"], "seconds": 60, "quiet": 1, "memory": 0, "port": 0}
    wanted |= {"with_errors": True, "names": []}
    wanted |= {name: str(tmp_path / "start" / name) for name in ("home", "written")}
    program = Path(start.__file__).with_name("_children") / "contained_start.py"
    without = ("unshare", "-Ur", "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    command = [*without, sys.executable, "-I", str(program), json.dumps(wanted)]
    done = subprocess.run(command, cwd=tmp_path / "start" / "app", capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("this system gives a user no namespace")
    answer = json.loads(done.stdout)
    assert (answer["ended"], answer["output"]) == (0, "hello\n")
