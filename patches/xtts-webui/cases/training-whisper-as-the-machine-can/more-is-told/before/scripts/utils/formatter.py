from faster_whisper import WhisperModel


def load(name, device):
    return WhisperModel(name, device=device, device_index=1, compute_type="float16")
