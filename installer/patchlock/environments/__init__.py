"""Virtual environments: make one, fill it from a lock, build for it, add overlays, guard it, inspect it.

In: a lock and the wheels that it names. Out: a generation, or what is wrong with it. May import the rooms from `model`
to `locks`.
"""
