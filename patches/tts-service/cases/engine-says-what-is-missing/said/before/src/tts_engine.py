class TTSEngine:
    async def synthesize(self, text):
        if not self._initialized:
            raise RuntimeError("TTS engine not initialized. Call initialize() first.")
        return text
