"""The patch engine: ops, postconditions, and what becomes of each patch in each file. Pure: reads no file.

In: the bytes of sources, and patches. Out: changed files, and one outcome for each patch and file. May import `model`
alone. `ops` and `postconditions` share no code, so that a mistake of the one cannot hide in the other.
"""
