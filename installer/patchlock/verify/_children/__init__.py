"""Programs that run in an app's environment, under its Python: kernels, imports, and what forks them.

They import nothing of patchlock.
"""
