"""XTTS's own models with weights of chance, at the sizes of version 2; GPT has 2 layers."""

import torch
from patchlock_layers import Part
from TTS.tts.layers.xtts.gpt import GPT
from TTS.tts.layers.xtts.hifigan_decoder import HifiDecoder

# config.json of coqui/XTTS-v2: tokens of text, of sound, and the two that begin and end it.
TEXTS, SOUNDS, FIRST, LAST = 6681, 1026, 1024, 1025


def _gpt():
    model = GPT(
        layers=2,
        model_dim=1024,
        heads=16,
        start_text_token=261,
        stop_text_token=0,
        max_text_tokens=402,
        max_mel_tokens=605,
        max_prompt_tokens=70,
        number_text_tokens=TEXTS,
        num_audio_tokens=SOUNDS,
        start_audio_token=FIRST,
        stop_audio_token=LAST,
        code_stride_len=1024,
        use_perceiver_resampler=True,
    )
    model.init_gpt_for_inference(kv_cache=True, use_deepspeed=False)
    return model


def _decoder():
    return HifiDecoder(
        input_sample_rate=22050,
        output_sample_rate=24000,
        output_hop_length=256,
        ar_mel_length_compression=1024,
        decoder_input_dim=1024,
        d_vector_dim=512,
        cond_d_vector_in_each_upsampling_layer=True,
    )


def manner():
    """How a voice speaks: GPT's conditioning of a second's spectrogram, as 32 latents."""
    return Part(_gpt(), [torch.randn(1, 80, 87)], lambda model, mel: model.get_style_emb(mel), [(1, 1024, 32)])


def speaker():
    """Who speaks: the embedding of a second at 16 kHz."""
    sound = torch.sin(torch.arange(16000) * 0.07) * 0.4 + torch.randn(1, 16000) * 0.05
    return Part(
        _decoder().speaker_encoder, [sound], lambda model, sound: model.forward(sound, l2_norm=True), [(1, 512)]
    )


def latents():
    """Speech as GPT makes it: six tokens one after the other with its cache, the likeliest each, and their latents."""

    def run(model, text, voice):
        codes = model.generate(
            cond_latents=voice, text_inputs=text, input_tokens=None, do_sample=False, num_beams=1, max_new_tokens=6
        )
        text_length = torch.tensor([text.shape[-1]], device=text.device)
        length = torch.tensor([codes.shape[-1] * model.code_stride_len], device=text.device)
        made = model(text, text_length, codes, length, cond_latents=voice, return_attentions=False, return_latent=True)
        return codes, made

    text = torch.randint(262, TEXTS, (1, 24))
    return Part(_gpt(), [text, torch.randn(1, 32, 1024)], run, [(1, 6), (1, 6, 1024)])


def sound():
    """The sound of eight latents with a speaker's embedding: a third of a second at 24 kHz."""
    decoder = _decoder()
    del decoder.speaker_encoder
    return Part(
        decoder,
        [torch.randn(1, 8, 1024), torch.randn(1, 512, 1)],
        lambda model, latents, speaker: model(latents, g=speaker),
        [(1, 1, 8 * 1088)],
    )
