"""A profile: one kind of machine that is supported, as its file says; a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.model.backends import BACK_ENDS
from patchlock.model.checks import Check, OnnxSessionCheck
from patchlock.model.fits import Fit, Platform, Successor
from patchlock.model.lock_rules import LockRules
from patchlock.model.needs import Need
from patchlock.model.origins import Origin
from patchlock.model.overlays import Overlay
from patchlock.model.recipes import Recipe
from patchlock.model.table_fields import Known, OneOf


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A kind of machine that we support."""

    name: str
    title: str
    source: str
    python: Version
    """Major and minor only."""
    platforms: tuple[Platform, ...]
    specificity: int
    arch: str = ""
    """What the accelerator's compiled code is for: `sm_110`, `gfx1201`; "" where no wheel has to have any."""
    fits: tuple[Fit, ...] = ()
    """What it demands of a machine, one of them; empty: every machine of its platforms."""
    trials: tuple[Fit, ...] = ()
    """Machines that it may run on, though nobody has tried."""
    successor: Successor | None = None
    """A profile that is better on the same machines."""
    back_end: Annotated[str, OneOf('there is no back end "{}"', BACK_ENDS)] = "cpu"
    """What torch computes with, a key of `backends.BACK_ENDS`."""
    indexes: Annotated[tuple[str, ...], Known('there is no recorded index "{}"', "indexes")] = ()
    from_pypi: tuple[NormalizedName, ...] = ()
    """Distributions that are taken from PyPI although the recorded indexes have some files of them."""
    rules: LockRules
    recipes: tuple[Recipe, ...] = ()
    environment: Mapping[str, str]
    """Variables for every process that runs in the environment."""
    overlays: tuple[Overlay, ...] = ()
    checks: tuple[Check, ...]
    needs: tuple[Need, ...] = ()
    """What such a machine must have beyond Python packages."""
    origin: Origin

    @property
    def computes_on(self) -> str:
        """Name what computes: what torch does, and the providers of ONNX Runtime that a check demands beside it."""
        asked = [one.provider for one in self.checks if isinstance(one, OnnxSessionCheck)]
        torch = "the CPU" if self.back_end == "cpu" else self.back_end
        return torch + (f", with ONNX models on {' and '.join(asked)}" if asked else "")
