"""The vocabulary of patches: every op that a `[[patch]]` table may name, listed by hand."""

from __future__ import annotations

from collections.abc import Mapping

from patchlock.model import Op
from patchlock.ops import (
    arguments,
    codemod,
    device_literals,
    diffs,
    entry,
    insert_statement,
    python,
    requirements,
    run_time_pip,
    structured,
    text,
)

OPS: Mapping[str, type[Op]] = {
    # requirements.py
    "set-requirement": requirements.SetRequirement,
    "drop-requirement": requirements.DropRequirement,
    "add-requirement": requirements.AddRequirement,
    "rename-requirement": requirements.RenameRequirement,
    # structured.py
    "set-key": structured.SetKey,
    "delete-key": structured.DeleteKey,
    # python.py
    "optional-import": python.OptionalImport,
    "neutralise-call": python.NeutraliseCall,
    "replace-expression": python.ReplaceExpression,
    # arguments.py, codemod.py, entry.py, insert_statement.py
    "set-argument": arguments.SetArgument,
    "codemod": codemod.Codemod,
    "disable-function": entry.DisableFunction,
    "guard-entry": entry.GuardEntry,
    "insert-statement": insert_statement.InsertStatement,
    # device_literals.py
    "device-literals": device_literals.DeviceLiterals,
    # run_time_pip.py
    "run-time-pip": run_time_pip.RunTimePip,
    # text.py
    "replace-text": text.ReplaceText,
    # diffs.py
    "unified-diff": diffs.UnifiedDiff,
    "add-file": diffs.AddFile,
}
"""Name in the catalogue → dataclass whose fields are the op's keys. See docs/add-an-op.md."""

PYTHON_OPS: tuple[type[Op], ...] = (
    python.OptionalImport,
    python.NeutraliseCall,
    python.ReplaceExpression,
    arguments.SetArgument,
    entry.DisableFunction,
    entry.GuardEntry,
    insert_statement.InsertStatement,
    device_literals.DeviceLiterals,
    run_time_pip.RunTimePip,
)
"""The ops on Python code; of a notebook they are given the code alone."""
