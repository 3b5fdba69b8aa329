DEVICE = "mps"
