"""Patches over whole histories of real repositories: reading them, judging results, and the peers to compare with."""
