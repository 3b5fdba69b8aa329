"""From letters to what the model wants: a pitch and the strength of each harmonic, for every sample."""

import numpy as np

from tonewheel import settings

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

PENTATONIC = 146.8 * 2 ** (np.array([0, 3, 5, 7, 10, 12, 15, 17]) / 12)  # from D3 up
WIDTHS = np.array([110.0, 160.0, 240.0])  # Hz, of the formants
GAINS = np.array([1.0, 0.6, 0.3])


def letters(text: str) -> str:
    """Return what of a text can be hummed."""
    spelled = "".join(letter if "a" <= letter <= "z" else " " for letter in text.lower())
    return " ".join(spelled.split())[:40].strip()


def smooth(track: np.ndarray, seconds: float) -> np.ndarray:
    window = np.hanning(int(seconds * settings.SAMPLE_RATE))
    padded = np.pad(track, len(window) // 2, mode="edge")
    return np.convolve(padded, window / window.sum(), mode="same")[len(window) // 2 :][: len(track)]


def compose(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Return f0 in Hz [samples] and the harmonic amplitudes [harmonics, samples], both float32."""
    voices = tomllib.loads(settings.VOICES.read_text(encoding="utf-8"))
    rows, weights, step = [], [], 0
    for letter in letters(text) + " ":
        vowel = letter in "aeiouy"
        if vowel:
            step = (step + ord(letter) - ord("a") + 3) % len(PENTATONIC)
        loudness = 0.0 if letter == " " else 1.0 if vowel else 0.35
        rows.append([PENTATONIC[step], loudness, *voices.get(letter, voices["consonant"])])
        weights.append(2.2 if vowel else 1.0)

    edges = np.round(np.cumsum([0.0, *weights]) / np.sum(weights) * settings.SAMPLES).astype(int)
    steps = np.repeat(np.array(rows), np.diff(edges), axis=0).T
    f0, loudness, *formants = (smooth(track, 0.05) for track in steps)

    time = np.arange(settings.SAMPLES) / settings.SAMPLE_RATE
    f0 = (f0 * (1 + 0.012 * np.sin(2 * np.pi * 5.5 * time))).astype(np.float32)
    fade = np.minimum(1.0, np.minimum(time, time[::-1]) / 0.02)

    numbers = np.arange(1, settings.HARMONICS + 1)[:, None]
    pitches = numbers * f0
    amplitudes = 0.04 / numbers * np.ones_like(pitches)
    for formant, width, gain in zip(formants, WIDTHS, GAINS):
        amplitudes += gain * np.exp(-(((pitches - formant) / width) ** 2))
    amplitudes *= (pitches < settings.SAMPLE_RATE * 0.45) * loudness * fade
    return f0, (0.95 * amplitudes / amplitudes.sum(axis=0).max()).astype(np.float32)
