import torch


class Config:
    def get_default_device(self):
        if torch.cuda.is_available():
            return "cuda:0"
        return "cpu"
