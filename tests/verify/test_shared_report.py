"""A report of what was proved says nothing of whose machine it was, and is one page that needs nothing else."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from receipts import receipt
from test_proofs import proof
from test_reports import report

from patchlock.cli import _verify
from patchlock.model import redaction
from patchlock.model.hosts import Host
from patchlock.model.kernel_results import Verdict
from patchlock.verify import shared_report
from patchlock.verify.checks import CheckResult

HOST = Host(
    os="linux",
    machine="x86_64",
    release="6.8.0-31-erikas-box",
    distribution="ubuntu 24.04",
    processor="A processor",
    versions={"nvidia-driver": "580.65.06", "git": "2.39.5"},
)
SECRETS = (
    r"/home/erika/apps/x.py; C:\Users\Erika Muster\x; on erikas-box: erika said; https://erika:pw@host.example/x?token=abc123; "
    "erika@mail.example; 192.168.178.20:7860; aa:bb:cc:dd:ee:ff; hf_AbCdEf0123456789; /srv/things of mine/home/x"
)
WORDS = ("erika", "Erika", "Muster", "pw@", "abc123", "192.168", "aa:bb", "AbCdEf", "things of mine", '0123456789ab"')


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    for name in shared_report._NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("USER", "erika")
    monkeypatch.setattr("platform.node", lambda: "erikas-box.fritz.example")
    return shared_report.mask([Path("/srv/things of mine/home")])


def check(detail: str = "", level: str = "loads", *, passed: bool = True) -> CheckResult:
    return CheckResult(id="imports", level=level, passed=passed, detail=detail)


def test_hostile_machine_leaves_no_name(say: Callable[[str], str]) -> None:
    made = report(proof(detail=SECRETS, verdict=Verdict.RAISES))
    found = shared_report.data(receipt(), [check(SECRETS)], made, HOST, say)
    for text in (json.dumps(found, indent=1), shared_report.html(found)):
        assert re.search(_verify._REPORT_HEAD, text.encode()[:4096], re.MULTILINE), "it may not be written again"
        assert [word for word in WORDS if word in text] == []
    assert found["versions"] == {"nvidia-driver": "580.65.06"}
    assert found["system"] == "ubuntu 24.04, release 6.8.0, A processor"


def test_what_names_nobody_stays() -> None:
    say = redaction.masker(["/home/erika"], ["erika", "pc"])
    text = "models/erikas.onnx and 127.0.0.1:7860 with torch 2.7.1, pcm audio, /usr/lib/x.so and https://pypi.example/x"
    assert say(text) == text
    text = "check the network, the proxy and HF_ENDPOINT; HF_HUB_ENABLE_HF_TRANSFER; File file_download.py in hf_hub_download"
    assert say(text) == text
    assert say("at /home/erika/x, (/home/erika) on pc") == "at ~/x, (~) on ~"


THREE = [check(level=level) for level in ("loads", "starts", "computes")]


@pytest.mark.parametrize(
    ("results", "verdict", "expected"),
    [
        (THREE, Verdict.WORKS, (True, True, True)),
        ([THREE[0], THREE[2]], Verdict.WORKS, (True, False, True)),
        ([*THREE, check(passed=False)], Verdict.WORKS, (False, True, True)),
        (THREE, Verdict.UNAVAILABLE, (True, True, False)),
        ([], Verdict.WORKS, (False, False, False)),
    ],
)
def test_no_level_is_claimed_that_was_not_proved(
    results: list[CheckResult], verdict: Verdict, expected: tuple[bool, bool, bool]
) -> None:
    found = shared_report.levels(results, report(proof(verdict=verdict)))
    assert (found["loads"], found["starts"], found["computes"]) == expected


def test_kernel_of_the_processor_proves_nothing_of_a_card() -> None:
    found = shared_report.levels([THREE[2]], report(proof(device="CPUExecutionProvider")))
    assert not found["computes"]


class Reader(html.parser.HTMLParser):
    """Keeps the tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_page_is_whole_and_asks_nobody(say: Callable[[str], str]) -> None:
    wrong = proof(kernel="stft", error=0.3, verdict=Verdict.WRONG)
    made = report(proof(error=1e-7), wrong, proof(kernel="<b>", error=None))
    text = shared_report.html(shared_report.data(receipt(), [check("<script>")], made, HOST, say))
    tags = Reader(text).tags
    names = [name for name, _ in tags]
    assert not {"script", "link", "img", "iframe", "b"} & set(names)
    assert not [attributes for _, attributes in tags if {"src", "href"} & attributes.keys()]
    assert names.count("rect") == 2  # a kernel without an error has no bar
    assert "&lt;script&gt;" in text
