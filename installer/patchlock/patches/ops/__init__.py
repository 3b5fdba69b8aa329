"""The ops: every one that a `[[patch]]` table may name, listed by hand.

In: the text of one file. Out: edits, places that are right already, and refusals (`model.patch.Located`). Pure; shares
no code with `postconditions`.
"""

from __future__ import annotations

from patchlock.model.patch import Op
from patchlock.model.vocabulary import Vocabulary

OPS: Vocabulary[Op] = Vocabulary(
    __name__,
    {
        "requirements.ops": {
            "set-requirement": "SetRequirement",
            "drop-requirement": "DropRequirement",
            "add-requirement": "AddRequirement",
            "rename-requirement": "RenameRequirement",
        },
        "_structured.structured": {"set-key": "SetKey", "delete-key": "DeleteKey"},
        "optional_import._op": {"optional-import": "OptionalImport"},
        "_python": {"neutralise-call": "NeutraliseCall", "replace-expression": "ReplaceExpression"},
        "_arguments": {"set-argument": "SetArgument"},
        "codemod": {"codemod": "Codemod"},
        "_entry": {"disable-function": "DisableFunction", "guard-entry": "GuardEntry"},
        "_insert_statement": {"insert-statement": "InsertStatement"},
        "_device.op": {"device-literals": "DeviceLiterals"},
        "_run_time_pip.op": {"run-time-pip": "RunTimePip"},
        "_text": {"replace-text": "ReplaceText"},
        "_diffs": {"unified-diff": "UnifiedDiff", "add-file": "AddFile"},
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

REMOVING_OPS = frozenset({"drop-requirement", "delete-key"})
"""The ops that have done their work where they find nothing."""
