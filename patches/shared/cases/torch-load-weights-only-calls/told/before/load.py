import torch

state = torch.load("a.pt", weights_only=True)
