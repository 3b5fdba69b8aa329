"""A voice converted by the app's own converter, from a sound file to another, with models of chance in its files."""

import tempfile
from pathlib import Path

import faiss
import numpy as np
import soundfile
import torch
from arvc.engine.inference.convert import VoiceConverter
from arvc.engine.models.algorithms.synthesizers import Synthesizer
from arvc.engine.models.embedders.fairseq import HubertConfig, HubertModel
from arvc.engine.models.predictors.RMVPE.e2e import E2E
from arvc.utils.variables import configs

SECONDS = 2
# arvc/configs/v2/48000.json.
SIZES = (1025, 32, 192, 192, 768, 2, 6, 3, 0, "1", [3, 7, 11], [[1, 3, 5]] * 3, [12, 10, 2, 2], 512, [24, 20, 4, 4])
# The same with a generator that is shallow and narrow, and a text's encoder of two layers.
SHALLOW = (1025, 32, 192, 192, 768, 2, 2, 3, 0, "1", [3], [[1, 3, 5]], [12, 10, 2, 2], 64, [24, 20, 4, 4])


def _write_helpers(folder, *, is_brief):
    """Write what hears what is said, and at which pitch."""
    sizes = {"encoder_layers": 2 if is_brief else 12, "final_dim": 256}
    weights = {"label_embs_concat": torch.zeros(500, 256)} | HubertModel(HubertConfig(**sizes), 500).state_dict()
    torch.save({"cfg": {"model": sizes}, "model": weights}, folder / "hubert_base.pt")
    torch.save(E2E(4, 1, (2, 2), 5, 4, 1, 16).state_dict(), folder / "rmvpe.pt")


def converted(job):
    """Two seconds of a gliding tone, in a voice of chance; HuBERT and RMVPE are real where they were fetched."""
    folder = Path(tempfile.mkdtemp())
    fetched = (Path(configs["embedders_path"]) / "hubert_base.pt", Path(configs["predictors_path"]) / "rmvpe.pt")
    if not all(path.is_file() for path in fetched):
        _write_helpers(folder, is_brief=job.is_brief)
        configs["embedders_path"] = configs["predictors_path"] = str(folder)
    sizes = [*(SHALLOW if job.is_brief else SIZES), 109, 256, 48000]
    voice = Synthesizer(*sizes, use_f0=True, text_enc_hidden_dim=768, vocoder="Default")
    weights = {name: value.half() for name, value in voice.state_dict().items() if not name.startswith("enc_q")}
    said = {"config": sizes, "f0": 1, "version": "v2", "vocoder": "Default"}
    torch.save(said | {"weight": weights}, folder / "voice.pth")
    index = faiss.IndexFlatL2(768)
    index.add(np.random.default_rng(0).normal(size=(64, 768)).astype("float32"))
    faiss.write_index(index, str(folder / "added.index"))
    rate = 22050
    tone = np.sin(np.cumsum(np.linspace(180, 260, SECONDS * rate)) * 2 * np.pi / rate) * 0.3
    soundfile.write(folder / "in.wav", tone, rate)

    converter = VoiceConverter(str(folder / "voice.pth"), 0)
    job.device = str(next(converter.net_g.parameters()).device)
    job.count(converter.net_g)
    job.seconds = (SECONDS - 0.1, SECONDS + 0.1)

    def run():
        made = folder / "out.wav"
        made.unlink(missing_ok=True)
        converter.convert_audio(
            audio_input_path=str(folder / "in.wav"),
            audio_output_path=str(made),
            index_path=str(folder / "added.index"),
            embedder_model="hubert_base",
            pitch=0,
            f0_method="rmvpe",
            index_rate=0.5,
            rms_mix_rate=1,
            protect=0.33,
            hop_length=64,
            f0_autotune=False,
            f0_autotune_strength=1,
            filter_radius=3,
            clean_audio=False,
            clean_strength=0.7,
            export_format="wav",
        )
        return soundfile.read(made)  # what goes wrong before is logged, and leaves no file

    return run
