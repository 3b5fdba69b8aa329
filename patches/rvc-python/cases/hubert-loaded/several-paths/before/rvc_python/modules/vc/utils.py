from fairseq import checkpoint_utils


def load_hubert(paths):
    return checkpoint_utils.load_model_ensemble_and_task(paths)
