"""What must hold after patching: every check that an `ensure` may name, listed by hand; shares no code with ops."""

from __future__ import annotations

from patchlock.model import Ensure
from patchlock.vocabulary import Vocabulary

ENSURES: Vocabulary[Ensure] = Vocabulary(
    __name__,
    {
        "requirements": {"requirement": "HasRequirement", "no-requirement": "NoRequirement"},
        "structured": {"key": "HasKey", "no-key": "NoKey"},
        "python": {"imports-without": "ImportsWithout", "no-call": "NoCall", "calls": "Calls", "no-string": "NoString"},
        "behaviour": {
            "argument": "Argument",
            "disabled": "Disabled",
            "guarded": "Guarded",
            "has-statement": "HasStatement",
        },
        "run_time_pip": {"no-run-time-pip": "NoRunTimePip"},
        "device": {"without-cuda": "WithoutCuda"},
        "text": {"contains": "Contains", "lacks": "Lacks"},
        "files": {"file-is": "FileIs"},
    },
)
"""Name in the catalogue → dataclass whose fields are the check's keys."""
