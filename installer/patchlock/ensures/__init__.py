"""What must hold after patching: every check that an `ensure` may name, listed by hand; shares no code with ops."""

from __future__ import annotations

from collections.abc import Mapping

from patchlock.ensures import behaviour, device, files, python, requirements, run_time_pip, structured, text
from patchlock.model import Ensure

ENSURES: Mapping[str, type[Ensure]] = {
    # requirements.py
    "requirement": requirements.HasRequirement,
    "no-requirement": requirements.NoRequirement,
    # structured.py
    "key": structured.HasKey,
    "no-key": structured.NoKey,
    # python.py
    "imports-without": python.ImportsWithout,
    "no-call": python.NoCall,
    "calls": python.Calls,
    "no-string": python.NoString,
    # behaviour.py
    "argument": behaviour.Argument,
    "disabled": behaviour.Disabled,
    "guarded": behaviour.Guarded,
    "has-statement": behaviour.HasStatement,
    # run_time_pip.py
    "no-run-time-pip": run_time_pip.NoRunTimePip,
    # device.py
    "without-cuda": device.WithoutCuda,
    # text.py
    "contains": text.Contains,
    "lacks": text.Lacks,
    # files.py
    "file-is": files.FileIs,
}
"""Name in the catalogue → dataclass whose fields are the check's keys."""
