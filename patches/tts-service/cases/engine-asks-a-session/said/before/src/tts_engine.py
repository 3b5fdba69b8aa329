class TTSEngine:
    def initialize(self):
        self.model = PiperVoice.load(str(self.model_path), use_cuda=self.use_cuda)
        gpu_status = "GPU" if self.use_cuda else "CPU"
        logger.info(f"TTS model loaded successfully on {gpu_status}")
