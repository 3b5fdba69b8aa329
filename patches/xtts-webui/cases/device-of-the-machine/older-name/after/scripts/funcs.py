from scripts import machine
import torch


def resemble_enhance_older(path):
    device = machine.device()
    return path, device
