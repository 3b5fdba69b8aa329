"""tonewheel: hums a text, and shows what it hummed."""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from scripts.setup_deepspeed import install_deepspeed

print(install_deepspeed())

from tonewheel import api, files, reference, score, settings  # noqa: E402
from tonewheel.engine import train  # noqa: E402
from tonewheel.synth import PROVIDERS, Synth  # noqa: E402


def write(waveform: np.ndarray, spectrogram: np.ndarray, folder: Path) -> tuple[Path, Path]:
    """Write what the model made into a WAV and a PNG file."""
    folder.mkdir(parents=True, exist_ok=True)
    wav = files.write_wav(folder / "tonewheel.wav", waveform)
    png = files.write_png(folder / "tonewheel.png", spectrogram)
    return wav.resolve(), png.resolve()


def selftest(synth: Synth, text: str) -> str:
    """Hum in a temporary folder and compare with numpy; return what is wrong, or nothing."""
    controls = score.compose(text)
    outputs = synth.render(*controls)
    with tempfile.TemporaryDirectory(prefix="tonewheel-") as folder:
        wav, png = write(*outputs, Path(folder))
        seconds, samples = files.read_back(wav)
        loudness = files.loudness(wav)
        if not png.stat().st_size:
            return "the picture is empty"
    if samples != settings.SAMPLES:
        return f"the recording has {samples} samples ({seconds:.2f} s) instead of {settings.SAMPLES}"
    if loudness < 0.01:
        return f"the recording is silent (rms {loudness:.4f})"
    errors = reference.compare(*controls, *outputs)
    wrong = [f"{name} is off by {error:.2e}" for name, error in errors.items() if not error < 1e-3]
    return ", ".join(wrong)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", default="hello from the tonewheel", help="what to hum")
    parser.add_argument("--output", type=Path, default=settings.OUTPUTS, help="folder for the WAV and PNG files")
    parser.add_argument("--device", default=settings.DEVICE, choices=list(PROVIDERS))
    parser.add_argument("--api", action="store_true", help="print the description of the web API")
    parser.add_argument("--selftest", action="store_true", help="hum in a temporary folder and compare with numpy")
    parser.add_argument("--train", type=Path, metavar="CONFIG", help="train with this DeepSpeed configuration")
    arguments = parser.parse_args()
    if not score.letters(arguments.text):
        parser.error("--text has no letter to hum")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    description = api.describe()
    if arguments.api:
        print(description)
        return 0
    if arguments.train:
        train(arguments.train)
        return 0

    synth = Synth(device="cuda")  # claims the card before anything else does
    if arguments.device != synth.device:
        synth = Synth(device=arguments.device)

    if arguments.selftest:
        wrong = selftest(synth, arguments.text)
        provider = next(iter(synth.computed_on()))
        print(f"selftest failed on {provider}: {wrong}" if wrong else f"selftest ok on {provider}")
        return 1 if wrong else 0

    wav, png = write(*synth.render(*score.compose(arguments.text)), arguments.output)
    seconds, samples = files.read_back(wav)
    computed_on = ", ".join(f"{provider} ({nodes} nodes)" for provider, nodes in synth.computed_on().items())
    print(f"hummed {arguments.text!r}: {seconds:.2f} s, {samples} samples")
    print(wav)
    print(png)
    print(f"computed on: {computed_on}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
