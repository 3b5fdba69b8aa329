"""Training on DeepSpeed: learns which harmonics make a voice. Humming never trains."""

from pathlib import Path

import numpy as np
from deepspeed import DeepSpeedConfig
from deepspeed.runtime.engine import DeepSpeedEngine

from tonewheel import score, settings

LESSONS = ["a e i o u", "hello from the tonewheel", "one two three four"]


class TrainingEngine(DeepSpeedEngine):
    """DeepSpeed's engine with the loss that a harmonic balance needs."""

    def learn(self, heard: np.ndarray, wanted: np.ndarray) -> float:
        """Take one step; return the loss before it."""
        import torch

        guess = self(torch.from_numpy(heard).to(self.device))
        loss = (guess - torch.from_numpy(wanted).to(self.device)).abs().mean()
        self.backward(loss)
        self.step()
        return loss.item()


def train(config: Path) -> None:
    """Train with the DeepSpeed configuration of a JSON file and save next to it."""
    import torch

    layer = torch.nn.Linear(settings.HARMONICS, settings.HARMONICS)
    engine = TrainingEngine(
        args=None,
        model=layer,
        model_parameters=layer.parameters(),
        config=str(config),
        config_class=DeepSpeedConfig(str(config)),
    )
    for lesson in LESSONS:
        _, amplitudes = score.compose(lesson)
        columns = amplitudes[:, :: settings.HOP].T
        loss = engine.learn(columns, columns / (columns.sum(axis=1, keepdims=True) + 1e-6))
        print(f"{lesson}: loss {loss:.4f}")
    engine.save_checkpoint(str(config.parent))
