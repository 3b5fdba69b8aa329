from onnxruntime import InferenceSession


def load(path):
    return InferenceSession(
        path,
        providers=["CPUExecutionProvider"],  # the first that is there
    )
