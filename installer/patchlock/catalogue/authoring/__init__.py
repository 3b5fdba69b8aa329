"""Turn edits into patches: an edited tree into `[[patch]]` tables, by meaning where that can be; no I/O."""
