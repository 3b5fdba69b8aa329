class Config:
    def __init__(self, lib_dir, device):
        device = compute_device.asked(device, with_mps=True)
        self.device = device
