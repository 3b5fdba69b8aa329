"""A voice converted by RVC's own pipeline, from a sound file to another, with models of chance in its files."""

import sys
import tempfile
import types
from pathlib import Path

import faiss
import numpy as np
import rvc_python
import torch
from rvc_python.configs.config import Config
from rvc_python.lib import hubert, rmvpe
from rvc_python.lib.infer_pack.models import SynthesizerTrnMs768NSFsid
from rvc_python.modules.vc.modules import VC
from scipy.io import wavfile

SECONDS = 2
# configs/v2/48k.json.
SIZES = (1025, 32, 192, 192, 768, 2, 6, 3, 0, "1", [3, 7, 11], [[1, 3, 5]] * 3, [12, 10, 2, 2], 512, [24, 20, 4, 4])
# The same with a generator that is shallow and narrow, and a text's encoder of two layers.
SHALLOW = (1025, 32, 192, 192, 768, 2, 2, 3, 0, "1", [3], [[1, 3, 5]], [12, 10, 2, 2], 64, [24, 20, 4, 4])
OURS = (
    ("encoder.transformer.layers.", "encoder.layers."),
    ("encoder.transformer.pos_conv_embed.conv.", "encoder.pos_conv.0."),
    ("encoder.transformer.layer_norm.", "encoder.layer_norm."),
    ("encoder.feature_projection.layer_norm.", "layer_norm."),
    ("encoder.feature_projection.projection.", "post_extract_proj."),
    (".conv.", ".0."),
    ("0.layer_norm.", "0.2."),
    (".attention.", ".self_attn."),
    ("feed_forward.intermediate_dense", "fc1"),
    ("feed_forward.output_dense", "fc2"),
)


def _of_fairseq(name):
    name = name.removeprefix("model.")
    name = name.replace("parametrizations.weight.original0", "weight_g")
    name = name.replace("parametrizations.weight.original1", "weight_v")
    for ours, fairseq in OURS:
        if name.startswith("encoder.layers.") and ours == "0.layer_norm.":
            name = name.replace(".layer_norm.", ".self_attn_layer_norm.")
        else:
            name = name.replace(ours, fairseq)
    return name


def _write_hubert(path):
    """Write a checkpoint as fairseq writes one, its dictionary of labels included."""
    theirs = {_of_fairseq(name): value for name, value in hubert.Hubert().state_dict().items()}
    names = ("fairseq", "fairseq.data", "fairseq.data.dictionary")
    for module in names:
        sys.modules[module] = types.ModuleType(module)
    labels = type("Dictionary", (), {"__module__": names[-1]})
    sys.modules[names[-1]].Dictionary = labels
    one = labels()
    one.symbols = ["a"]
    torch.save({"model": theirs | {"mask_emb": torch.zeros(768)}, "task_state": {"dictionaries": [one]}}, path)
    for module in names:
        del sys.modules[module]


def converted(job):
    """Two seconds of a gliding tone, in a voice of chance; HuBERT and RMVPE are real where they were fetched."""
    folder, package = Path(tempfile.mkdtemp()), Path(rvc_python.__file__).parent
    library = package
    if not all((package / "base_model" / name).is_file() for name in ("hubert_base.pt", "rmvpe.pt")):
        library = folder
        (folder / "base_model").mkdir()
        _write_hubert(folder / "base_model" / "hubert_base.pt")
        torch.save(rmvpe.E2E(4, 1, (2, 2)).state_dict(), folder / "base_model" / "rmvpe.pt")
    sizes = [*(SHALLOW if job.is_brief else SIZES), 109, 256, 48000]
    weights = SynthesizerTrnMs768NSFsid(*sizes, is_half=False).state_dict()
    weights = {name: value.half() for name, value in weights.items() if not name.startswith("enc_q")}
    torch.save(
        {"weight": weights, "config": sizes, "f0": 1, "version": "v2", "info": "", "sr": "48k"}, f"{folder}/voice.pth"
    )
    index = faiss.IndexFlatL2(768)
    index.add(np.random.default_rng(0).normal(size=(64, 768)).astype("float32"))
    faiss.write_index(index, f"{folder}/added.index")
    rate = 22050
    hertz = np.linspace(180, 260, SECONDS * rate)
    tone = np.sin(np.cumsum(hertz) * 2 * np.pi / rate) * 9000
    wavfile.write(f"{folder}/in.wav", rate, tone.astype("int16"))

    vc = VC(str(library), Config(str(package), job.device))
    vc.get_vc(f"{folder}/voice.pth", "v2")
    job.device = str(next(vc.net_g.parameters()).device)
    job.count(vc.net_g)
    job.seconds = (SECONDS - 0.1, SECONDS + 0.1)

    def run():
        index = f"{folder}/added.index"
        for method in ("pm", "harvest", "rmvpe") if job.is_brief else ("rmvpe",):
            made = vc.vc_single(1, f"{folder}/in.wav", 0, "", method, index, "", 0.5, 3, 0, 0.25, 0.33)
            if not isinstance(made, np.ndarray):  # else it is what went wrong
                raise RuntimeError(made[0])  # noqa: TRY004 - no type is wrong
        wavfile.write(f"{folder}/out.wav", vc.tgt_sr, made)
        rate, samples = wavfile.read(f"{folder}/out.wav")
        return samples / 32768, rate

    return run
