import onnxruntime

has_card = "CUDAExecutionProvider" in onnxruntime.get_available_providers()
