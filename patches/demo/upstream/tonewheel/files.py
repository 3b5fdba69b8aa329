"""WAV and PNG out, WAV back in."""

import struct
import wave
import zlib
from pathlib import Path

import av
import numpy as np

from tonewheel import settings

# Colours of the spectrogram from silence to full scale.
DARK = [(8, 7, 26), (38, 16, 84), (94, 22, 118), (163, 36, 108)]
BRIGHT = [(224, 74, 74), (250, 142, 48), (252, 210, 90), (255, 253, 220)]
COLOURS = np.array(DARK + BRIGHT)


def write_wav(path: Path, waveform: np.ndarray) -> Path:
    """Write samples in -1..1 as 16 bit mono."""
    with wave.open(str(path), "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(settings.SAMPLE_RATE)
        recording.writeframes(np.round(np.clip(waveform, -1, 1) * 32767).astype("<i2").tobytes())
    return path


def write_png(path: Path, spectrogram: np.ndarray) -> Path:
    """Write a spectrogram [bins, columns] in 0..1 in colour, low frequencies at the bottom."""
    brightness = np.clip(spectrogram[::-1], 0, 1) * (len(COLOURS) - 1)
    stops = np.arange(len(COLOURS))
    pixels = np.stack([np.interp(brightness, stops, channel) for channel in COLOURS.T], axis=-1).astype(np.uint8)
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )
    return path


def read_back(path: Path) -> tuple[float, int]:
    """Decode a recording; return its seconds and its samples."""
    with av.open(str(path), mode="r", metadata_errors="ignore") as container:
        samples = sum(frame.samples for frame in container.decode(audio=0))
    return samples / settings.SAMPLE_RATE, samples


def loudness(path: Path) -> float:
    """Return the root mean square of a recording, 1 at full scale."""
    with wave.open(str(path), "rb") as recording:
        samples = np.frombuffer(recording.readframes(recording.getnframes()), "<i2") / 32767
    return float(np.sqrt(np.mean(samples**2)))
