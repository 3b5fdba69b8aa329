"""The catalogue's files: apps, profiles, devices, rules and troubles; read, checked and proposed.

In: TOML. Out: `App`, `Profile` and their kin, or every mistake of a file at once; and the other way round, TOML for
patches and apps that are proposed. A new key is a field of its type in `model` (see `model.table_fields`), and
`table_reader` reads it; what crosses keys is checked by the reader of the file. Imports `model`, `core` and `patches`.
"""
