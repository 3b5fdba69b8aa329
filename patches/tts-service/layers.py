"""The service's own engine with a voice of chance that has the shapes of a Piper voice, and the same voice in NumPy.

The voice has a Piper voice's inputs and the widths of its decoder (512 channels, 256 samples for each sound), and no
flow before that; it is written here, as no `onnx` is installed.
"""

import asyncio
import base64
import io
import json
import tempfile
import wave
from pathlib import Path

import numpy as np
import piper_phonemize
from onnx_session import attribute, field
from patchlock_layers import Sound
from src import tts_engine
from src.config import get_settings
from src.routes import synthesize_text
from src.schemas import SynthesizeRequest
from src.tts_engine import TTSEngine

TEXT = "A voice of chance."
WIDTH, CHANNELS, RATES = 192, 512, (8, 8, 2, 2)
FLOAT, INT64 = 1, 7


def _tensor(name, values):
    """Encode a TensorProto. Source: onnx.proto."""
    dims = b"".join(field(1, size) for size in values.shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, values.astype("<f4").tobytes())


def _value(name, kind, dims):
    """Encode a ValueInfoProto; a size that is a text is known when it runs."""
    sizes = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))


def _node(kind, inputs, output, **attributes):
    node = b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, f"to_{output}") + field(4, kind)
    return node + b"".join(field(5, attribute(name, numbers)) for name, numbers in attributes.items())


def _weights():
    draw = np.random.default_rng(20260101)
    made = {"emb": draw.standard_normal((256, WIDTH)), "pre": draw.standard_normal((CHANNELS, WIDTH, 7)) / 30}
    for i, rate in enumerate(RATES):
        made[f"up{i}"] = draw.standard_normal((CHANNELS >> i, CHANNELS >> i + 1, 2 * rate)) / (CHANNELS >> i) ** 0.5
    made["post"] = draw.standard_normal((1, CHANNELS >> len(RATES), 7)) / 15
    return {name: values.astype(np.float32) for name, values in made.items()}


def _model(weights):
    nodes = [
        _node("Gather", ["emb", "input"], "heard"),
        _node("Transpose", ["heard"], "x", perm=[0, 2, 1]),
        _node("Conv", ["x", "pre"], "y0", pads=[3, 3]),
    ]
    for i, rate in enumerate(RATES):
        nodes.append(_node("Relu", [f"y{i}"], f"a{i}"))
        pads = [rate // 2] * 2
        nodes.append(_node("ConvTranspose", [f"a{i}", f"up{i}"], f"y{i + 1}", pads=pads, strides=[rate]))
    last = f"y{len(RATES)}"
    nodes += [_node("Conv", [last, "post"], "z", pads=[3, 3]), _node("Tanh", ["z"], "output")]
    graph = b"".join(field(1, node) for node in nodes) + field(2, "voice")
    graph += b"".join(field(5, _tensor(name, values)) for name, values in weights.items())
    graph += field(11, _value("input", INT64, [1, "sounds"])) + field(11, _value("input_lengths", INT64, [1]))
    graph += field(11, _value("scales", FLOAT, [3])) + field(12, _value("output", FLOAT, [1, 1, "samples"]))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


def _convolved(x, w):
    padded = np.pad(x, ((0, 0), (3, 3)))
    return sum(w[:, :, k] @ padded[:, k : k + x.shape[1]] for k in range(7))


def _raised(x, w, rate):
    length = x.shape[1]
    wide = np.zeros((w.shape[1], (length - 1) * rate + 2 * rate))
    for k in range(2 * rate):
        wide[:, k : k + (length - 1) * rate + 1 : rate] += w[:, :, k].T @ x
    return wide[:, rate // 2 : wide.shape[1] - rate // 2]


def _spoken(weights, ids):
    """Compute the voice in float64, and bring it to 16 bits as Piper does."""
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    x = _convolved(weights["emb"][ids].T, weights["pre"])
    for i, rate in enumerate(RATES):
        x = _raised(np.maximum(x, 0), weights[f"up{i}"], rate)
    sound = np.tanh(_convolved(x, weights["post"]))[0]
    return (sound * 32767 / max(0.01, np.abs(sound).max())).astype(np.int16) / 32768.0


def _engine(place, weights):
    """The service's engine with a voice of chance, which is written to a folder."""
    (place / "voice.onnx").write_bytes(_model(weights))
    config = {
        "num_symbols": 256,
        "num_speakers": 1,
        "audio": {"sample_rate": 22050},
        "espeak": {"voice": "en-us"},
        "inference": {"noise_scale": 0.3, "length_scale": 1.0, "noise_w": 0.8},
        "phoneme_type": "espeak",
        "phoneme_id_map": piper_phonemize.get_espeak_map(),
    }
    (place / "voice.onnx.json").write_text(json.dumps(config), encoding="utf-8")
    return TTSEngine(str(place / "voice.onnx"), str(place / "voice.onnx.json"), enable_enhancement=False)


def voice(folder=None):
    """A sentence: its phonemes by espeak, their sounds by the engine's session, as the service is asked for them."""
    place, weights = Path(folder or tempfile.mkdtemp()), _weights()
    engine = _engine(place, weights)
    engine.initialize()
    (phonemes,) = engine.model.phonemize(TEXT)
    ids = engine.model.phonemes_to_ids(phonemes)
    return Sound(lambda: asyncio.run(engine.synthesize(TEXT))[0], lambda: _spoken(weights, ids), [(len(ids) * 256,)])


def sentence(job):
    """What the service answers, by the voice that lies there, or else by one of chance, smaller than a real one."""
    settings = get_settings()
    if Path(settings.model_path).is_file() and Path(settings.voice_config_path).is_file():
        path, config = settings.model_path, settings.voice_config_path
        job.weights, job.seconds = "the voice that lies there", (2.5, 12)
    else:
        place = Path(tempfile.mkdtemp())
        _engine(place, _weights())
        path, config = place / "voice.onnx", place / "voice.onnx.json"
        job.seconds = (0.5, 12)
    job.bytes = Path(path).stat().st_size
    tts_engine.initialize_engine(str(path), str(config), enable_enhancement=settings.enable_audio_enhancement)
    job.device = tts_engine.get_engine().model.session.get_providers()[0]
    wanted = SynthesizeRequest(text="Of all the voices in the house, the one that nobody recorded speaks first.")

    def run():
        answer = asyncio.run(synthesize_text(wanted, settings))
        with wave.open(io.BytesIO(base64.b64decode(answer.audio))) as file:
            samples, rate = np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()
        return samples / 32768, rate

    return run
