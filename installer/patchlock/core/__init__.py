"""The operating system: processes, files, locks between processes, HTTP, archives, memory, and driving uv.

In: commands, paths, addresses. Out: what they gave, or an error that says what to do. May import `model` alone; knows
nothing of apps, patches or lockfiles.
"""
