"""Turn edits into patches: an edited tree into `[[patch]]` tables, by meaning where the change is recognised; no I/O."""
