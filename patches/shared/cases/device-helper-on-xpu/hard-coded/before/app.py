import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
device = "cuda" if torch.cuda.is_available() else "cpu"


def load(path, rank):
    torch.cuda.set_device(rank)
    return torch.load(path, map_location="cuda:0").cuda(rank, non_blocking=True)
