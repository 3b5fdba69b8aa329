"""A sentence as the page makes it, from a voice's sample to a sound file, by the model there or one of chance."""

import shutil
import tempfile
from pathlib import Path

import torchaudio
from scripts.tts_funcs import TTSWrapper
from tokenizers import Tokenizer, models, pre_tokenizers
from TTS.tts.configs.xtts_config import XttsConfig
from TTS.tts.models.xtts import Xtts

TEXT = "Of all the voices in the house, the one that nobody recorded speaks first."
VERSION, FILES = "v2.0.2", ("config.json", "model.pth", "vocab.json", "speakers_xtts.pth")
# As the page sets them at first.
OPTIONS = {
    "temperature": 0.75,
    "length_penalty": 1.0,
    "repetition_penalty": 5.0,
    "top_k": 50,
    "top_p": 0.85,
    "speed": 1.0,
}
TEXTS, TOKENS = 6681, 32


def _write_model(folder, layers):
    """Write what stands beside the weights of version 2: its sizes, and letters for a vocabulary."""
    folder.mkdir(parents=True)
    config = XttsConfig()
    sizes = config.model_args
    sizes.gpt_layers, sizes.gpt_use_perceiver_resampler = layers, True
    sizes.gpt_num_audio_tokens, sizes.gpt_start_audio_token, sizes.gpt_stop_audio_token = 1026, 1024, 1025
    sizes.gpt_max_audio_tokens = TOKENS + 3  # of which GPT keeps three
    config.save_json(str(folder / "config.json"))
    special = ["[STOP]", "[UNK]", "[SPACE]", "[START]", "[en]"]
    words = [*special, *map(chr, range(33, 127))]
    words += [f"<{i}>" for i in range(TEXTS - len(words))]
    letters = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, [], unk_token="[UNK]"))  # noqa: S106 - no password
    letters.pre_tokenizer = pre_tokenizers.Whitespace()
    letters.add_special_tokens(special)
    letters.save(str(folder / "vocab.json"))


def _of_chance(model, _path):
    """Give the weights that a model has when it is made; of fixed length, as its stop is never likely."""
    weights = model.state_dict()
    weights["gpt.mel_head.bias"][model.args.gpt_stop_audio_token] = -1e4
    return weights


def sentence(job):
    """A sentence, as `Xtts.inference` speaks it when the page asks."""
    here, version = Path.cwd(), VERSION
    if all((here / "models" / VERSION / name).is_file() for name in FILES):
        job.weights, job.seconds = "the model that was fetched", (2.5, 12)
    else:
        here, version = Path(tempfile.mkdtemp()), "chance"
        _write_model(here / "models" / version, layers=2 if job.is_brief else 30)
        Xtts.get_compatible_checkpoint_state_dict = _of_chance
        job.seconds = (TOKENS * 1024 / 24000 - 0.1, TOKENS * 1200 / 24000)
    place = Path(tempfile.mkdtemp())
    (place / "speakers").mkdir()
    shutil.copy("speakers/male.wav", place / "speakers")
    app = TTSWrapper(output_folder=str(place / "output"), speaker_folder=str(place / "speakers"), model_version=version)
    app.load_model(here)
    job.device = str(app.model.device)
    job.count(app.model)
    gpt, decoder = app.model.gpt, app.model.hifigan_decoder
    transformer, latents, sound = gpt.gpt.forward, gpt.forward, decoder.forward

    def timed_transformer(*given, **named):
        """Tell the pass over the whole text from those over one token."""
        if "latents" in asked:
            return transformer(*given, **named)
        with job.part("prefill" if named["inputs_embeds"].shape[1] > 1 else "decoding"):
            return transformer(*given, **named)

    def timed_latents(*given, **named):
        asked.append("latents")
        with job.part("latents"):
            made = latents(*given, **named)
        asked.clear()
        return made

    def timed_sound(*given, **named):
        with job.part("sound"):
            return sound(*given, **named)

    asked = []
    gpt.gpt.forward, gpt.forward, decoder.forward = timed_transformer, timed_latents, timed_sound

    def run():
        file = app.process_tts_to_file(here, TEXT, "en", "male", OPTIONS, str(place / "output" / "spoken.wav"))
        samples, rate = torchaudio.load(file)
        return samples[0], rate

    return run
