"""Programs that are copied into each environment and run by its Python: the gate, and what loads overlays.

They import nothing of patchlock.
"""
