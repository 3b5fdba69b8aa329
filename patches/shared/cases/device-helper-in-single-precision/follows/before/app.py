import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--compute-type", default="float16")


def load(path, device="cpu", dtype=torch.float16):
    model = torch.load(path).to(device, dtype)
    return model.half().eval()
