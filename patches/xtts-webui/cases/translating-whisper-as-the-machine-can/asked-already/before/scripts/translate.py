import whisperx
from scripts import machine


def transcribe(name, numbers, device):
    return whisperx.load_model(name, **machine.whisper(device, numbers))
