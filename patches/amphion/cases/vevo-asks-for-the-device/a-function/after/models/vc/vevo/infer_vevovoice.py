import torch


def load():
    device = compute_device.chosen(with_directml=False)
    return device
