import torch

device = compute_device.chosen(with_directml=False)
