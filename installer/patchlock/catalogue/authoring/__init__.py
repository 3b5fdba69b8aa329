"""Turn an edited tree into `[[patch]]` tables, each by an op where the edit is recognised, else as a diff; no I/O."""
