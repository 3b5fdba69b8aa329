import torch

device = torch.device("cuda:0")
