class Config:
    def device_config(self):
        if self.device == "mps":
            return "mps"
