"""What is strict about `[[fit]]` and `[successor]`."""

from __future__ import annotations

import tomllib

from patchlock.catalogue import _fits
from patchlock.catalogue.table_reader import Report, Table
from patchlock.model.fits import ProfileSummary


def _read(text: str) -> tuple[ProfileSummary, list[str]]:
    report = Report(file="profiles/x.toml", text=text)
    found = _fits.outline(Table(tomllib.loads(text), report), "x")
    return found, [str(problem).removeprefix("profiles/x.toml:") for problem in report.problems]


HEAD = """\
[profile]
title = "t"
platforms = ["linux-x86_64"]
specificity = 7
"""


def test_all_keys_are_read() -> None:
    found, problems = _read(
        HEAD
        + """
[[fit]]
vendor = "1002"
archs = ["gfx1201"]
families = ["rdna4"]
wsl = false
tegra = true
nodes = ["/dev/kfd"]
libraries = ["librocdxg.so"]
selects = "HIP_VISIBLE_DEVICES"
why = "w"
source = "s"

[[fit.requires]]
name = "nvidia-driver"
versions = ">=1"
source = "t"

[[fit.requires]]
name = "kernel"
versions = ">=6.12"
source = "u"

[successor]
name = "later"
why = "y"
source = "z"
"""
    )
    assert problems == []
    [fit] = found.fits
    assert (fit.vendor, fit.archs, fit.families, fit.wsl, fit.tegra) == ("1002", ("gfx1201",), ("rdna4",), False, True)
    assert [(one.name, str(one.versions), one.source) for one in fit.requires] == [
        ("nvidia-driver", ">=1", "t"),
        ("kernel", ">=6.12", "u"),
    ]
    assert fit.nodes == ("/dev/kfd",)
    assert (fit.libraries, fit.selects, fit.why) == (("librocdxg.so",), "HIP_VISIBLE_DEVICES", "w")
    assert found.successor is not None
    assert (found.successor.name, found.specificity) == ("later", 7)


def test_what_is_left_out_demands_nothing() -> None:
    [fit] = _read(HEAD + '[[fit]]\nvendor = "10de"\narchs = ["sm_89"]\nwhy = "w"\nsource = "s"\n')[0].fits
    assert (fit.wsl, fit.tegra, fit.requires, fit.nodes, fit.selects) == (None, None, (), (), "")


def test_all_mistakes_are_told_at_once() -> None:
    _, problems = _read(
        HEAD
        + """
[[fit]]
vendor = "AMD"
wsl = "no"
nodes = ["kfd"]
selects = "HIP_VISIBLE"
archs = ["rdna4"]
source = "s"
arch = "x"

[[fit.requires]]
name = "kernl"
versions = "new"

[[fit]]
vendor = "1002"
families = ["rdna44"]
why = "w"
source = "s"

[[fit]]
vendor = "1002"
why = "w"
source = "s"

[successor]
name = "later"
"""
    )
    assert problems == [
        '7: fit[0].vendor: there is no vendor "AMD"; known: 1002, 106b, 10de, 8086',
        '11: fit[0].archs: "rdna4" is not an arch such as "gfx1201" or "sm_89"',
        "8: fit[0].wsl: it is a text, and must be true or false",
        '16: fit[0].requires[0].name: there is no version "kernl"; did you mean "kernel"?',
        '17: fit[0].requires[0].versions: "new" is not a bound of a version such as ">=6.12" or ">=6.12,<7"',
        '15: fit[0].requires[0].source: the key "source" is missing; write source = "a text"',
        '9: fit[0].nodes: "kfd" is not a device node such as "/dev/kfd"',
        '10: fit[0].selects: there is no such variable as "HIP_VISIBLE"; did you mean "HIP_VISIBLE_DEVICES"?',
        '6: fit[0].why: the key "why" is missing; write why = "a text"',
        '13: fit[0].arch: the key "arch" is unknown; did you mean "archs"?',
        '21: fit[1].families: there is no family "rdna44"; did you mean "rdna4"?',
        '25: fit[2]: it names neither archs nor families; write archs = ["…"]',
        '30: successor.why: the key "why" is missing; write why = "a text"',
        '30: successor.source: the key "source" is missing; write source = "a text"',
    ]


def test_trials_have_the_keys_of_fits_and_are_none() -> None:
    found, problems = _read(HEAD + '[[trial]]\nvendor = "10de"\narchs = ["sm_89"]\nwhy = "w"\nsource = "s"\nzzz = 1\n')
    assert (found.fits, [fit.archs for fit in found.trials]) == ((), [("sm_89",)])
    assert [problem.partition(";")[0] for problem in problems] == ['10: trial[0].zzz: the key "zzz" is unknown']
