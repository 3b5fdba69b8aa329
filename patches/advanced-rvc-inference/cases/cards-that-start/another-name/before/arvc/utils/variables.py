import torch as _torch

fast = _torch.cuda.is_available()
