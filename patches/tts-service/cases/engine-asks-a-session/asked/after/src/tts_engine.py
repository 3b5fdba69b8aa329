import onnxruntime as ort


class TTSEngine:
    def initialize(self):
        if "CUDAExecutionProvider" in ort.InferenceSession(str(self.model_path), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]).get_providers():
            self.device = "cuda"
