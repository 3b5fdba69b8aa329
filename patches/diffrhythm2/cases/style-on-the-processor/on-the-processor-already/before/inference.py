from muq import MuQMuLan


def style(prompt_wav):
    return MuQMuLan.from_pretrained("name").to("cpu")(wavs=prompt_wav)
