import torch


def load():
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    return device
