import onnxruntime as ort


class TTSEngine:
    def initialize(self):
        if "CUDAExecutionProvider" in ort.get_available_providers():
            self.device = "cuda"
