class TTSEngine:
    def initialize(self):
        if self.use_cuda:
            try:
                import onnxruntime as ort
                providers = ort.InferenceSession(str(self.model_path)).get_providers()
            except Exception:
                self.use_cuda = False
