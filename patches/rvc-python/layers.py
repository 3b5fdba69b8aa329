"""RVC's own models with weights of chance, at the sizes of a voice of version 2 with 48 kHz; of fewer layers."""

import torch
from patchlock_layers import Part
from rvc_python.lib import hubert, rmvpe
from rvc_python.lib.infer_pack.models import SynthesizerTrnMs768NSFsid

# configs/v2/48k.json, but for the text's encoder, which has 6 layers.
SIZES = (
    1025,
    32,
    192,
    192,
    768,
    2,
    2,
    3,
    0,
    "1",
    [3, 7, 11],
    [[1, 3, 5]] * 3,
    [12, 10, 2, 2],
    512,
    [24, 20, 4, 4],
    109,
    256,
)
FRAMES = 16


def heard():
    """What is said: two of HuBERT's layers on half a second."""
    model = hubert.Hubert()
    layers = model.model.encoder.transformer.layers
    model.model.encoder.transformer.layers = layers[:2]
    return Part(
        model,
        [torch.randn(1, 8000) * 0.3],
        lambda model, sound: model.extract_features(sound, torch.zeros_like(sound, dtype=torch.bool), 2)[0],
        [(1, 24, 768)],
        half="float16",
    )


def pitch():
    """At which pitch: the spectrogram of half a second, and RMVPE's network of its own width."""
    spectrogram = rmvpe.MelSpectrogram(False, 128, 16000, 1024, 160, None, 30, 8000)
    network = rmvpe.E2E(1, 1, (2, 2))

    def run(model, sound):
        mel = model[0](sound)
        mel = torch.nn.functional.pad(mel, (0, -mel.shape[-1] % 32))
        return model[1](mel.to(next(model[1].parameters()).dtype))

    def turn(model, kind):
        model[0].is_half = kind is torch.float16
        model[1].to(kind)
        return model

    tone = torch.sin(torch.arange(8000) * 0.1) * 0.5 + torch.randn(1, 8000) * 0.05
    return Part(
        torch.nn.ModuleList([spectrogram, network]), [tone], run, [(1, 64, 360)], half="float16", turn=turn, stay=[0]
    )


def voice():
    """The voice itself: encoder, flow, and the generator that makes 0.16 seconds at 48 kHz of it and a pitch."""
    model = SynthesizerTrnMs768NSFsid(*SIZES, 48000, is_half=False)
    del model.enc_q

    def turn(model, kind):
        model.dec.m_source.is_half = kind is torch.float16
        return model.to(kind)

    return Part(
        model,
        [
            torch.randn(1, FRAMES, 768),
            torch.tensor([FRAMES]),
            torch.randint(1, 255, (1, FRAMES)),
            torch.linspace(110, 440, FRAMES)[None],
            torch.tensor([0]),
        ],
        lambda model, *given: model.infer(*given)[0],
        [(1, 1, FRAMES * 480)],
        half="float16",
        turn=turn,
        stay=[3],
    )
