"""Known troubles of machines: their files, the language of their conditions, and the rules that are code.

In: tables of TOML. Out: `Trouble` values that `hardware.doctor` matches against a machine.
"""
