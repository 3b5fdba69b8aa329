"""What upstream does to the places that patches are for, one event at a time: the outcome, and the bytes afterwards."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest
from test_engine import patches

from patchlock.model.patch import Patch, Patched
from patchlock.patches.engine import apply

Files = Mapping[str, bytes]

SET = patches(
    pin="""
op = "set-requirement"
paths = ["requirements.txt"]
name = "torch"
specifier = "==2.5.1"
ensure = [{ check = "requirement", name = "torch", specifier = "==2.5.1" }]
""",
    optional="""
op = "optional-import"
paths = ["**/*.py"]
literal = ["deepspeed"]
package = "deepspeed"
ensure = [{ check = "imports-without", package = "deepspeed" }]
""",
    device="""
op = "replace-expression"
paths = ["app/**/*.py"]
literal = ["cuda", "cpu"]
pattern = '"cuda"'
replacement = 'choose("cpu")'
expect = { sites = 2 }
ensure = [{ check = "no-string", value = "cuda" }]
""",
    loader="""
op = "replace-expression"
paths = ["app/load.py"]
literal = ["weights_only"]
within = ["Loader.load"]
pattern = "read($path, weights_only=True)"
replacement = "read($path, weights_only=False)"
expect = { sites = 1, exact = true }
ensure = [{ check = "contains", text = "weights_only=False" }]
""",
    start="""
op = "replace-text"
paths = ["start.bat"]
literal = ["app.py"]
old = "--gpu"
new = "--cpu"
ensure = [{ check = "lacks", text = "--gpu" }]
""",
)
RUN = b'DEVICE = "cuda"\n\n\ndef run(model):\n    return model.to("cuda")\n'
RUN_DONE = RUN.replace(b'"cuda"', b'choose("cpu")')
LOAD = b"class Loader:\n    def load(self, path):\n        return read(path, weights_only=True)\n"
LOAD_DONE = LOAD.replace(b"True", b"False")
PINS = b"numpy\ntorch==2.1.1\ngradio\n"
PINS_DONE = b"numpy\ntorch==2.5.1\ngradio\n"
TRAIN = b"import deepspeed\n\n\ndef train(model):\n    return deepspeed.initialize(model)\n"
GUARDED = (
    b"try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n\n\n"
    b"def train(model):\n    return deepspeed.initialize(model)\n"
)
START = b"call env\r\npython app.py --gpu\r\n"
BASE: Files = {
    "requirements.txt": PINS,
    "app/run.py": RUN,
    "app/load.py": LOAD,
    "app/train.py": TRAIN,
    "start.bat": START,
}


def patched(files: Files) -> Patched:
    """Apply the whole set."""
    return apply(SET, {PurePosixPath(path): data for path, data in files.items()})


def told(result: Patched, patch: str) -> list[tuple[str, str, tuple[int, ...]]]:
    """Give what is said of one patch: outcome, file, lines."""
    return [
        (outcome.kind.value, str(outcome.path), tuple(site.line for site in outcome.sites))
        for outcome in result.outcomes
        if outcome.patch == patch
    ]


def moved(old: str, new: str) -> dict[str, bytes]:
    """Give the base with a file elsewhere."""
    return {new if path == old else path: data for path, data in BASE.items()}


def without(path: str) -> dict[str, bytes]:
    """Give the base without a file."""
    return {name: data for name, data in BASE.items() if name != path}


Expected = list[tuple[str, str, tuple[int, ...]]]
EVENTS: list[tuple[str, Files, str, Expected, Files]] = [
    ("nothing", BASE, "pin", [("needed", "requirements.txt", (2,))], {"requirements.txt": PINS_DONE}),
    (
        "new site in a known file",
        {**BASE, "app/run.py": RUN + b'\n\nOTHER = "cuda"\n'},
        "device",
        [("new sites", "app/run.py", (1, 5, 8))],
        {"app/run.py": RUN_DONE + b'\n\nOTHER = choose("cpu")\n'},
    ),
    (
        "new file with a target",
        {**BASE, "app/more/demo.py": b'pick("cuda")\n'},
        "device",
        [("new sites", "app/more/demo.py", (1,)), ("new sites", "app/run.py", (1, 5))],
        {"app/more/demo.py": b'pick(choose("cpu"))\n', "app/run.py": RUN_DONE},
    ),
    (
        "second requirement of the name",
        {**BASE, "requirements.txt": PINS + b"torch>=2.0.0\n"},
        "pin",
        [("needed", "requirements.txt", (2, 4))],
        {"requirements.txt": PINS_DONE + b"torch==2.5.1\n"},
    ),
    (
        "file moved, patch has a glob",
        moved("app/run.py", "app/core/engine.py"),
        "device",
        [("needed", "app/core/engine.py", (1, 5))],
        {"app/core/engine.py": RUN_DONE},
    ),
    (
        "file moved, patch names it",
        moved("app/load.py", "app/core/load.py"),
        "loader",
        [("moved", "app/core/load.py", (3,))],
        {"app/core/load.py": LOAD_DONE},
    ),
    (
        "file copied, patch names it",
        {**BASE, "app/core/load.py": LOAD},
        "loader",
        [("needed", "app/load.py", (3,))],
        {"app/load.py": LOAD_DONE, "app/core/load.py": LOAD},
    ),
    (
        "file moved twice over, patch names it",
        {**without("app/load.py"), "a/load.py": LOAD, "b/load.py": LOAD},
        "loader",
        [("ambiguous", "a/load.py", ())],
        {"a/load.py": LOAD, "b/load.py": LOAD},
    ),
    (
        "no Python file moved: patch names it",
        moved("start.bat", "scripts/start.bat"),
        "start",
        [("moved", "scripts/start.bat", (2,))],
        {"scripts/start.bat": START.replace(b"--gpu", b"--cpu")},
    ),
    (
        "symbol renamed",
        {**BASE, "app/load.py": LOAD.replace(b"def load", b"def open")},
        "loader",
        [("ambiguous", "app/load.py", ())],
        {"app/load.py": LOAD.replace(b"def load", b"def open")},
    ),
    (
        "argument renamed around the site",
        {**BASE, "app/load.py": LOAD.replace(b"path", b"file")},
        "loader",
        [("needed", "app/load.py", (3,))],
        {"app/load.py": LOAD_DONE.replace(b"path", b"file")},
    ),
    (
        "fixed upstream",
        {**BASE, "app/run.py": RUN_DONE},
        "device",
        [("fixed upstream", "app/run.py", (1, 5))],
        {"app/run.py": RUN_DONE},
    ),
    (
        "fixed upstream in another way",
        {**BASE, "app/run.py": RUN.replace(b"cuda", b"cpu")},
        "device",
        [("gone", "None", ())],
        {"app/run.py": RUN.replace(b"cuda", b"cpu")},
    ),
    (
        "pin fixed upstream",
        {**BASE, "requirements.txt": PINS_DONE},
        "pin",
        [("fixed upstream", "requirements.txt", (2,))],
        {"requirements.txt": PINS_DONE},
    ),
    (
        "partly fixed",
        {**BASE, "app/run.py": RUN.replace(b'"cuda"', b'choose("cpu")', 1)},
        "device",
        [("partly fixed", "app/run.py", (5,))],
        {"app/run.py": RUN_DONE},
    ),
    (
        "one file of two fixed",
        {**BASE, "app/gone.py": b'pick(choose("cpu"))\n'},
        "device",
        [("fixed upstream", "app/gone.py", (1,)), ("needed", "app/run.py", (1, 5))],
        {"app/gone.py": b'pick(choose("cpu"))\n', "app/run.py": RUN_DONE},
    ),
    ("file deleted", without("app/run.py"), "device", [("gone", "None", ())], {}),
    ("named file deleted", without("app/load.py"), "loader", [("gone", "None", ())], {}),
    (
        "requirement deleted",
        {**BASE, "requirements.txt": b"numpy\ngradio\n"},
        "pin",
        [("gone", "None", ())],
        {"requirements.txt": b"numpy\ngradio\n"},
    ),
    (
        "fewer sites",
        {**BASE, "app/run.py": b'def run(model):\n    return model.to("cuda")\n'},
        "device",
        [("needed", "app/run.py", (2,))],
        {"app/run.py": b'def run(model):\n    return model.to(choose("cpu"))\n'},
    ),
    (
        "second match where one is meant",
        {**BASE, "app/load.py": LOAD + b"\n    def load(self, path):\n        return read(path, weights_only=True)\n"},
        "loader",
        [("ambiguous", "app/load.py", (3, 6))],
        {"app/load.py": LOAD + b"\n    def load(self, path):\n        return read(path, weights_only=True)\n"},
    ),
    (
        "reformatted",
        {
            **BASE,
            "app/load.py": LOAD.replace(
                b"path, weights_only=True", b"\n            path,\n            weights_only = True,\n        "
            ),
        },
        "loader",
        [("needed", "app/load.py", (3,))],
        {"app/load.py": LOAD_DONE},
    ),
    (
        "quotes changed",
        {**BASE, "app/run.py": RUN.replace(b'"', b"'")},
        "device",
        [("needed", "app/run.py", (1, 5))],
        {"app/run.py": RUN_DONE},
    ),
    (
        "line endings flipped",
        {name: data.replace(b"\n", b"\r\n") for name, data in BASE.items()},
        "device",
        [("needed", "app/run.py", (1, 5))],
        {"app/run.py": RUN_DONE.replace(b"\n", b"\r\n"), "requirements.txt": PINS_DONE.replace(b"\n", b"\r\n")},
    ),
    (
        "byte order mark",
        {**BASE, "app/run.py": codecs.BOM_UTF8 + RUN, "requirements.txt": codecs.BOM_UTF8 + PINS},
        "device",
        [("needed", "app/run.py", (1, 5))],
        {"app/run.py": codecs.BOM_UTF8 + RUN_DONE, "requirements.txt": codecs.BOM_UTF8 + PINS_DONE},
    ),
    (
        "requirements in UTF-16",
        {**BASE, "requirements.txt": codecs.BOM_UTF16_LE + PINS.decode().encode("utf-16-le")},
        "pin",
        [("needed", "requirements.txt", (2,))],
        {"requirements.txt": codecs.BOM_UTF16_LE + PINS_DONE.decode().encode("utf-16-le")},
    ),
    (
        "Python in UTF-16",
        {**BASE, "app/run.py": codecs.BOM_UTF16_LE + RUN.decode().encode("utf-16-le")},
        "device",
        [("passed over", "app/run.py", (1,))],
        {"app/run.py": codecs.BOM_UTF16_LE + RUN.decode().encode("utf-16-le")},
    ),
    (
        "binary content",
        {**BASE, "app/run.py": b'"cuda"\0\n'},
        "device",
        [("passed over", "app/run.py", ())],
        {"app/run.py": b'"cuda"\0\n', "requirements.txt": PINS_DONE},
    ),
    (
        "broken commit",
        {**BASE, "app/run.py": RUN + b"if:\n"},
        "device",
        [("passed over", "app/run.py", (6,))],
        {"app/run.py": RUN + b"if:\n", "requirements.txt": PINS_DONE, "app/load.py": LOAD_DONE},
    ),
    (
        "broken commit where no patch looks",
        {**BASE, "app/broken.py": b"if:\n"},
        "device",
        [("needed", "app/run.py", (1, 5))],
        {"app/run.py": RUN_DONE, "app/broken.py": b"if:\n"},
    ),
    (
        "import guarded upstream",
        {**BASE, "app/train.py": GUARDED},
        "optional",
        [("fixed upstream", "app/train.py", (2,))],
        {"app/train.py": GUARDED},
    ),
    (
        "package called at import",
        {**BASE, "app/train.py": TRAIN + b"\n\ntrain(deepspeed.model())\n"},
        "optional",
        [("required at import", "app/train.py", (5, 8))],
        {"app/train.py": TRAIN + b"\n\ntrain(deepspeed.model())\n"},
    ),
    (
        "requirement that nobody can read",
        {**BASE, "requirements.txt": PINS.replace(b"torch==2.1.1", b"torch numpy==1")},
        "pin",
        [("unparsable upstream", "requirements.txt", (2,))],
        {"requirements.txt": PINS.replace(b"torch==2.1.1", b"torch numpy==1")},
    ),
]


@pytest.mark.parametrize(("files", "patch", "expected", "after"), [e[1:] for e in EVENTS], ids=[e[0] for e in EVENTS])
def test_event(files: Files, patch: str, expected: Expected, after: Files) -> None:
    result = patched(files)
    assert result.failures == ()
    assert told(result, patch) == expected
    contents = {**files, **{str(change.path): change.after for change in result.changes}}
    assert {path: contents[path] for path in after} == after


@pytest.mark.parametrize("files", [event[1] for event in EVENTS], ids=[event[0] for event in EVENTS])
def test_result_of_an_event_settles(files: Files) -> None:
    once = {PurePosixPath(path): data for path, data in files.items()}
    once |= {change.path: change.after for change in patched(files).changes}
    assert apply(SET, once).changes == ()


def test_a_file_that_cannot_be_read_is_named_and_stops_no_other() -> None:
    files = {**BASE, "app/one.py": b'pick("cuda")\n', "app/two.py": b'pick("cuda")\nif:\n'}
    result = patched(files)
    assert told(result, "device") == [
        ("new sites", "app/one.py", (1,)),
        ("new sites", "app/run.py", (1, 5)),
        ("passed over", "app/two.py", (2,)),
    ]
    assert [str(change.path) for change in result.changes][:3] == ["app/load.py", "app/one.py", "app/run.py"]


def test_a_patch_that_is_blocked_writes_none_of_its_files_and_stops_no_other() -> None:
    files = {**BASE, "app/one.py": b'pick("cuda")\n', "app/two.py": b'x = f"{pick("cuda")}"\n'}
    result = patched(files)
    assert {kind for kind, *_ in told(result, "device")} == {"ambiguous", "new sites"}
    assert [str(change.path) for change in result.changes] == [
        "app/load.py",
        "app/train.py",
        "requirements.txt",
        "start.bat",
    ]


def test_history_breaks_and_heals() -> None:
    line = [BASE, {**BASE, "app/run.py": RUN + b"if:\n"}, BASE]
    results = [patched(files) for files in line]
    kinds = [[kind for kind, *_ in told(result, "device")] for result in results]
    assert kinds == [["needed"], ["passed over"], ["needed"]]
    assert results[0] == results[2]


def test_order_of_unrelated_patches_does_not_matter() -> None:
    contents = {PurePosixPath(path): data for path, data in BASE.items()}
    backwards: tuple[Patch, ...] = SET[::-1]
    assert apply(SET, contents).changes == apply(backwards, contents).changes


def test_second_requirement_on_one_line_is_not_lost() -> None:
    files = {**BASE, "requirements.txt": b"torch==2.1.1 numpy\n"}
    written = [change.after for change in patched(files).changes if change.path.name == "requirements.txt"]
    assert all(b"numpy" in data for data in written)
