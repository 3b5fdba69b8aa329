"""The variables with which libraries are told to send nothing about their user to their makers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OFF: Mapping[str, str] = MappingProxyType(
    {
        # Else ONNX Runtime 1.31 keeps a device id and events below the user's home, and sends them to Microsoft.
        # Source: "Disabling Telemetry" in the Privacy.md of its wheels.
        "ORT_DISABLE_TELEMETRY": "1",
        # Source: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # Source: https://www.gradio.app/guides/environment-variables
        "GRADIO_ANALYTICS_ENABLED": "False",
        # Source: https://consoledonottrack.com
        "DO_NOT_TRACK": "1",
    }
)
"""In force for whatever runs in an environment; a variable that the user has set wins."""
