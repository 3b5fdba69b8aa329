from muq import MuQMuLan


def style(device, prompt_wav, resample):
    mulan = MuQMuLan.from_pretrained("name", cache_dir="./ckpt").to("cpu")
    prompt_wav = resample(prompt_wav, 24000)
    return mulan(wavs=prompt_wav).to(device)
