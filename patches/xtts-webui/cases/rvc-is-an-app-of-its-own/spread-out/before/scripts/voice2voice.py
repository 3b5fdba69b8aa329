import subprocess


def infer_rvc(options):
    subprocess.run(["venv/rvc_venv/scripts/python", "-m", "rvc_python", *options])
