"""The vocabulary of machines: every word has its meaning and a source that opens, and a stranger is named.

`PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run tests/model/test_host_vocabulary.py` writes the words into the documentation.
"""

from __future__ import annotations

import os

import host_words
import pytest
from conftest import ROOT

from patchlock.model import host_vocabulary
from patchlock.model.hosts import Host, Node

WRITES = os.environ.get("PATCHLOCK_WRITE_SNAPSHOTS", "")
ACCEPT = "PATCHLOCK_WRITE_SNAPSHOTS=1 tests/run tests/model/test_host_vocabulary.py"
TABLES = {
    "versions": host_vocabulary.VERSIONS,
    "libraries": host_vocabulary.LIBRARIES,
    "settings": host_vocabulary.SETTINGS,
    "variables": host_vocabulary.VARIABLES,
    "nodes": host_vocabulary.NODES,
}
WORDS = {f"{table}.{name}": word for table, words in TABLES.items() for name, word in words.items()}


def test_every_word_is_in_the_documentation() -> None:
    file, parts = ROOT / "docs" / "formats" / "machines.md", []
    for table, words in TABLES.items():
        rows = "".join(
            f"| `{name}` | {word.means}{': ' if word.values else ''}{', '.join(f'`{one}`' for one in word.values)} |\n"
            for name, word in words.items()
        )
        parts.append(f"| in `{table}` | what it is |\n|---|---|\n{rows}")
    before, _, _ = file.read_text(encoding="utf-8").partition("| in `versions` |")
    page = before + "\n".join(parts)
    if WRITES:
        file.write_text(page, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == page, f"write it: {ACCEPT}"


@pytest.mark.parametrize("name", WORDS)
def test_word_says_what_it_means_and_where_that_is_written(name: str) -> None:
    word = WORDS[name]
    assert word.means
    assert not word.means.endswith(".")
    assert word.source.startswith("https://")


def test_machine_in_known_words_has_no_strangers() -> None:
    host = Host(
        os="linux",
        machine="x86_64",
        versions={"nvidia-driver": "580.65.06"},
        libraries={"libcuda.so.1": "/usr/lib/libcuda.so.1"},
        settings={"smart-app-control": "evaluation", "user-site": "numpy,torch"},
        variables={"CUDA_VISIBLE_DEVICES": ""},
        nodes=tuple(Node(path=f"/dev/{name}", is_usable=True) for name in ("kfd", "dri/renderD128", "nvidia12", "dxg")),
    )
    assert host_words.unknown_names(host) == []


def test_strangers_are_named_with_the_nearest_word() -> None:
    host = Host(
        os="linux",
        machine="x86_64",
        versions={"nvidia_driver": "580"},
        settings={"smart-app-control": "maybe"},
        nodes=(Node(path="/dev/nvidia-uvm-tools", is_usable=True), Node(path="/dev/nvidiactl", is_usable=True)),
    )
    assert host_words.unknown_names(host) == [
        'versions.nvidia_driver is not known; did you mean "nvidia-driver"?',
        "settings.smart-app-control is 'maybe', and can be on, off, evaluation",
        "nodes has /dev/nvidia-uvm-tools, which is not known",
    ]
