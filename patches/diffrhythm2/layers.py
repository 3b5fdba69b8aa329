"""DiffRhythm 2's own models with weights of chance: a song's latents from text and style, and the sound of latents."""

import torch
from bigvgan.env import AttrDict
from bigvgan.model import BigVGAN, Generator
from diffrhythm2.backbones.dit import DiT
from diffrhythm2.cfm import CFM
from patchlock_layers import Part

LATENTS, BLOCK = 64, 10
CARDS = ("cuda", "privateuseone")


def song():
    """Two blocks of latents, each of three steps with its cache, as `inference` asks for them."""
    model = CFM(
        transformer=DiT(dim=1024, depth=2, heads=16, mel_dim=LATENTS, text_num_embeds=1000),
        num_channels=LATENTS,
        block_size=BLOCK,
    )

    def run(model, text, style):
        return model.sample_block_cache(text, 2 * BLOCK, style, steps=3, cfg_strength=2.0, process_bar=False)

    text = torch.randint(1, 1000, (1, 40))
    return Part(model, [text, torch.randn(1, 512)], run, [(1, 2 * BLOCK, LATENTS)], half="float16", half_on=CARDS)


def _generator():
    sizes = {
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
    }
    model = Generator.__new__(Generator)  # its own way of being made reads files of weights
    torch.nn.Module.__init__(model)
    model.h = AttrDict(sizes)
    model.decoder = BigVGAN(model.h)
    model.decoder.remove_weight_norm()
    return model


def sound():
    """The generator's decoder with its real rates, 9600 samples for each latent, and its own overlapping chunks."""

    def run(model, latents):
        return model.decode_audio(latents, overlap=2, chunk_size=3)

    return Part(_generator(), [torch.randn(1, LATENTS, 4)], run, [(1, 1, 4 * 9600)], half="float16", half_on=CARDS)
