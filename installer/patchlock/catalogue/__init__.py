"""The catalogue's files: apps, profiles, devices, rules and troubles; read, checked and proposed.

In: TOML. Out: `App`, `Profile` and their kin, or every mistake of a file at once; and the other way round, TOML for
patches and apps that are proposed. Imports `model`, `core` and `patches`.
"""
