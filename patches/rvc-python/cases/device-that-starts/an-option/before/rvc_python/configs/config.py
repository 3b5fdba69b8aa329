class Config:
    def __init__(self, lib_dir, device):
        self.device = device
