"""Ops on requirements, in every format that declares them."""
