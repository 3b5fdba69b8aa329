from __future__ import annotations

from fairseq import checkpoint_utils


def load_hubert(path):
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([path], suffix="")
    return models[0]
