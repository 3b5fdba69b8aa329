"""Builds on the user's machine: sdists of a lock, and extensions in an app's own tree.

In: a lock, its recipes and the pinned build requirements. Out: wheels with a record of what they were made from, and
files in the working tree. A build is foreign code, and runs in what `_sandbox` gives it.
"""
