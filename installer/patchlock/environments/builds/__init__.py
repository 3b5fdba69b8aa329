"""Builds on the user's machine: sdists of a lock, and extensions in an app's own tree."""
