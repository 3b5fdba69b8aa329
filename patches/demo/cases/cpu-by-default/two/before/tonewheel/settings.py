DEVICE = "cuda"
FALLBACK = "cuda"
