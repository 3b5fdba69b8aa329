"""A Windows machine."""
