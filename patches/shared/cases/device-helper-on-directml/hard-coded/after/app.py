import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="privateuseone:0")
device = "privateuseone:0"


def load(path, rank):
    (torch.cuda.set_device(rank) if torch.cuda.is_available() else None)
    return torch.load(path, map_location="privateuseone:0").to("privateuseone:0", non_blocking=True)
