"""Speech."""

import torch


class Speaker:
    def __init__(self, lowvram, device):
        self.cuda = device
        self.device = "cpu" if lowvram else (self.cuda if torch.cuda.is_available() else "cpu")  # either

    def release(self):
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
