"""What everything else agrees on."""

from pathlib import Path

VERSION = "0.3.0"

ROOT = Path(__file__).resolve().parent.parent
OUTPUTS = ROOT / "outputs"
MODEL = ROOT / "tonewheel" / "tone.onnx"
VOICES = ROOT / "tonewheel" / "voices.toml"

DEVICE = "cuda"

SAMPLE_RATE = 16_000
SAMPLES = 41_600  # 2.6 s
HARMONICS = 32
WINDOW = 1024  # samples per spectrogram column
HOP = 50  # samples between two columns
BINS = 385  # 0 to 6 kHz
FLOOR = 80.0  # dB below full scale that are still visible
