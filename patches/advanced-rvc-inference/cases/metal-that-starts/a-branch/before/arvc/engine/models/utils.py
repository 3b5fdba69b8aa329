import torch

if torch.backends.mps.is_available(): torch.mps.empty_cache()
