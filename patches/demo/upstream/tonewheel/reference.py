"""What the model computes, once more in plain numpy."""

import numpy as np

from tonewheel import settings

TURN = 2**24  # one turn of the wheel, in steps of the phase counter


def waveform(f0: np.ndarray, amplitudes: np.ndarray) -> np.ndarray:
    increments = np.round(f0 * np.float32(TURN / settings.SAMPLE_RATE)).astype(np.int64)
    phase = np.cumsum(increments) % TURN * (2 * np.pi / TURN)
    numbers = np.arange(1, settings.HARMONICS + 1)[:, None]
    return (amplitudes * np.sin(numbers * phase)).sum(axis=0)


def spectrogram(samples: np.ndarray) -> np.ndarray:
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(settings.WINDOW) / settings.WINDOW)
    padded = np.pad(samples, settings.WINDOW // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, settings.WINDOW)[:: settings.HOP]
    spectrum = np.fft.rfft(frames * window * (2 / window.sum()), axis=1)[:, : settings.BINS].T
    decibels = 20 * np.log10(np.maximum(np.abs(spectrum), 10 ** (-settings.FLOOR / 20)))
    return 1 + decibels / settings.FLOOR


def compare(
    f0: np.ndarray, amplitudes: np.ndarray, heard: np.ndarray, seen: np.ndarray
) -> dict[str, float]:
    """Return how far the two outputs of the model are from numpy's: the worst sample, the mean pixel."""
    expected = waveform(f0, amplitudes)
    return {
        "waveform": float(np.abs(heard - expected).max()),
        "spectrogram": float(np.abs(seen - spectrogram(expected)).mean()),
    }
