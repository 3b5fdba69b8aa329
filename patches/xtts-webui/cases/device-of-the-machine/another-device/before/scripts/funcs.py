import torch


def resemble_enhance_audio(audio, card):
    device = f"cuda:{card}" if torch.cuda.is_available() else "cpu"
    return audio.to(device)
