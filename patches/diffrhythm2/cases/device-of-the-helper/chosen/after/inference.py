import compute_device
import torch

device = compute_device.chosen()
