"""Locks: what is asked for, resolving it with uv, judging the answer, explaining conflicts, and other shapes of a lock.

In: a `Request`, which is one app on one profile and platform. Out: a lockfile, or why there can be none. Installs
nothing and runs no build. May import the rooms from `model` to `distributions`.
"""
