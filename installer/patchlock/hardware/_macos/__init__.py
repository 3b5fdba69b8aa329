"""A Mac."""
