from onnxruntime import InferenceSession


def load(path):
    return InferenceSession(
        path,
        providers=[
            "CUDAExecutionProvider",
            "CPUExecutionProvider",
        ],  # the first that is there
    )
