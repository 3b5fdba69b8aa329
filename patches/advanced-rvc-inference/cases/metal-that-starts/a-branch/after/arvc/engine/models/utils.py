import torch

if compute_device.has_mps(): torch.mps.empty_cache()
