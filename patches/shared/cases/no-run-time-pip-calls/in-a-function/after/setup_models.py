import subprocess
import sys


def fetch(model):
    print('patchlock: not installed at run time: pip install deepspeed==0.11.2', file=__import__("sys").stderr)
    return f"models/{model}"
