"""The job of the miniature: a text that is hummed, with the model that it comes with."""

import tempfile
import wave
from pathlib import Path

import numpy as np
from tonewheel import files, score, settings
from tonewheel.synth import PROVIDERS, Synth


def hum(job):
    """A line of text as the WAV file that the app writes."""
    synth = Synth(settings.DEVICE)
    job.device, job.weights, job.bytes = PROVIDERS[settings.DEVICE], "the app's own", settings.MODEL.stat().st_size
    job.seconds = (2.5, 2.7)

    def run():
        with job.part("score"):
            controls = score.compose("hello from the tonewheel")
        with job.part("sound"):
            waveform, _ = synth.render(*controls)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "hummed.wav"
            files.write_wav(path, waveform)
            with wave.open(str(path)) as file:
                samples, rate = np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()
        return samples / 32768, rate

    return run
