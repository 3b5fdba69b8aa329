import subprocess
import sys


def fetch(model):
    subprocess.check_call([sys.executable, "-m", "pip", "install", "deepspeed==0.11.2"])
    return f"models/{model}"
