import torch

half = torch.cuda.is_available()
