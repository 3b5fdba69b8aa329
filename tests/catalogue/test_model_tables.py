"""`[[model]]`: what is read, and each mistake with its sentence."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from miniature import APP, PROFILE

from patchlock.catalogue.reader import Catalogue
from patchlock.model.errors import CatalogueError
from patchlock.model.models import ModelSize, models_for, size_of

MODEL = """
[[model]]
repository = "maker/speaks"
revision = "v1"
into = "models"
when = "use"
why = "what it speaks with"
license = "MIT"
source = "https://example.com/why"
profiles = ["tiny"]
files = [{ path = "a/model.bin", as = "model.bin", bytes = 12 }, { path = "config.json" }]
"""
VENDOR = MODEL.replace('"maker/speaks"', '"https://example.com/a%20b"').replace('revision = "v1"\n', "")


def _app(root: Path, text: str) -> Catalogue:
    for file, content in {"profiles/tiny.toml": PROFILE, "patches/mini/app.toml": APP + text}.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(content, encoding="utf-8")
    return Catalogue(root=root)


def test_models_are_read(tmp_path: Path) -> None:
    (model,) = _app(tmp_path, MODEL).app("mini").models
    first, second = model.files
    assert model.is_hub
    assert model.url(first) == "https://huggingface.co/maker/speaks/resolve/v1/a/model.bin"
    assert model.placed(first) == PurePosixPath("models/model.bin")
    assert model.placed(second) == PurePosixPath("models/config.json")
    assert size_of(model.files) == ModelSize(bytes=12, unknown=1)
    assert models_for([model], "other") == ()


def test_model_of_a_vendor_has_a_place_in_the_store(tmp_path: Path) -> None:
    (model,) = _app(tmp_path, VENDOR.replace('"models"', '"{cache}/whisper"')).app("mini").models
    assert not model.is_hub
    assert model.storage_path(model.files[0]) == PurePosixPath("example.com/a_20b/a/model.bin")
    assert (model.base, model.placed(model.files[0])) == ("{cache}", PurePosixPath("whisper/model.bin"))


def test_models_for_the_start_come_first(tmp_path: Path) -> None:
    text = MODEL + MODEL.replace("maker/speaks", "maker/starts").replace('when = "use"\n', "")
    found = models_for(_app(tmp_path, text).app("mini").models, "tiny")
    assert [model.repository for model in found] == ["maker/starts", "maker/speaks"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            MODEL.replace("maker/speaks", "a b"),
            'repository: "a b" is neither OWNER/NAME of Hugging Face nor an address',
        ),
        (MODEL.replace('"v1"', '"../x"'), 'revision: "../x" is not a commit, tag or branch'),
        (MODEL.replace('into = "models"', 'into = "../x"'), 'into: "../x" must be a folder of the app'),
        (MODEL.replace('when = "use"', 'when = "uses"'), 'when: "uses" is not a time at which a model is downloaded'),
        (MODEL.replace("12 }", '12, sha256 = "abc" }'), 'files[0].sha256: "abc" is not a sha256'),
        (MODEL.replace("config.json", "/etc/passwd"), 'files[1].path: "/etc/passwd" must be a relative POSIX path'),
        (MODEL.replace('into = "models"', 'cache = "ckpt"'), "files: a/model.bin: a cache has its own names"),
        (MODEL.replace('into = "models"', 'into = "a"\ncache = "b"'), "cache: a model has one place"),
        (VENDOR.replace('into = "models"\n', ""), "into: nothing says where the app looks for it"),
        (VENDOR.replace("https:", "http:"), "files: a/model.bin: what comes without encryption needs a sha256"),
        (VENDOR.replace("into", 'revision = "v1"\ninto'), "revision: it is for models of Hugging Face"),
        (MODEL.replace("bytes = 12", "bytes = -1"), "files: a/model.bin: bytes must be a number above 0"),
        (MODEL + MODEL, "files: model.bin is there twice"),
        (MODEL.partition("\nfiles = [")[0], "files: it names no file"),
    ],
    ids=lambda value: value.partition(":")[0] if "[[" not in value else "",
)
def test_each_mistake_is_named(tmp_path: Path, text: str, wrong: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        _app(tmp_path, text).app("mini")
    told = [f"{problem.key.partition('.')[2]}: {problem.what}" for problem in caught.value.problems]
    assert wrong in told
