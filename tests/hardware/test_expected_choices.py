"""What each recorded machine has to be answered, told before the code that answers: `expected_choices.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import host_snapshots
import pytest

EXPECTED: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "expected_choices.toml").read_text("utf-8")
)

NOT_YET = ["apple-m1-max", "apple-m2-max", "apple-m3-pro", "apple-m4", "arc-140v-windows", "arc-a380-windows", "arc-a770-linux", "arc-a770-windows", "arc-b580-linux-6.8", "arc-b580-raspberry-pi-5", "arc-b580-ubuntu-26.04", "arc-b580-windows", "b200-eight", "dgx-spark", "dgx-spark-cu130", "dgx-spark-torch-cpu", "dgx-spark-torch-cu129", "gh200", "gt710-container", "gtx1050-and-hd630-windows", "gtx1050ti-windows-10", "gtx1060-windows", "gtx1660ti-laptop-windows", "gtx960m-windows", "krackan-860m-linux", "meteor-lake-ubuntu-22.04", "meteor-lake-windows", "orin-container-server-wheel", "orin-jetpack-6.0-xtts", "orin-jetpack-6.2", "orin-jetpack-7.2", "phoenix-780m-windows", "radeon-vii-windows-zluda", "rtx-pro-6000-ubuntu", "rtx3050-and-rx7600xt-windows", "rtx3050ti-laptop-windows", "rtx3070-windows-25h2", "rtx3070ti-laptop-and-iris-windows", "rtx4050-windows", "rtx4080-windows-cpu-only", "rtx4090-and-3090-windows", "rtx5050-windows", "rtx5060-laptop-and-780m-windows", "rtx5060ti-windows-driver-595", "rtx5080-laptop-windows", "rtx5080-windows-driver-591", "rtx5090-590-driver", "rtx5090-pair-cu124", "rtx5090-pair-linux", "rtx5090-windows-rvc", "rtx5090d-conda-cu126", "rx470-linux", "rx470-windows-10", "rx5500m-linux-renoir-igpu", "rx5500xt-windows", "rx550x-and-uhd620-windows", "rx560-windows-zluda", "rx5700-windows-zluda-no-hip6", "rx580-linux", "rx580-windows-11", "rx580-wsl2", "rx6500xt-and-rx5700xt-windows", "rx6600-windows", "rx6600-windows-10", "rx6650m-laptop-windows", "rx6700-windows", "rx6800-windows-smart-app-control", "rx6800xt-windows-cpu-only", "rx7900xtx-windows-10", "rx7900xtx-windows-adrenalin-25.3", "rx9070-and-gtx1060-linux", "rx9070xt-windows-zluda", "steam-deck-podman", "strix-890m-kernel-6.16", "strix-890m-windows", "strix-halo-linux", "strix-halo-windows", "strix-halo-windows-smart-app-control", "tesla-p40-and-gt1010-windows", "vega64-windows", "xavier-nx-jetpack-5.1"]
"""Machines whose answer is still another one; the code that answers takes this list away."""


def test_every_recorded_machine_has_an_answer() -> None:
    assert sorted(EXPECTED) == host_snapshots.names()
    assert all(set(answer) <= {"profile", "device", "says"} for answer in EXPECTED.values())


def test_there_are_as_many_machines_as_we_say() -> None:
    assert len(EXPECTED) >= 160


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.xfail(strict=True) if name in NOT_YET else ()) for name in EXPECTED],
)
def test_machine_gets_the_answer_that_was_told_before(name: str) -> None:
    answer = EXPECTED[name]
    profile, device, said = host_snapshots.answer(name)
    assert (profile, device) == (answer["profile"], answer.get("device", ""))
    for part in answer.get("says", ()):
        assert any(part in sentence for sentence in said), part
    assert bool(said) == bool(answer.get("says"))
