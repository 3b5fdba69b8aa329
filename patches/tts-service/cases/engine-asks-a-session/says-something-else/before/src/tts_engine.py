class TTSEngine:
    def initialize(self):
        gpu_status = "GPU" if self.use_cuda and self.device else "CPU"
