class TTSEngine:
    def initialize(self):
        self.model = PiperVoice.load(str(self.model_path), use_cuda=self.use_cuda)
        gpu_status = "GPU" if "CUDAExecutionProvider" in self.model.session.get_providers() else "CPU"
        logger.info(f"TTS model loaded successfully on {gpu_status}")
