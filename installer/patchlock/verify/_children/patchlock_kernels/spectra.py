"""Fourier transforms and windows; a transform and its inverse are judged apart, so that no error cancels."""

import math
from typing import Any

from . import references
from .case import Case, Function
from .inputs import normal, nothing, spectrum, window


def _forward(size: int, hop: int) -> Function:
    def run(t: Any, x: Any, own: Any) -> Any:
        return t.view_as_real(t.stft(x, size, hop_length=hop, window=own, center=True, return_complex=True))

    return run


def _backward(size: int, hop: int, length: int) -> Function:
    def run(t: Any, real: Any, imaginary: Any, own: Any) -> Any:
        whole = t.complex(real, imaginary)
        return t.istft(whole, size, hop_length=hop, window=own, center=True, length=length)

    return run


def _stft(name: str, size: int, hop: int, *shape: int) -> Case:
    return Case(name, window(size, shape), _forward(size, hop), references.short_time(size, hop), 1e-4)


def _istft(name: str, size: int, hop: int, length: int) -> Case:
    run, want = _backward(size, hop, length), references.overlap_added(size, hop, length)
    return Case(name, spectrum(size, hop, length), run, want, 1e-4)


def _complex(function: "Function", sign: int, *shape: int) -> Case:
    def run(t: Any, real: Any, imaginary: Any) -> Any:
        return t.view_as_real(function(t, t.complex(real, imaginary)))

    return Case(" × ".join(map(str, shape)), normal(shape, shape), run, references.whole_transform(sign), 1e-4)


def _half(*shape: int) -> Case:
    run = lambda t, x: t.view_as_real(t.fft.rfft(x))  # noqa: E731
    return Case(" × ".join(map(str, shape)), normal(shape), run, references.half_transform, 1e-4)


def _from_half(*shape: int) -> Case:
    size = 2 * (shape[-1] - 1)
    run = lambda t, real, imaginary: t.fft.irfft(t.complex(real, imaginary), n=size)  # noqa: E731
    return Case(" × ".join(map(str, shape)), normal(shape, shape), run, references.from_half, 1e-4)


def _windows(name: str, function: Function, value: "Function") -> Case:
    size = 1024
    run = lambda t, x: x * function(t, size, x.device)  # noqa: E731
    want = lambda t, _x: t.tensor([value(k, size) for k in range(size)], dtype=t.float64)  # noqa: E731
    return Case(name, nothing(size), run, want, 1e-5)


def _bessel(x: float) -> float:
    return math.fsum((x / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(60))


KERNELS: "dict[str, tuple[Case, ...]]" = {
    "stft": (
        _stft("512, every 128", 512, 128, 2, 65536),
        _stft("1024, every 160", 1024, 160, 1, 16000),
        _stft("2048, every 512", 2048, 512, 1, 90000),
    ),
    "istft": (
        _istft("512, every 128", 512, 128, 32768),
        _istft("1024, every 256", 1024, 256, 20000),
        _istft("16, every 4, as vocoders", 16, 4, 8000),
    ),
    "rfft": (_half(64, 1024), _half(3, 750), _half(4, 1280)),
    "irfft": (_from_half(64, 513), _from_half(3, 376), _from_half(4, 1025)),
    "fft": (
        _complex(lambda t, x: t.fft.fft(x), -1, 16, 512),
        _complex(lambda t, x: t.fft.fft(x), -1, 2, 1250),
    ),
    "ifft": (
        _complex(lambda t, x: t.fft.ifft(x), 1, 16, 512),
        _complex(lambda t, x: t.fft.ifft(x), 1, 2, 1250),
    ),
    "windows": (
        _windows(
            "Hann's",
            lambda t, size, device: t.hann_window(size, device=device),
            lambda k, size: 0.5 - 0.5 * math.cos(2 * math.pi * k / size),
        ),
        _windows(
            "Hamming's",
            lambda t, size, device: t.hamming_window(size, device=device),
            lambda k, size: 0.54 - 0.46 * math.cos(2 * math.pi * k / size),
        ),
        _windows(
            "Kaiser's",
            lambda t, size, device: t.kaiser_window(size, periodic=False, beta=12.0, device=device),
            lambda k, size: _bessel(12 * math.sqrt(1 - (2 * k / (size - 1) - 1) ** 2)) / _bessel(12.0),
        ),
    ),
}
