"""patchlock: patch, lock, install and verify AI applications on the hardware a person really has."""

__version__ = "0.2.0"
