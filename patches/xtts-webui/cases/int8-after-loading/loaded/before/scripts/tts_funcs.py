class TTSWrapper:
    def load_local_model(self, config):
        self.model.load_checkpoint(config)
        self.model.to(self.device)
