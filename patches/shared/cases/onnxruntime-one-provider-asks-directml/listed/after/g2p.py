from onnxruntime import InferenceSession


def load(path):
    return InferenceSession(
        path,
        providers=["DmlExecutionProvider", "CPUExecutionProvider"],  # the first that is there
    )
