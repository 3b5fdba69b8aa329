import onnxruntime as ort


def providers():
    return ort.get_available_providers()
