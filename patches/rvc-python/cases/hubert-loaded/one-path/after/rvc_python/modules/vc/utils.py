from __future__ import annotations

from rvc_python.lib import hubert
from fairseq import checkpoint_utils


def load_hubert(path):
    models, _, task = ([hubert.load(path)], None, None)
    return models[0]
