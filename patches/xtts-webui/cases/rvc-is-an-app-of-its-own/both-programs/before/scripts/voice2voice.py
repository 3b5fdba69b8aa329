import subprocess


def infer_rvc(input_path):
    cmd = ['venv/rvc_venv/scripts/python', "-m", 'rvc_python', '--input', input_path]
    subprocess.run(cmd)


def infer_openvoice(input_path):
    subprocess.run(['venv/rvc_venv/scripts/python', '-m', 'openvoice_cli', "single", '-i', input_path])
