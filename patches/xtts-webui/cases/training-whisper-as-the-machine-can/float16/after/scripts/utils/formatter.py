from faster_whisper import WhisperModel


def load(name, device):
    # Loading Whisper
    from scripts import machine
    return WhisperModel(name, **machine.whisper())
