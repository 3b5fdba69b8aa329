"""The job of the miniature: a text that is hummed, with the model that it comes with."""

import tempfile
from pathlib import Path

from tonewheel import files, score, settings
from tonewheel.synth import PROVIDERS, Synth


def hum(job):
    """A line of text as a WAV file."""
    synth = Synth(settings.DEVICE)
    job.device, job.weights, job.bytes = PROVIDERS[settings.DEVICE], "the app's own", settings.MODEL.stat().st_size

    def run():
        with job.part("score"):
            controls = score.compose("hello from the tonewheel")
        with job.part("sound"):
            waveform, _ = synth.render(*controls)
        with tempfile.TemporaryDirectory() as folder:
            files.write_wav(Path(folder) / "hummed.wav", waveform)
        return len(waveform) / settings.SAMPLE_RATE

    return run
