"""With which variables an installed app is started: those of its checks, the device that is forced, what it needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from patchlock.environments import generations, venv
from patchlock.hardware import resource_detection, stored_choice
from patchlock.locks.lock_request import Request
from patchlock.model.backends import HIDDEN_DEVICES
from patchlock.model.errors import UsageError
from patchlock.model.needs import needs_for
from patchlock.verify.checks import CheckContext

DEVICE, PROCESSOR = "PATCHLOCK_DEVICE", "cpu"
"""The variable that forces a device in every app, and its one value that is no number of a card."""
_HIP = "HIP_VISIBLE_DEVICES"
_SELECTS: Mapping[str, str] = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": _HIP, "xpu": "ZE_AFFINITY_MASK", "zluda": _HIP}
"""Back end → the variable that shows one card alone; for DirectML, `patches/shared/compute-device.toml` reads ours."""


def check_context(request: Request, folder: Path) -> CheckContext:
    """Say where the app runs: its environment, its folder, its variables."""
    app = request.app
    return CheckContext(
        environment=folder,
        folder=request.installation.source / app.directory,
        variables=venv.launch_variables(
            folder,
            request.profile.environment,
            stored_choice.variables(request.installation.folder)
            | dict(app.launch.environment)
            | generations.variables(
                request.home, request.profile.name, app.launch.companion_apps, os=request.platform.os
            ),
        ),
    )


def place(request: Request, generation: Path, environ: Mapping[str, str]) -> CheckContext:
    """Say where an app is started, and with which variables.

    Args:
        request: the pair.
        generation: the one in use.
        environ: of the user; what he has set himself wins.

    Raises:
        UsageError: a device is forced that cannot be meant.
    """
    found = check_context(request, generation)
    needed = {name: value for name, value in _needed(request).items() if name not in environ}
    forced = forced_device(environ.get(DEVICE, ""), request.profile.back_end)
    return dataclasses.replace(found, variables={**found.variables, **needed, **forced})


def forced_device(wanted: str, back_end: str) -> dict[str, str]:
    """Give the variables that force a device.

    Args:
        wanted: `cpu`, the number of a card, or "" for none.
        back_end: of the profile.

    Raises:
        UsageError: it is something else.
    """
    if not wanted:
        return {}
    if wanted == PROCESSOR:
        return dict(HIDDEN_DEVICES)
    if not (wanted.isascii() and wanted.isdigit()):
        raise UsageError(f'{DEVICE} is "{wanted}", and must be `{PROCESSOR}` or the number of a card, as `0`')
    if back_end == PROCESSOR:
        raise UsageError(
            f"{DEVICE} is {wanted}, but this profile runs on the CPU only",
            remedy="install the app on a card's profile, which `patchlock detect` names, or unset the variable",
        )
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if back_end == "cuda" else {}
    return order | ({_SELECTS[back_end]: wanted} if back_end in _SELECTS else {})


def _needed(request: Request) -> dict[str, str]:
    """Say in variables where what an app needs was found, for libraries that do not look there."""
    pair = (request.profile.name, request.platform.name)
    resources = {need.name: request.catalogue.resource(need.name) for need in needs_for(request.app.needs, *pair)}
    found = {
        one.variable: resource_detection.detect(one, request.platform.os, ask_version=False).where
        for one in resources.values()
        if one.variable
    }
    return {variable: where for variable, where in found.items() if where}
