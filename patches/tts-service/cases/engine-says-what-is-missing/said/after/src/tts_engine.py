class TTSEngine:
    async def synthesize(self, text):
        if not self._initialized:
            raise RuntimeError(f"no voice is loaded from {self.model_path} and {self.config_path}: run `patchlock models tts-service --fetch`, or put a Piper voice there, then start the service again")
        return text
