"""Pairs of app and profile that the catalogue does not support; values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from patchlock.model.origins import Origin
from patchlock.model.platforms import PlatformNames
from patchlock.model.table_fields import Known


@dataclass(frozen=True, kw_only=True)
class RefusedPair:
    """A pair that is not supported, and why."""

    profile: Annotated[str, Known('there is no profile "{}"', "profiles")]
    platforms: PlatformNames = ()
    """Empty: all platforms of the profile."""
    why: str
    source: str
    origin: Origin
