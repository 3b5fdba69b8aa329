import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="mps")
device = "mps"


def load(path, rank):
    (torch.cuda.set_device(rank) if torch.cuda.is_available() else None)
    return torch.load(path, map_location="mps").to("mps", non_blocking=True)
