import onnxruntime


def health(engine):
    gpu = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
    return {"gpu_available": gpu}
