"""What is called a sound: the judgement of the program that runs in an app's environment."""

from __future__ import annotations

import importlib.util
import math
import random
import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from patchlock.verify import sounds

CHILD = Path(sounds.__file__).parent / "_children" / "sound.py"
RATE = 8000
CHANCE = random.Random(20260101)


@pytest.fixture(scope="module")
def child() -> ModuleType:
    """Import the program that runs in an app's environment."""
    description = importlib.util.spec_from_file_location("sound_child", CHILD)
    assert description is not None
    assert description.loader is not None
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def made(sample: Callable[[float], float], seconds: float = 1.0) -> list[float]:
    """Make samples of a function of the time."""
    return [sample(n / RATE) for n in range(int(seconds * RATE))]


def voice(time: float) -> float:
    """Speak in vowels: harmonics of 120 Hz, four syllables in a second."""
    return math.sin(4 * math.pi * time) ** 2 * sum(math.sin(240 * math.pi * k * time) / k for k in range(1, 9)) / 3


def hiss(_time: float) -> float:
    """Hiss as loud all the time."""
    return CHANCE.uniform(-0.5, 0.5)


@pytest.mark.parametrize("is_real", [True, False])
def test_voice_is_a_sound(child: ModuleType, is_real: bool) -> None:
    assert child.judge(made(voice), RATE, (0.5, 2.0), is_real=is_real) == []


def test_noise_of_random_weights_is_a_sound(child: ModuleType) -> None:
    assert child.judge(made(hiss), RATE, (0.5, 2.0), is_real=False) == []


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        pytest.param([], "it lasts 0.00 s, where 0.5 to 2 s are plausible", id="nothing"),
        pytest.param(made(voice, 0.4), "it lasts 0.40 s, where 0.5 to 2 s are plausible", id="too short"),
        pytest.param(made(voice, 2.1), "it lasts 2.10 s, where 0.5 to 2 s are plausible", id="too long"),
        pytest.param(made(lambda _: 0.0), "it is silent", id="silent"),
        pytest.param(made(lambda time: voice(time) * 1e-5), "it is silent", id="less than a step of 16 bits"),
        pytest.param(made(lambda _: 0.25), "it is the constant 0.25", id="constant"),
        pytest.param([*made(voice), math.nan], "1 of 8001 samples are no numbers, or infinite", id="not a number"),
        pytest.param([*made(voice), math.inf], "1 of 8001 samples are no numbers, or infinite", id="infinite"),
        pytest.param(
            made(lambda time: max(-1.0, min(1.0, 500 * math.sin(440 * time)))), "100% of it is clipped", id="clipped"
        ),
    ],
)
def test_what_is_no_sound_is_told(child: ModuleType, samples: list[float], says: str) -> None:
    assert child.judge(samples, RATE, (0.5, 2.0), is_real=False) == [says]


@pytest.mark.parametrize(
    ("samples", "says"),
    [
        pytest.param(
            made(lambda time: math.sin(4 * math.pi * time) ** 2 * hiss(time)),
            ["its spectrum is that of white noise"],
            id="noise in syllables",
        ),
        pytest.param(
            made(lambda time: math.sin(880 * math.pi * time) / 2),
            ["it is as loud from its beginning to its end: no speech and no song is"],
            id="hum",
        ),
        pytest.param(
            made(hiss),
            [
                "its spectrum is that of white noise",
                "it is as loud from its beginning to its end: no speech and no song is",
            ],
            id="noise",
        ),
    ],
)
def test_noise_of_a_real_voice_is_told(child: ModuleType, samples: list[float], says: list[str]) -> None:
    assert child.judge(samples, RATE, (0.5, 2.0), is_real=True) == says


def test_file_has_sixteen_bits_and_stays_within_them(child: ModuleType, tmp_path: Path) -> None:
    child.write(str(tmp_path / "heard.wav"), [0.0, 1.0, -1.0, 7.0, math.nan], RATE)
    with wave.open(str(tmp_path / "heard.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
        frames = file.readframes(5)
    assert [int.from_bytes(frames[i : i + 2], "little", signed=True) for i in range(0, 10, 2)] == [
        *(0, 32767, -32767, 32767, 0)
    ]


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        pytest.param("random", "1.5 s of sound on cpu (random weights: a sound was made, not a voice)", id="random"),
        pytest.param(
            "the voice that was fetched", "1.5 s of sound on cpu (weights: the voice that was fetched)", id="real"
        ),
    ],
)
def test_claim_is_no_more_than_the_weights_show(weights: str, says: str) -> None:
    assert sounds.told({"weights": weights, "length": 1.5, "device": "cpu"}) == says
