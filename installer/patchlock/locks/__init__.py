"""Locks: what is asked for, resolving it with uv, judging the answer, explaining conflicts, and other shapes of a lock.

In: patched requirements and a profile. Out: a lockfile, or why there can be none. Installs nothing. Imports the rooms
from `model` to `distributions`.
"""
