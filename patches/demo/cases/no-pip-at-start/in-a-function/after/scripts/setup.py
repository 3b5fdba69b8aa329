import subprocess
import sys


def prepare(folder):
    folder.mkdir(exist_ok=True)
    code = 0
    subprocess.check_call(["git", "--version"])
    return code
