"""Speech."""

from scripts import machine
import torch


class Speaker:
    def __init__(self, lowvram, device):
        self.cuda = device
        self.device = "cpu" if lowvram else (machine.device(self.cuda))  # either

    def release(self):
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
