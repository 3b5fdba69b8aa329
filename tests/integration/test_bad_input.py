"""Bad input gets one clear sentence and the documented exit code, and leaves nothing half-done."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Patchlock
from miniature import World, lock_here, seal, this_platform


def _nothing_installed(folder: Path) -> bool:
    home = folder / "installed"
    return not list(home.glob("*/current")) and not list(home.glob("*/environments/*/receipt.toml"))


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("install", "mni"), 1, 'error[unknown-app]: there is no app "mni"; did you mean "mini"?'),
        (
            ("install", "mini", "--profile", "tny"),
            1,
            'error[unknown-profile]: there is no profile "tny"; did you mean "tiny"?',
        ),
        (("lock", "zzz"), 1, 'error[unknown-app]: there is no app "zzz"; known: mini'),
        (("instal",), 2, 'error[usage]: there is no command "instal"; did you mean "install"? see `patchlock --help`'),
        (
            ("install", "mini", "--profil", "x"),
            2,
            'error[usage]: there is no option "--profil"; did you mean "--profile"? see `patchlock install --help`',
        ),
        (
            ("list", "--zzz"),
            2,
            'error[usage]: there is no option "--zzz"; see `patchlock list --help`',
        ),
        (
            ("--catalogue", "x", "list"),
            2,
            'error[usage]: there is no option "--catalogue"; write options after the command; see `patchlock --help`',
        ),
        (
            ("info", "mini", "--profile", "x"),
            2,
            'error[usage]: there is no option "--profile"; see `patchlock info --help`',
        ),
        (
            ("cache", "cleen"),
            2,
            'error[usage]: there is no command "cleen"; did you mean "clean"? see `patchlock cache --help`',
        ),
        (
            ("install", "mini", "--profile"),
            2,
            "error[usage]: option '--profile' requires an argument; see `patchlock install --help`",
        ),
        (("-q", "list", "-v"), 2, "error[usage]: -v and -q contradict each other; leave one out"),
        (
            ("install",),
            2,
            "error[usage]: no app is named; `patchlock install demo` installs the smallest; `patchlock list` shows all",
        ),
        (
            ("lock", "--as-of", "yesterday"),
            2,
            (
                'error[usage]: --as-of "yesterday" is neither commit, now, none, a day nor a time with its zone; '
                "write 2026-01-31 or 2026-01-31T00:00:00Z"
            ),
        ),
        (
            ("lock", "--as-of", "9000-01-01"),
            2,
            (
                'error[usage]: --as-of "9000-01-01" is in the future: what is uploaded until then is not known yet; '
                "write `now`, or a time that has passed"
            ),
        ),
    ],
    ids=[
        "app",
        "profile",
        "app-of-lock",
        "command",
        "option",
        "strange-option",
        "option-before-command",
        "option-of-other-commands",
        "subcommand",
        "value",
        "both",
        "argument",
        "time",
        "future",
    ],
)
def test_unknown_word(world: World, patchlock: Patchlock, words: tuple[str, ...], code: int, sentence: str) -> None:
    done = patchlock(*words)
    assert (done.returncode, done.stderr.strip(), done.stdout) == (code, sentence, "")


def test_unknown_key_and_op_are_named_with_the_nearest(world: World, patchlock: Patchlock) -> None:
    world.app.write_text(
        world.app.read_text()
        .replace("license =", "licence =")
        .replace('op = "set-requirement"', 'op = "set-requiremnt"')
    )
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error[catalogue]: the catalogue has 3 mistakes",
        '  patches/mini/app.toml:21: patch[0].op: there is no op "set-requiremnt"; did you mean "set-requirement"?',
        '  patches/mini/app.toml:1: app.license: the key "license" is missing; write license = "a text"',
        '  patches/mini/app.toml:3: app.licence: the key "licence" is unknown; did you mean "license"?',
    ]


def test_catalogue_elsewhere_that_is_none(patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("list", "--catalogue", str(tmp_path))
    assert done.returncode == 2
    sentence = f"error[usage]: that folder holds no catalogue ({tmp_path}); it needs profiles/ and patches/"
    assert done.stderr.strip() == sentence


def test_missing_lock(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "error[lock-missing]: there is no lock for mini on tiny on " in done.stderr
    assert "`patchlock lock mini --profile tiny`" in done.stderr
    assert _nothing_installed(tmp_path)


def test_stale_lock_is_not_installed(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    text = locked.app.read_text()
    locked.app.write_text(text.replace('specifier = "==1.0"', 'specifier = "==2.0"'))
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "error[lock-stale]: the lock of mini on tiny is stale: patches/mini/app.toml has changed" in done.stderr
    assert _nothing_installed(tmp_path)


def test_lock_that_was_edited_by_hand(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    for path in (locked.catalogue / "lockfiles" / "mini").iterdir():
        path.write_text(path.read_text() + "delta==1.0\n")
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "a line must be one distribution with exactly one sha256 (lockfiles/mini/tiny." in done.stderr
    assert _nothing_installed(tmp_path)


OTHER_SHA256 = "0" * 64
EDITS = {
    "version": lambda text: text.replace("gamma==2.0", "gamma==3.0"),
    "sha256": lambda text: re.sub(r"(beta==1\.5 --hash=sha256:)[0-9a-f]+", rf"\g<1>{OTHER_SHA256}", text),
    "one-less": lambda text: re.sub(r"gamma==.*\n", "", text),
    "one-more": lambda text: text + f"zeta==1.0 --hash=sha256:{OTHER_SHA256}\n",
    "why": lambda text: text.replace("requirements.txt", "somewhere"),
    "header": lambda text: text.replace("# format = 1", "# format = 1\n# more = 1"),
    "seal": lambda text: re.sub(r'# content = ".*"\n', "", text),
    "seal-of-another": lambda text: re.sub(r'# content = ".*"', f'# content = "{OTHER_SHA256}"', text),
    "seal-in-a-table": lambda text: text.replace("# [inputs]\n", f'# [inputs]\n# content = "{OTHER_SHA256}"\n'),
}


def _edit_lock(world: World, edit: str) -> tuple[Path, str]:
    """Change the lock of this machine; gives its path, and what it was."""
    path = world.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"
    text = path.read_text()
    path.write_text(EDITS[edit](text))
    assert path.read_text() != text
    return path, text


def _everything(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("edit", EDITS)
def test_a_lock_that_is_not_as_it_was_sealed_is_not_installed(
    locked: World, patchlock: Patchlock, tmp_path: Path, edit: str
) -> None:
    path, _ = _edit_lock(locked, edit)
    before = _everything(tmp_path)
    done = patchlock("install", "mini", "--profile", "tiny")
    assert (done.returncode, done.stdout) == (1, "")
    sentence = (
        "error[lock-format]: its lines were changed after it was made: they are not those of its seal "
        f"(lockfiles/mini/{path.name}); make it again with `patchlock lock mini --profile tiny`; if the edit is yours, "
        "`patchlock install mini --profile tiny --accept-edited-lock` installs it as edited"
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == [sentence]
    assert _everything(tmp_path) == before
    assert "error[lock-format]" in patchlock("plan", "mini", "--profile", "tiny").stderr


def test_what_the_message_about_an_edited_lock_says_works(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    root = locked.catalogue
    git = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    path, text = _edit_lock(locked, "version")
    sentence = patchlock("install", "mini").stderr
    assert "make it again with `patchlock lock mini --profile tiny`, or undo the change with `git -C" in sentence
    assert patchlock(*lock_here()).returncode == 0
    assert path.read_text() == text
    _edit_lock(locked, "version")
    [command] = re.findall(r"`(git [^`]+)`", sentence)
    subprocess.run(shlex.split(command), check=True)
    assert path.read_text() == text
    assert patchlock("install", "mini").returncode == 0


@pytest.mark.parametrize("words", [("install",), ("install", "--reinstall"), ("update",)], ids=" ".join)
def test_an_edited_lock_leaves_what_is_installed_as_it_is(
    locked: World, patchlock: Patchlock, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert patchlock("install", "mini").returncode == 0
    _edit_lock(locked, "version")
    home = tmp_path / "installed"
    before = _everything(home)
    done = patchlock(words[0], "mini", *words[1:])
    assert done.returncode == 1
    assert "error[lock-format]: its lines were changed after it was made" in done.stderr
    assert _everything(home) == before


EDITED = "was edited by its owner after it was made: its lines are not those of its seal"


def test_an_edited_lock_is_installed_where_its_owner_says_so_and_everybody_is_told(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    _edit_lock(locked, "why")
    planned = patchlock("plan", "mini", "--profile", "tiny", "--accept-edited-lock")
    assert re.search(rf"^ *lock +{EDITED}$", planned.stdout, re.MULTILINE)
    assert "install mini --profile tiny --accept-edited-lock" in planned.stdout
    done = patchlock("install", "mini", "--profile", "tiny", "--accept-edited-lock")
    assert done.returncode == 0, done.stderr
    assert f"the lock {EDITED}" in done.stderr
    assert re.search(rf"^ *lock +{EDITED}$", done.stdout, re.MULTILINE)
    [receipt] = (tmp_path / "installed").glob("mini@tiny/environments/*/receipt.toml")
    assert "\nedited_lock = true\n" in receipt.read_text()
    for words in ((), ("--quick",), ("--deep",)):
        seen = patchlock("verify", "mini", *words)
        assert seen.returncode == 0, seen.stderr
        assert f"note    the lock that it was installed from {EDITED}\n" in seen.stdout
    assert f"note    the lock {EDITED}\n" in patchlock("install", "mini").stdout
    assert ", from an edited lock\n" in patchlock("status").stdout
    assert json.loads(patchlock("install", "mini", "--json").stdout)["data"]["receipt"]["edited_lock"] is True
    assert "error[lock-format]" in patchlock("install", "mini", "--reinstall").stderr
    next((tmp_path / "installed").glob("mini@tiny/environments/*/lib/python*/site-packages/beta.py")).unlink()
    mended = patchlock("install", "mini", "--repair")
    assert mended.returncode == 0, mended.stderr
    assert f"  note    the lock that it was installed from {EDITED}\n" in mended.stdout


def test_the_receipt_of_a_sealed_lock_says_nothing_of_edits(
    locked: World, patchlock: Patchlock, tmp_path: Path
) -> None:
    assert patchlock("install", "mini", "--accept-edited-lock").returncode == 0
    [receipt] = (tmp_path / "installed").glob("mini@tiny/environments/*/receipt.toml")
    assert "edited" not in receipt.read_text()
    assert "edited" not in patchlock("verify", "mini", "--quick").stdout


ADDRESSES = {
    "http": ("http://example.com/{}", "it is not https"),
    "password": ("https://anna:s3cret@example.com/{}", "it has a user, a password or a query, which may be secrets"),
    "token": ("https://example.com/?token=s3cret/{}", "it has a user, a password or a query, which may be secrets"),
    "file": ("file:///srv/{}", "it is of one machine; `--local-addresses` allows that"),
    "loopback": ("http://127.0.0.1:8080/{}", "it is of one machine; `--local-addresses` allows that"),
}


@pytest.mark.parametrize(("address", "why"), ADDRESSES.values(), ids=list(ADDRESSES))
def test_an_address_that_no_lock_may_have_is_not_installed_even_from_a_sealed_lock(
    locked: World, patchlock: Patchlock, tmp_path: Path, address: str, why: str
) -> None:
    path = locked.catalogue / "lockfiles" / "mini" / f"tiny.{this_platform().name}.txt"
    url = address.format("beta-1.5-py3-none-any.whl")
    path.write_text(path.read_text().replace("beta==1.5 ", f"beta @ {url} "))
    seal(path)
    before = _everything(tmp_path)
    done = patchlock("install", "mini", "--profile", "tiny", "--accept-edited-lock")
    shown = url.replace("anna:s3cret@", "").partition("?")[0]
    sentence = (
        f"error[lock-format]: the address of beta @ {shown} is not allowed in a lock: {why} (lockfiles/mini/{path.name}); "
        "name an https address without secrets; what a server asks for belongs into ~/.netrc"
    )
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == [sentence]
    assert _everything(tmp_path) == before


def test_a_repair_from_an_edited_lock_is_refused(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    assert patchlock("install", "mini").returncode == 0
    [kept] = (tmp_path / "installed").glob("mini@tiny/environments/*/lock.txt")
    receipt = kept.with_name("receipt.toml")
    was = hashlib.sha256(kept.read_bytes()).hexdigest()
    kept.write_text(EDITS["version"](kept.read_text()))
    receipt.write_text(receipt.read_text().replace(was, hashlib.sha256(kept.read_bytes()).hexdigest()))
    before = _everything(tmp_path / "installed")
    done = patchlock("install", "mini", "--repair")
    assert done.returncode == 1
    assert (
        "error[lock-format]: its lines were changed after it was made: they are not those of its seal "
        f"({kept}); run `patchlock install mini --profile tiny --reinstall`, which takes the lock of the catalogue"
    ) in done.stderr
    assert _everything(tmp_path / "installed") == before
    assert patchlock("install", "mini", "--reinstall").returncode == 0


def test_lock_of_another_system_is_not_installed(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    texts = {path: path.read_text() for path in (locked.catalogue / "lockfiles" / "mini").glob("tiny.*.txt")}
    names = sorted(texts)
    for path, other in zip(names, (*names[1:], names[0]), strict=True):
        path.write_text(texts[other])
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert "error[lock-format]: it is the lock of mini on tiny on " in done.stderr
    assert "run `patchlock lock mini --profile tiny`" in done.stderr
    assert _nothing_installed(tmp_path)


def test_wrong_hash_installs_nothing(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    for path in (locked.catalogue / "lockfiles" / "mini").iterdir():
        lines = path.read_text().splitlines()
        lines[-2] = lines[-2][: lines[-2].index("sha256:") + 7] + "0" * 64
        path.write_text("\n".join(lines) + "\n")
        seal(path)
    done = patchlock("install", "mini")
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("error")]
    assert line.startswith("error[hash-mismatch]: ")
    assert "is not the file that the lock names, and nothing of it was installed" in line
    assert _nothing_installed(tmp_path)


# --- requirement files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        "alpha==9.0\nbeta>=1\n".encode("utf-16"),
        b"\xef\xbb\xbfalpha==9.0\r\nbeta>=1",
        "# caf\xe9\nalpha==9.0\nbeta>=1\n".encode("latin-1"),
    ],
    ids=["utf-16", "bom-crlf", "latin-1"],
)
def test_odd_encodings_of_requirements_just_work(
    world: World, patchlock: Patchlock, tmp_path: Path, data: bytes
) -> None:
    (world.upstream / "requirements.txt").write_bytes(data)
    world.name_commit(tmp_path)
    assert patchlock(*lock_here()).returncode == 0
    done = patchlock("install", "mini")
    assert done.returncode == 0, done.stderr
    patched = (tmp_path / "installed" / "mini@tiny" / "source" / "requirements.txt").read_bytes()
    nine, one = ("9.0".encode("utf-16-le"), "1.0".encode("utf-16-le")) if b"\0" in data else (b"9.0", b"1.0")
    assert patched == data.replace(nine, one)


def test_broken_requirement_line(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (world.upstream / "requirements.txt").write_bytes(b"alpha==9.0\nbeta>>1\n")
    world.name_commit(tmp_path)
    done = patchlock(*lock_here())
    assert done.returncode == 1
    assert (
        "it is not a requirement that pip can read: expected semicolon (after name with no version specifier) or end, at "
        "`>>1` (requirements.txt:2); "
    ) in done.stdout
    assert "correct the line upstream, or add a patch with the op replace-text" in done.stdout
    assert not list((world.catalogue / "lockfiles").glob("*/*"))


def test_requirement_file_that_is_not_there(world: World, patchlock: Patchlock) -> None:
    world.app.write_text(world.app.read_text().replace('["requirements.txt"]', '["needs.txt"]'))
    done = patchlock("plan", "mini")
    assert done.returncode == 1


# --- the world --------------------------------------------------------------------------------------------------------


def _as_git_upstream(world: World, url: str) -> None:
    text = world.app.read_text().replace('embedded = "upstream"', f'url = "{url}"')
    world.app.write_text(text.replace('date = "2026-01-01T00:00:00Z"\n', ""))


def test_unreachable_upstream(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    _as_git_upstream(locked, "http://127.0.0.1:9/nobody/there.git")
    done = patchlock("install", "mini")
    assert done.returncode == 1
    assert (
        "error[upstream]: the upstream of mini could not be fetched (http://127.0.0.1:9/nobody/there.git); check the address "
        "and the connection, or take it from elsewhere: --source PATH-OR-URL"
    ) in done.stderr
    assert _nothing_installed(tmp_path)


def test_source_without_the_commit(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    _as_git_upstream(locked, "http://127.0.0.1:9/nobody/there.git")
    other = str(tmp_path / "other")
    subprocess.run(["git", "init", "-q", other], check=True)
    done = patchlock("install", "mini", "--source", other)
    assert done.returncode == 1
    assert "has no commits" in done.stderr
    who = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    subprocess.run(["git", *who, "-C", other, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    done = patchlock("install", "mini", "--source", other)
    assert done.returncode == 1
    assert "give a clone that has it: --source PATH; or correct `commit` in patches/mini/app.toml" in done.stderr


def test_no_git(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    done = patchlock("install", "mini", env={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 1
    assert "error[not-ready]: this machine is not ready for mini on tiny; nothing was touched" in done.stderr
    assert "  git is not installed; " in done.stderr
    assert _nothing_installed(tmp_path)


def test_no_network(locked: World, patchlock: Patchlock, tmp_path: Path) -> None:
    nowhere = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_OFFLINE": "0", "UV_HTTP_RETRIES": "0"}
    done = patchlock("install", "mini", env={**nowhere, "UV_CACHE_DIR": str(tmp_path / "empty")})
    assert done.returncode == 1
    assert (
        "error[network]: the package index does not answer (http://127.0.0.1:9); check the connection or the proxy, "
        "then run the same command again: finished downloads are kept"
    ) in done.stderr
    assert _nothing_installed(tmp_path)
    assert patchlock("install", "mini").returncode == 0


def test_no_network_while_locking(world: World, patchlock: Patchlock, tmp_path: Path) -> None:
    nowhere = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_OFFLINE": "0", "UV_HTTP_RETRIES": "0"}
    done = patchlock("lock", "mini", "--json", env={**nowhere, "UV_CACHE_DIR": str(tmp_path / "empty")})
    assert done.returncode == 1
    assert {pair["code"] for pair in json.loads(done.stdout)["data"]["pairs"]} == {"network"}
    assert not list((world.catalogue / "lockfiles").glob("*/*"))


def _may_mount() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "x", "/mnt"], capture_output=True, check=False)
    return probe.returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="this machine lets nobody mount a small disk")
@pytest.mark.parametrize(
    ("size", "sentence"),
    [("16m", " of disk are needed, "), ("310m", "the disk is full while")],
    ids=["seen-before", "met-on-the-way"],
)
def test_full_disk(locked: World, patchlock: Patchlock, tmp_path: Path, size: str, sentence: str) -> None:
    small = tmp_path / "small"
    small.mkdir()
    fill = f"head -c $(($(df --output=avail -B1 {small} | tail -n 1) - 65536)) /dev/zero > {small}/filler"
    # The second disk passes the preflight and is filled while the source is being read.
    steps = [f"mount -t tmpfs -o size={size} small {small}"]
    command = " ".join([*patchlock.command, "install", "mini"])
    if size == "310m":
        steps.append(f"(sleep 0.01; while [ ! -e {small}/mini@tiny/journal ]; do :; done; {fill}) &")
    done = subprocess.run(
        [
            "unshare",
            "-rm",
            "sh",
            "-c",
            "; ".join(steps).replace("&;", "&") + f"\n{command}; code=$?; find {small} -name receipt.toml; exit $code",
        ],
        env=patchlock.env({"PATCHLOCK_HOME": str(small)}),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1, done.stderr
    assert "error[disk-full]: " in done.stderr
    assert sentence in done.stderr
    assert done.stdout == ""


# --- output -----------------------------------------------------------------------------------------------------------


def test_json_is_one_envelope_also_for_errors(locked: World, patchlock: Patchlock) -> None:
    good = json.loads(patchlock("install", "mini", "--json").stdout)
    assert (good["patchlock"], good["command"], good["ok"], good["error"]) == (1, "install", True, None)
    assert good["data"]["receipt"]["checks"][-1]["detail"] == '`python app.py` prints "computed on cpu"'
    done = patchlock("install", "mni", "--json")
    bad = json.loads(done.stdout)
    assert (done.returncode, done.stderr, bad["ok"], bad["data"]) == (1, "", False, None)
    assert bad["error"]["code"] == "unknown-app"
    usage = json.loads(patchlock("install", "--json").stdout)
    assert usage["error"]["code"] == "usage"


@pytest.mark.parametrize("words", [("install", "mini"), ("plan", "mini"), ("list",), ("--help",), ("install", "x")])
def test_piped_output_has_no_control_characters(locked: World, patchlock: Patchlock, words: tuple[str, ...]) -> None:
    done = patchlock(*words)
    assert all(character >= " " or character == "\n" for character in done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("env", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "no-color", "dumb"],
)
def test_colour_in_a_terminal(patchlock: Patchlock, world: World, env: dict[str, str], coloured: bool) -> None:
    pty = pytest.importorskip("pty")
    main, other = pty.openpty()
    done = subprocess.run(
        [*patchlock.command, "install", "mni"],
        env=patchlock.env({"TERM": "xterm", **env}),
        stdin=subprocess.DEVNULL,
        stdout=other,
        stderr=other,
        check=False,
    )
    os.close(other)
    seen = os.read(main, 4096).decode()
    os.close(main)
    assert done.returncode == 1
    assert ("\x1b[" in seen) is coloured
    assert "there is no app" in seen
