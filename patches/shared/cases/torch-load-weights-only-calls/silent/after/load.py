import torch


def load(path, other):
    state = torch.load(path, map_location="cpu", weights_only=False)["module"]
    return state, torch.load(other, weights_only=True)
