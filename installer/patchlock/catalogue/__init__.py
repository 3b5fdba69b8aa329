"""The catalogue's files: apps, profiles, devices, rules, troubles; read, checked, and drafted.

In: TOML. Out: `App`, `Profile` and other values, or every mistake of a file at once. In the other direction: patches
and apps that are proposed, as TOML. May import `model`, `core` and `patches`.
"""
