"""On "cuda", unless told otherwise."""
DEVICE = "cpu"
