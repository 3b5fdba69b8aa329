"""The vocabulary of patches: every op that a `[[patch]]` table may name, listed by hand."""

from __future__ import annotations

from patchlock.model import Op
from patchlock.vocabulary import Vocabulary

OPS: Vocabulary[Op] = Vocabulary(
    __name__,
    {
        "requirements": {
            "set-requirement": "SetRequirement",
            "drop-requirement": "DropRequirement",
            "add-requirement": "AddRequirement",
            "rename-requirement": "RenameRequirement",
        },
        "structured": {"set-key": "SetKey", "delete-key": "DeleteKey"},
        "optional_import": {"optional-import": "OptionalImport"},
        "python": {"neutralise-call": "NeutraliseCall", "replace-expression": "ReplaceExpression"},
        "arguments": {"set-argument": "SetArgument"},
        "codemod": {"codemod": "Codemod"},
        "entry": {"disable-function": "DisableFunction", "guard-entry": "GuardEntry"},
        "insert_statement": {"insert-statement": "InsertStatement"},
        "device_literals": {"device-literals": "DeviceLiterals"},
        "run_time_pip": {"run-time-pip": "RunTimePip"},
        "text": {"replace-text": "ReplaceText"},
        "diffs": {"unified-diff": "UnifiedDiff", "add-file": "AddFile"},
    },
)
"""Name in the catalogue → dataclass whose fields are the op's keys. See docs/add-an-op.md."""

PYTHON_OPS = frozenset(
    {
        *("optional-import", "neutralise-call", "replace-expression", "set-argument", "disable-function"),
        *("guard-entry", "insert-statement", "device-literals", "run-time-pip"),
    }
)
"""The ops on Python code; of a notebook they are given the code alone."""
