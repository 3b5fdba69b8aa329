import subprocess
import sys


def prepare(folder):
    folder.mkdir(exist_ok=True)
    code = subprocess.check_call([sys.executable, "-m", "pip", "install", "--upgrade", "deepspeed"])
    subprocess.check_call(["git", "--version"])
    return code
