from faster_whisper import WhisperModel


def load(name, device):
    # Loading Whisper
    return WhisperModel(name, device=device, compute_type='float16')
