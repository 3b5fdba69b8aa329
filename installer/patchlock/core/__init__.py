"""The operating system: processes, whole files, file locks, HTTP, archives, memory, and the driving of uv.

In: commands, paths, addresses. Out: what they gave, or an error with a way out. Imports `model` alone; knows nothing
of apps, patches or locks.
"""
