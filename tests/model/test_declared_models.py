"""Which model of an app an address belongs to, and how sizes are written."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from patchlock.model.models import Model, ModelFile, ModelSize, models_at, short_text, total_text


def _model(repository: str, *files: str, revision: str = "") -> Model:
    return Model(
        repository=repository,
        revision=revision,
        why="it speaks",
        license="MIT",
        source="tests",
        files=tuple(ModelFile(path=PurePosixPath(file)) for file in files),
    )


VOICE = _model("acme/voice", "model.pth", "config.json", revision="v2")
SPEAKERS = _model("acme/voice", "speakers.pth")
OLD = _model("gpt2", "model.bin")
LIST = _model("https://raw.example.org/acme/list/master", "voices.yml")
MODELS = (VOICE, SPEAKERS, OLD, LIST)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("https://huggingface.co/acme/voice/resolve/v2/model.pth", (VOICE,)),
        ("https://huggingface.co/acme/voice/resolve/main/speakers.pth", (SPEAKERS,)),
        ("https://huggingface.co/acme/voice/resolve/main/other.pth", (VOICE, SPEAKERS)),
        ("https://huggingface.co/api/models/acme/voice/revision/v2", (VOICE, SPEAKERS)),
        ("https://huggingface.co/api/models/acme/voice", (VOICE, SPEAKERS)),
        ("https://mirror.example/acme/voice/resolve/v2/model.pth", (VOICE,)),
        ("https://other.example/acme/voice/resolve/v2/model.pth", ()),
        ("https://huggingface.co/gpt2/resolve/main/model.bin", (OLD,)),
        ("https://huggingface.co/acme/voice-large/resolve/main/model.pth", ()),
        ("https://huggingface.co", (VOICE, SPEAKERS, OLD)),
        ("https://raw.example.org/acme/list/master/voices.yml", (LIST,)),
        ("https://raw.example.org/acme/list/main/voices.yml", ()),
        ("https://raw.example.org", (LIST,)),
        ("https://huggingface.co.example/acme/voice/resolve/v2/model.pth", ()),
    ],
)
def test_address_belongs_to_a_model(address: str, found: tuple[Model, ...]) -> None:
    assert models_at(MODELS, address, "mirror.example") == found


def test_what_nobody_knows_is_said() -> None:
    assert total_text(ModelSize(bytes=0, unknown=2)) == "2 files whose size the catalogue does not say"
    told = total_text(ModelSize(bytes=2_000, unknown=1))
    assert told == "2.0 KiB plus 1 file whose size the catalogue does not say"
    assert total_text(ModelSize(bytes=0, unknown=0)) == "nothing"
    sizes = [ModelSize(bytes=count, unknown=unknown) for count in (0, 2_000) for unknown in (0, 1)]
    assert [short_text(size) for size in sizes] == ["none", "?", "2.0 KiB", "2.0 KiB + ?"]
