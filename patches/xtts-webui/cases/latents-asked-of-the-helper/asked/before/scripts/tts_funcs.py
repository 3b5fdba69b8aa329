import torch


class Speaker:
    def latents(self, wav):
        return self.model.get_conditioning_latents(wav, max_ref_length=30)
