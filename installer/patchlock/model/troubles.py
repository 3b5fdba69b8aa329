"""What a known trouble is: the signs that it shows on a machine, and what cures it; frozen values.

Source: the shape of the catalogue in AMD's rocm-cli (https://github.com/ROCm/rocm-cli, f57c95f2),
`crates/rocm-core/src/diagnose.rs`; its scores are three words here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from packaging.utils import NormalizedName

from patchlock.model.devices import KnownDevice, UnknownDevice
from patchlock.model.hosts import Recording
from patchlock.model.policy import Family
from patchlock.model.table_fields import Key, OneOf

Confidence = Literal["possible", "likely", "certain"]
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
"""From weak to strong."""
Shell = Literal["sh", "powershell"]
SHELLS: tuple[Shell, ...] = get_args(Shell)
NEEDS: Mapping[str, str] = {
    "sudo": "root rights",
    "administrator": "PowerShell as administrator",
    "reboot": "a restart",
    "new login": "a new login",
    "new terminal": "a new terminal",
    "new container": "a new container",
    "a person": "a few clicks from you",
}
"""What a remedy can ask for → what that means."""


@dataclass(frozen=True, kw_only=True)
class Observations:
    """All that signs are looked for in."""

    recording: Recording
    said: str
    """The lines that programs printed, as one text that is plain (`printed_text`)."""
    devices: tuple[KnownDevice | UnknownDevice, ...]
    families: tuple[Family, ...] = ()
    """Which versions of binary distributions fit together."""
    is_planned: bool = False
    """Whether the packages are those that a profile would install, and none of them is there yet."""

    def version(self, name: NormalizedName) -> str:
        """Give the version of a distribution of the environment; "" where it is not there."""
        return self.recording.packages.get(name, "")


Test = Callable[[Observations], str | None]
"""Says what was seen, in words; "" where it holds and is no evidence by itself; None where it does not hold."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Tests that must hold together."""

    tests: tuple[Test, ...] = ()
    words: tuple[re.Pattern[str], ...] = ()
    """What one of them looks for in a line that a program printed."""

    def seen(self, facts: Observations) -> tuple[str, ...] | None:
        """Say what was seen of it, in words; None where it does not hold."""
        found = []
        for test in self.tests:
            if (words := test(facts)) is None:
                return None
            found.append(words)
        return tuple(words for words in found if words)


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One thing that speaks for a trouble."""

    confidence: Annotated[Confidence, OneOf('there is no confidence "{}"', CONFIDENCES)]
    """How much, alone."""
    is_said: bool
    """Whether it is words that a program printed."""
    is_ambiguous: Annotated[bool, Key("ambiguous")] = False
    """Whether programs say the same of cards of other makers."""
    condition: Condition


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What to do, and how to see that it helped."""

    do: str
    """A sentence."""
    where: Condition
    """On which machines."""
    shell: Shell
    commands: tuple[str, ...]
    """To paste, in this order; `{app}` and `{python}` stand for the app and for its environment's Python."""
    needs: Annotated[tuple[str, ...], OneOf('there is no need "{}"', NEEDS)] = ()
    """Of `NEEDS`."""
    proof: str
    """A command that only reads, and shows that the trouble is gone."""
    proof_shell: Shell

    @property
    def told(self) -> str:
        """Say it as the end of a sentence, with its commands."""
        commands = "; ".join(f"`{command}`" for command in self.commands)
        return f"{self.do[:1].lower()}{self.do[1:].rstrip('.')}" + (f": {commands}" if commands else "")


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """One entry of the catalogue."""

    name: str
    title: str
    """What is wrong, a clause."""
    why: str
    """What happens and why, in a few sentences."""
    sources: tuple[str, ...]
    """URLs."""
    before_install: bool
    """Whether `plan` and `install` tell it, too, of the machine and the packages that the environment will have."""
    vendors: tuple[str, ...] = ()
    """Of whose cards alone it is, by PCI vendor; empty: of any, or of none."""
    where: Condition
    """Must hold, else no sign counts."""
    unless: tuple[Condition, ...]
    """Where one of them holds, it is not this."""
    signs: tuple[Sign, ...]
    """One is enough."""
    remedies: tuple[Remedy, ...]
