from scripts import latents_on_cpu
import torch


class Speaker:
    def latents(self, wav):
        return latents_on_cpu.conditioning_latents(self.model, wav, max_ref_length=30)
