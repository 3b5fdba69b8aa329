import torch


class Config:
    def get_default_device(self):
        if compute_device.chosen(with_mps=True).type == "cuda":
            return "cuda:0"
        return "cpu"
