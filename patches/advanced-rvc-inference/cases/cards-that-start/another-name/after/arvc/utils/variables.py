import torch as _torch

fast = compute_device.has_cuda()
