"""Four seconds of a song by `inference.py`, from lyrics to an MP3 file, by models that are there or of chance."""

import json
import os
import tempfile
from pathlib import Path

import torch
from bigvgan.env import AttrDict
from bigvgan.model import BigVGAN
from diffrhythm2.backbones.dit import DiT
from diffrhythm2.cfm import CFM
from safetensors.torch import save_file

SECONDS, LATENTS, BLOCK, STYLE = 4, 64, 10, 512
WORDS = "[start]\n[verse]\nThe one that nobody recorded sings first\n[end]"
NO_WORDS = "[start]\n[intro]\n[inst]\n[outro]\n[end]"
FETCHED = ("model.safetensors", "model.json", "decoder.bin", "decoder.json", "models--OpenMuQ--MuQ-MuLan-large")
DECODER = {
    "resblock": "1",
    "upsample_rates": [10, 6, 5, 4, 4, 2],
    "upsample_kernel_sizes": [20, 12, 11, 8, 8, 4],
    "upsample_initial_channel": 512,
    "resblock_kernel_sizes": [3, 7],
    "resblock_dilation_sizes": [[1, 3], [1, 3]],
    "activation": "snakebeta",
    "snake_logscale": True,
    "in_channels": LATENTS,
    "use_tanh_at_final": False,
    "use_bias_at_final": False,
    "sampling_rate": 48000,
}


class _Style(torch.nn.Module):
    """In the place of MuQ-MuLan, which is no part of what makes the sound: a style that is drawn."""

    def forward(self, texts):
        return torch.randn(len(texts), STYLE)


def _write_models(folder, depth):
    """Write weights of chance as the published ones lie there.

    How deep the published model is stands in its own file, which no source repeats; 8 is DiT's default.
    """
    sizes = {"dim": 1024, "depth": depth, "heads": 16, "mel_dim": LATENTS, "text_num_embeds": 1000}
    (folder / "model.json").write_text(json.dumps(sizes | {"block_size": BLOCK}), encoding="utf-8")
    model = CFM(transformer=DiT(**sizes), num_channels=LATENTS, block_size=BLOCK)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "decoder.json").write_text(json.dumps(DECODER), encoding="utf-8")
    torch.save({"generator": BigVGAN(AttrDict(DECODER)).state_dict()}, folder / "decoder.bin")


def short_song(job):
    """A song in the steps that `inference.py` takes by default; on a card in half precision, as there."""
    is_real = all((Path("ckpt") / name).exists() for name in FETCHED)
    if is_real:
        os.environ["HF_HUB_OFFLINE"] = "1"
    import inference
    import pedalboard

    folder = Path(tempfile.mkdtemp())
    if is_real:
        job.weights = "the models that were fetched"
    else:
        _write_models(folder, depth=2 if job.is_brief else 8)
        inference.hf_hub_download = lambda filename, **_: str(folder / filename)
        inference.MuQMuLan.from_pretrained = lambda *_, **_named: _Style()
    try:
        inference.CNENTokenizer()
        lyrics = WORDS
    except RuntimeError as error:  # phonemizer's, and the app starts without it, too
        if "espeak" not in str(error):
            raise
        inference.CNENTokenizer, lyrics = lambda: None, NO_WORDS
    model, mulan, inference.lrc_tokenizer, decoder = inference.prepare_model("ASLP-lab/DiffRhythm2", job.device)
    tokens = [token for line in inference.parse_lyrics(lyrics) for token in line]
    text = torch.tensor(tokens, dtype=torch.long, device=job.device)
    with torch.no_grad():
        style = mulan(texts=["Pop, Piano, Bass, Drums, Happy"]).to(job.device).squeeze(0)
    if job.device != "cpu":
        model, decoder, style = model.half(), decoder.half(), style.half()
    job.device = str(next(model.parameters()).device)
    job.count(model)
    job.count(decoder)
    job.seconds = (SECONDS - 0.1, SECONDS + 0.2)  # MP3 rounds to frames

    def run():
        inference.inference(
            model=model,
            decoder=decoder,
            text=text,
            style_prompt=style,
            duration=SECONDS,
            output_dir=str(folder),
            song_name="sung",
            cfg_strength=2.0,
            sample_steps=4 if job.is_brief and not is_real else 16,
            process_bar=False,
        )
        with pedalboard.io.AudioFile(str(folder / "sung.mp3")) as file:
            return file.read(file.frames).mean(axis=0), int(file.samplerate)

    return run
