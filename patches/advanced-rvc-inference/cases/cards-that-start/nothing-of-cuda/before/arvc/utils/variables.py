import torch

fast = torch.xpu.is_available()
