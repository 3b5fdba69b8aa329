"""On "cuda", unless told otherwise."""
DEVICE = "cuda"
