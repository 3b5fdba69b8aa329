from scripts import int8_on_cpu
class TTSWrapper:
    def load_local_model(self, config):
        self.model.load_checkpoint(config)
        self.model = int8_on_cpu.quantized(self.model, self.device)
        self.model.to(self.device)
