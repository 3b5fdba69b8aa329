"""What runs in an environment sends nothing to the makers of its libraries, unless the user wants it to."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchlock.environments import venv

ONNX_RUNTIME = "ORT_DISABLE_TELEMETRY"


@pytest.mark.parametrize(
    ("user", "app", "expected"),
    [
        pytest.param(None, {}, "1", id="off"),
        pytest.param("0", {}, "0", id="the user's value wins"),
        pytest.param(None, {ONNX_RUNTIME: "0"}, "0", id="the app's, too"),
    ],
)
def test_telemetry_is_off(
    user: str | None, app: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ONNX_RUNTIME, raising=False)
    if user is not None:
        monkeypatch.setenv(ONNX_RUNTIME, user)
    found = venv.launch_variables(tmp_path, {}, app)
    assert found[ONNX_RUNTIME] == expected
    assert found["HF_HUB_DISABLE_TELEMETRY"] == found["DO_NOT_TRACK"] == "1"
    assert found["GRADIO_ANALYTICS_ENABLED"] == "False"
