class Config:
    def device_config(self):
        if self.has_mps():
            return "mps"
