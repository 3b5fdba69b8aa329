"""The machine: observe it, match profiles against it, choose one, and name its known troubles.

In: this machine, or a recorded one. Out: a `Host`, a choice with its reasons, findings. Read only, bounded in time,
never failing. Imports `model`, `core`, `patches` and `catalogue`.
"""
