"""The machine: observe it, match profiles against it, choose one, and name its known troubles.

In: this machine, or a recorded one. Out: a `Host`, a choice with its reasons, findings. Only reads; each question is
bounded in time, and one that fails is recorded. May import `model`, `core`, `patches` and `catalogue`.
"""
