"""The catalogue's files: apps, profiles, devices, rules, troubles; read, checked, and drafted.

In: TOML. Out: `App`, `Profile` and other values, or every mistake of a file at once. In the other direction: patches
and apps that are proposed, as TOML. A new key is a field of its type in `model` (see `model.table_fields`), and
`table_reader` reads it; the reader of the file checks what crosses keys. May import `model`, `core` and `patches`.
"""
