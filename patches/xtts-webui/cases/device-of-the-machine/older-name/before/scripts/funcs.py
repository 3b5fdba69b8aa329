import torch


def resemble_enhance_older(path):
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    return path, device
