"""Runs the model, and knows on which provider it ran."""

import collections
import json
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime as ort

from tonewheel import settings

PROVIDERS = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}


class Synth:
    """One session of the model on one device."""

    def __init__(self, device: str = settings.DEVICE) -> None:
        self.device = device
        self._profiles = tempfile.TemporaryDirectory(prefix="tonewheel-", ignore_cleanup_errors=True)
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(self._profiles.name) / "profile")
        wanted = PROVIDERS[device]
        self._session = ort.InferenceSession(str(settings.MODEL), options, providers=[PROVIDERS[device]])
        got = self._session.get_providers()[0]
        if got != wanted:
            raise RuntimeError(f"no CUDA device: asked for {wanted}, onnxruntime offers {got}")

    def render(self, f0: np.ndarray, amplitudes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the waveform [samples] in -1..1 and the spectrogram [bins, columns] in 0..1."""
        waveform, spectrogram = self._session.run(
            ["waveform", "spectrogram"], {"f0": f0, "amplitudes": amplitudes}
        )
        return waveform, spectrogram

    def computed_on(self) -> dict[str, int]:
        """Stop profiling; return the providers that ran nodes and how many, the busiest first."""
        profile = Path(self._session.end_profiling())
        events = json.loads(profile.read_text(encoding="utf-8"))
        self._profiles.cleanup()
        nodes = {
            (event["name"], event["args"]["provider"])
            for event in events
            if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and event["args"].get("provider")
        }
        return dict(collections.Counter(provider for _, provider in nodes).most_common())
