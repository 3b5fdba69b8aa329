import onnxruntime


def health(engine):
    gpu = "CUDAExecutionProvider" in engine.model.session.get_providers()
    return {"gpu_available": gpu}
