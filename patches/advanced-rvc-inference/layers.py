"""The app's own models with weights of chance, at the sizes of a voice of version 2 with 48 kHz; of fewer layers."""

import torch
from arvc.engine.models.algorithms.synthesizers import Synthesizer
from arvc.engine.models.embedders.fairseq import HubertConfig, HubertModel
from arvc.engine.models.predictors.RMVPE.e2e import E2E
from arvc.engine.models.predictors.RMVPE.mel import MelSpectrogram
from arvc.engine.models.utils import extract_features
from patchlock_layers import Part

# arvc/configs/v2/48000.json, but for the text's encoder, which has 6 layers.
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
    """What is said: two of HuBERT's layers on half a second, as the pipeline asks for them."""
    model = HubertModel(HubertConfig(encoder_layers=2, final_dim=256), 500)
    return Part(
        model,
        [torch.randn(1, 8000) * 0.3],
        lambda model, sound: extract_features(model, sound, "v2", sound.device),
        [(1, 24, 768)],
        half="float16",
    )


def pitch():
    """At which pitch: the spectrogram of half a second, and RMVPE's network of its own width."""
    spectrogram = MelSpectrogram(128, 16000, 1024, 160, None, 30, 8000)
    network = E2E(1, 1, (2, 2), 5, 4, 1, 16)

    def run(model, sound):
        mel = model[0](sound, center=True)
        mel = torch.nn.functional.pad(mel, (0, -mel.shape[-1] % 32), mode="reflect")
        return model[1](mel.to(next(model[1].parameters()).dtype))

    def turn(model, kind):
        model[1].to(kind)
        return model

    tone = torch.sin(torch.arange(8000) * 0.1) * 0.5 + torch.randn(1, 8000) * 0.05
    return Part(
        torch.nn.ModuleList([spectrogram, network]), [tone], run, [(1, 64, 360)], half="float16", turn=turn, stay=[0]
    )


def voice():
    """The voice itself: encoder, flow, and the generator that makes 0.16 seconds at 48 kHz of it and a pitch."""
    model = Synthesizer(*SIZES, 48000, use_f0=True, text_enc_hidden_dim=768, vocoder="Default")
    del model.enc_q
    given = [
        torch.randn(1, FRAMES, 768),
        torch.tensor([FRAMES]),
        torch.randint(1, 255, (1, FRAMES)),
        torch.linspace(110, 440, FRAMES)[None],
        torch.tensor([0]),
    ]
    return Part(model, given, lambda model, *given: model.infer(*given)[0], [(1, 1, FRAMES * 480)], half="float16")
