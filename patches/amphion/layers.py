"""Amphion's own models with weights of chance, at their real widths: MaskGCT, Metis and Vevo; of one or two layers.

All three compute in float32 on a card as well.
"""

import torch
from models.codec.amphion_codec.codec import CodecDecoder
from models.codec.amphion_codec.vocos import Vocos
from models.tts.maskgct.maskgct_s2a import MaskGCT_S2A
from models.tts.maskgct.maskgct_t2s import MaskGCT_T2S
from models.tts.metis.metis_model import MetisStage1
from models.vc.autoregressive_transformer.ar_model import AutoregressiveTransformer
from models.vc.flow_matching_transformer.fmt_model import FlowMatchingTransformer
from patchlock_layers import Part

MEANINGS, SOUNDS, BOOKS = 8192, 1024, 12


def _likelihoods(model, codes, **phones):
    """What the model says of each code: the choice alone does not show a small mistake."""
    steps, seen = torch.full((1,), 0.5, device=codes.device), torch.ones_like(codes, dtype=torch.float32)
    return model.to_logit(model.diff_estimator(model.cond_emb(codes), steps, seen, **phones))


def maskgct_meaning():
    """Codes of meaning from phonemes and a prompt, in three steps, as `text2semantic` asks for them."""
    model = MaskGCT_T2S(
        hidden_size=1536, num_layers=2, num_heads=16, cfg_scale=0.15, cond_codebook_size=MEANINGS, cond_dim=1024
    )

    def run(model, prompt, phones):
        codes = model.reverse_diffusion(prompt, 20, phones, n_timesteps=3, cfg=2.5, rescale_cfg=0.75)
        return codes, _likelihoods(
            model, codes, phone_embedding=model.phone_emb(phones), phone_mask=torch.ones_like(phones)
        )

    prompt, phones = torch.randint(0, MEANINGS, (1, 12)), torch.randint(1, 1000, (1, 16))
    return Part(model, [prompt, phones], run, [(1, 20), (1, 20, MEANINGS)])


def maskgct_sound():
    """Codes of sound from those of meaning, in all twelve books, and what the codec makes of them."""
    codes = MaskGCT_S2A(
        num_quantizer=BOOKS,
        hidden_size=1024,
        num_layers=2,
        num_heads=16,
        codebook_size=SOUNDS,
        cfg_scale=0.15,
        mask_layer_schedule="linear",
        cond_codebook_size=MEANINGS,
        cond_dim=1024,
        predict_layer_1=False,
    )
    codec = CodecDecoder(
        in_channels=256,
        upsample_initial_channel=1536,
        up_ratios=[8, 5, 4, 3],
        num_quantizers=BOOKS,
        codebook_size=SOUNDS,
        codebook_dim=8,
        quantizer_type="fvq",
        use_l2_normlize=True,
        use_vocos=True,
        vocos_dim=512,
        vocos_intermediate_dim=4096,
        vocos_num_layers=2,
        n_fft=1920,
        hop_size=480,
        padding="same",
    )

    def run(model, meaning, prompt, first):
        made = model[0].reverse_diffusion(
            cond=model[0].cond_emb(meaning),
            prompt=prompt,
            temp=1.5,
            filter_thres=0.98,
            n_timesteps=[2] + [1] * (BOOKS - 1),
            cfg=2.5,
            rescale_cfg=0.75,
            gt_code=first,
        )
        return made, model[1](model[1].vq2emb(made.permute(2, 0, 1), n_quantizers=BOOKS))

    given = [
        torch.randint(0, MEANINGS, (1, 20)),
        torch.randint(0, SOUNDS, (1, 8, BOOKS)),
        torch.randint(0, SOUNDS, (1, 12, 1)),
    ]
    return Part(torch.nn.ModuleList([codes, codec]), given, run, [(1, 12, BOOKS), (1, 1, 12 * 480)])


def metis():
    """Codes of meaning from a voice to convert, in three steps, through the adapter of Metis."""
    model = MetisStage1(
        ft_type="vc",
        ft_cond_dim=1024,
        hidden_size=1536,
        num_layers=2,
        num_heads=16,
        cfg_scale=0.15,
        cond_codebook_size=MEANINGS,
        cond_dim=1024,
        use_phone_cond=False,
    )

    def run(model, prompt, voice):
        codes = model.reverse_diffusion(prompt, 20, None, finetune_cond=voice, n_timesteps=3, cfg=2.5, rescale_cfg=0.75)
        return codes, _likelihoods(model, codes)

    given = [torch.randint(0, MEANINGS, (1, 12)), torch.randn(1, 32, 1024)]
    return Part(model, given, run, [(1, 20), (1, 20, MEANINGS)])


def vevo_tokens():
    """What Vevo's autoregressive model says of the next codes of content and style, after phonemes."""
    model = AutoregressiveTransformer(
        input_vocab_size=1024,
        output_vocab_size=MEANINGS,
        hidden_size=1920,
        intermediate_size=7680,
        num_hidden_layers=1,
        num_attention_heads=16,
    )
    return Part(
        model,
        [torch.randint(0, 1024 + MEANINGS, (1, 40))],
        lambda model, codes: model.model(input_ids=codes).logits,
        [(1, 40, 1024 + MEANINGS + 20)],
    )


def vevo_sound():
    """A spectrogram that flows from codes and a prompt in three steps, and the vocoder's sound of it."""
    flow = FlowMatchingTransformer(
        mel_dim=128,
        hidden_size=1024,
        num_layers=2,
        num_heads=16,
        cfg_scale=0.2,
        use_cond_code=True,
        cond_codebook_size=MEANINGS,
        cond_dim=1024,
        cond_scale_factor=1,
        time_scheduler="cos",
    )
    vocoder = Vocos(
        input_channels=128, dim=1024, intermediate_dim=4096, num_layers=2, n_fft=1920, hop_size=480, padding="same"
    )

    def run(model, codes, prompt):
        mel = model[0].reverse_diffusion(model[0].cond_emb(codes), prompt, n_timesteps=3, cfg=1.0, rescale_cfg=0.75)
        return mel, model[1](mel.transpose(1, 2))

    given = [torch.randint(0, MEANINGS, (1, 32)), torch.randn(1, 12, 128)]
    return Part(torch.nn.ModuleList([flow, vocoder]), given, run, [(1, 20, 128), (1, 1, 20 * 480)])
