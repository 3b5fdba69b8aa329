def is_card(device):
    return device.type == "cuda"
