from scripts import machine
import subprocess


def infer_rvc(input_path):
    cmd = machine.rvc('--input', input_path)
    subprocess.run(cmd)


def infer_openvoice(input_path):
    subprocess.run([machine.side_python(), '-m', 'openvoice_cli', "single", '-i', input_path])
