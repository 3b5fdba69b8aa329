import whisperx


def transcribe(name, numbers, device, file):
    model = whisperx.load_model(name,device=device,compute_type=numbers)
    return model.transcribe(whisperx.load_audio(file))


def subtitles(name, language, numbers, device):
    return whisperx.load_model(name,language=language,device=device,compute_type=numbers)
