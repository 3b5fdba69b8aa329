import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")


def load(path):
    torch.cuda.set_device(0)
    return torch.load(path, map_location="cuda:0").cuda()
