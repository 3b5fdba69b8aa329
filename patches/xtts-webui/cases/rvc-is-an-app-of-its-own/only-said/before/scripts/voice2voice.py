# The environment rvc_venv is made elsewhere.
def infer_rvc(input_path):
    raise NotImplementedError("venv/rvc_venv/scripts/python is not here")
