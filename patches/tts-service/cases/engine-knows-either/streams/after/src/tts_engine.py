"""An engine."""
from . import piper_stream

import io


class Engine:
    def speak(self, text, scale):
        for data in piper_stream.raw(self.model, text, length_scale=scale / 2, noise_scale=self.noise_scale):
            yield data
