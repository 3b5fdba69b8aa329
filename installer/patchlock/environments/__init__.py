"""Virtual environments: made, filled from a lock, built for, laid over, guarded, and compared with what was installed.

In: a lock and the wheels that it names. Out: a generation, or what is wrong with it. Imports the rooms from `model`
to `locks`.
"""
