"""Speech by the pipelines of MaskGCT, Metis and Vevo, from recordings and text to a sound file.

MaskGCT speaks with its models where they were fetched. All else is of chance: the classes and widths that the app's own
configurations name, of fewer layers, so that a processor ends within a minute.
"""

import tempfile
from pathlib import Path

import accelerate
import librosa
import safetensors.torch
import soundfile
import torch
import torchaudio
from huggingface_hub import try_to_load_from_cache
from models.tts.maskgct import maskgct_utils
from models.tts.metis import audio_tokenizer, metis
from models.vc.vevo import vevo_utils
from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2BertConfig, Wav2Vec2BertModel
from utils.util import load_config

RATE, SECONDS = 24000, 1
PROMPT = "models/tts/maskgct/wav/prompt.wav"
PROMPT_TEXT = " We do not break. We never give in. We never back down."  # of maskgct_inference.py
TEXT = "Of all the voices in the house, the one that nobody recorded speaks first."
HEARD = 18
"""Layers of what hears: the pipelines take what the 17th and the 18th say."""
PARTS = (
    "semantic_codec/model",
    "acoustic_codec/model",
    "acoustic_codec/model_1",
    "t2s_model/model",
    "s2a_model/s2a_model_1layer/model",
    "s2a_model/s2a_model_full/model",
)


def _no_weights(*_given, **_named):
    """Stand where an app loads weights: those that the model has stay."""
    return ""


def _prompt(seconds=SECONDS):
    """Give the first second of upstream's own recording as a file."""
    path = Path(tempfile.mkdtemp()) / "prompt.wav"
    soundfile.write(path, librosa.load(PROMPT, sr=RATE, duration=seconds)[0], RATE)
    return str(path)


def _shallow(config, layers):
    """Leave of each model of a configuration so many layers."""
    for name, value in config.items():
        if hasattr(value, "items"):
            _shallow(value, layers)
        elif name in ("num_layers", "vocos_num_layers"):
            config[name] = layers
    return config


def _hear_by_chance():
    """Make what hears for MaskGCT and Metis of chance: W2v-BERT at its width."""
    config = Wav2Vec2BertConfig(hidden_size=1024, num_hidden_layers=HEARD, intermediate_size=256)
    Wav2Vec2BertModel.from_pretrained = lambda *_: Wav2Vec2BertModel(config)
    SeamlessM4TFeatureExtractor.from_pretrained = lambda *_: SeamlessM4TFeatureExtractor()


def _written(sound):
    """Write a sound file as the app's scripts do, and read it."""
    path = Path(tempfile.mkdtemp()) / "spoken.wav"
    soundfile.write(path, sound, RATE)
    return soundfile.read(path)


def maskgct(job):
    """A sentence in the voice of a prompt, by MaskGCT's pipeline."""
    found = [try_to_load_from_cache("amphion/MaskGCT", f"{name}.safetensors") for name in PARTS]
    found.append(try_to_load_from_cache("facebook/w2v-bert-2.0", "model.safetensors"))
    is_real = all(isinstance(path, str) for path in found)
    config = load_config("./models/tts/maskgct/config/maskgct.json")
    if is_real:
        job.weights, job.seconds = "the models that were fetched", (2.5, 12)
    else:
        _hear_by_chance()
        _shallow(config, 1 if job.is_brief else 2)
        job.seconds = (SECONDS - 0.1, SECONDS + 0.1)
    semantic_model, mean, deviation = maskgct_utils.build_semantic_model(job.device)
    models = [
        maskgct_utils.build_semantic_codec(config.model.semantic_codec, job.device),
        *maskgct_utils.build_acoustic_codec(config.model.acoustic_codec, job.device),
        maskgct_utils.build_t2s_model(config.model.t2s_model, job.device),
        maskgct_utils.build_s2a_model(config.model.s2a_model.s2a_1layer, job.device),
        maskgct_utils.build_s2a_model(config.model.s2a_model.s2a_full, job.device),
    ]
    if is_real:
        for model, path in zip(models, found, strict=False):
            safetensors.torch.load_model(model, path)
    for model in (semantic_model, *models):
        job.count(model)
    job.device = str(next(models[3].parameters()).device)
    device = torch.device(job.device)
    app = maskgct_utils.MaskGCT_Inference_Pipeline(semantic_model, *models, mean, deviation, device)
    prompt = PROMPT if is_real else _prompt()
    steps = {} if is_real else {"n_timesteps": 4, "n_timesteps_s2a": [4, 2, *[1] * 10], "target_len": SECONDS}

    def run():
        return _written(app.maskgct_inference(prompt, PROMPT_TEXT, TEXT, "en", "en", **steps))

    return run


def metis_converts(job):
    """A recording in the voice of another, by Metis with its adapter and LoRA."""
    _hear_by_chance()
    safetensors.torch.load_model = audio_tokenizer.snapshot_download = metis.snapshot_download = _no_weights
    config = _shallow(load_config("./models/tts/metis/config/vc.json"), 1)
    app = metis.Metis(ckpt_path="", cfg=config, device=job.device, model_type="vc")
    for model in (app.metis_stage1, app.s2a_model_1layer, app.s2a_model_full):
        job.count(model)
    job.device = str(next(app.metis_stage1.parameters()).device)
    job.seconds = (SECONDS - 0.1, SECONDS + 0.1)
    voice = _prompt()

    def run():
        return _written(
            app(prompt_speech_path=voice, source_speech_path=voice, n_timesteps=4, cfg=1.0, model_type="vc")
        )

    return run


def vevo_converts(job):
    """A recording with the timbre of another, by Vevo's pipeline."""
    hubert = torchaudio.models.wav2vec2_model(
        extractor_mode="layer_norm",
        extractor_conv_layer_config=None,
        extractor_conv_bias=False,
        encoder_embed_dim=1024,
        encoder_projection_dropout=0.0,
        encoder_pos_conv_kernel=128,
        encoder_pos_conv_groups=16,
        encoder_num_layers=HEARD,
        encoder_num_heads=16,
        encoder_attention_dropout=0.0,
        encoder_ff_interm_features=256,
        encoder_ff_interm_dropout=0.0,
        encoder_dropout=0.0,
        encoder_layer_norm_first=True,
        encoder_layer_drop=0.0,
        aux_num_out=None,
    )
    torchaudio.pipelines.HUBERT_LARGE.__class__.get_model = lambda *_: hubert
    accelerate.load_checkpoint_and_dispatch = _no_weights
    vevo_utils.load_config = lambda path: _shallow(load_config(path), 2)
    app = vevo_utils.VevoInferencePipeline(
        fmt_cfg_path="./models/vc/vevo/config/Vq8192ToMels.json",
        vocoder_cfg_path="./models/vc/vevo/config/Vocoder.json",
        device=torch.device(job.device),
    )
    for model in (hubert, app.fmt_model, app.vocoder_model):
        job.count(model)
    job.device = str(next(app.fmt_model.parameters()).device)
    job.seconds = (SECONDS - 0.1, SECONDS + 0.1)
    voice = _prompt()

    def run():
        made = app.inference_fm(src_wav_path=voice, timbre_ref_wav_path=voice, flow_matching_steps=4)
        path = Path(tempfile.mkdtemp()) / "converted.wav"
        vevo_utils.save_audio(made, output_path=str(path))
        return soundfile.read(path)

    return run
