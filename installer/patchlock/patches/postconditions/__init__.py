"""The postconditions: every check that a `[[patch.ensure]]` may name, listed by hand.

In: the bytes of one patched file. Out: what does not hold in it. Pure; shares no code with `ops`.
"""

from __future__ import annotations

from patchlock.model.patch import Ensure
from patchlock.model.vocabulary import Vocabulary

ENSURES: Vocabulary[Ensure] = Vocabulary(
    __name__,
    {
        "_requirements": {"requirement": "HasRequirement", "no-requirement": "NoRequirement"},
        "_structured": {"key": "HasKey", "no-key": "NoKey"},
        "_python": {
            "imports-without": "ImportsWithout",
            "no-call": "NoCall",
            "calls": "Calls",
            "no-string": "NoString",
        },
        "_behaviour": {
            "argument": "Argument",
            "disabled": "Disabled",
            "guarded": "Guarded",
            "has-expression": "HasExpression",
            "has-statement": "HasStatement",
        },
        "_run_time_pip": {"no-run-time-pip": "NoRunTimePip"},
        "_device": {"without-cuda": "WithoutCuda"},
        "_text": {"contains": "Contains", "lacks": "Lacks"},
        "_files": {"file-is": "FileIs"},
    },
)
"""Name in the catalogue → dataclass whose fields are the check's keys."""
