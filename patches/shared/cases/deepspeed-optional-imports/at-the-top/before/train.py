"""Train a little, or only hum."""

from deepspeed import DeepSpeedConfig


def configure(path):
    return DeepSpeedConfig(path)
