"""An engine."""

import io


class Engine:
    def speak(self, text, scale):
        for data in self.model.synthesize_stream_raw(
            text,
            length_scale=scale / 2,
            noise_scale=self.noise_scale
        ):
            yield data
