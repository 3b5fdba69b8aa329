class TTSWrapper:
    def load_local_model(self, config):
        loaded = self.model.load_checkpoint(config)
        return loaded
