import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--compute-type", default="float32")


def load(path, device="cpu", dtype=torch.float32):
    model = torch.load(path).to(device, dtype)
    return model.float().eval()
