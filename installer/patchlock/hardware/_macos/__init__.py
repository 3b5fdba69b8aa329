"""Observe a Mac."""
