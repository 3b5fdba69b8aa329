"""The sound of a Piper voice as 16-bit samples, sentence by sentence, with piper-tts 1.2 and 1.3; added by patchlock."""


def raw(voice, text, *, length_scale, noise_scale):
    """Yield the bytes of each sentence."""
    if hasattr(voice, "synthesize_stream_raw"):
        yield from voice.synthesize_stream_raw(text, length_scale=length_scale, noise_scale=noise_scale)
        return
    from piper import SynthesisConfig

    wanted = SynthesisConfig(length_scale=length_scale, noise_scale=noise_scale)
    for chunk in voice.synthesize(text, wanted):
        yield chunk.audio_int16_bytes
