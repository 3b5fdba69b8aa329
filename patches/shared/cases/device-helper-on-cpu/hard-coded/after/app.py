import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")


def load(path):
    (torch.cuda.set_device(0) if torch.cuda.is_available() else None)
    return torch.load(path, map_location="cpu").to("cpu")
