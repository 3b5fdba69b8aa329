"""The description that the web API serves at `/`."""

from gradio_client import utils
from pydantic import BaseModel, Field

from tonewheel import settings


class HumRequest(BaseModel):
    """What a client sends."""

    text: str
    device: str = settings.DEVICE
    options: dict[str, float] = Field(default={}, description="overrides of the voice, by name")
    metadata: dict = Field(default={}, description="handed back as it came")


def describe() -> str:
    """Return the signature of the one endpoint, in the words of the Python client."""
    return f"/hum: {utils.json_schema_to_python_type(HumRequest.model_json_schema())}"
