"""Models, the files that an app downloads beside its packages: what they are, and where the app looks; values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import urlsplit

from patchlock.model.byte_sizes import size_text
from patchlock.model.table_fields import Key, Matches, OneOf, Parsed, ProfileNames

_HUB = "huggingface.co"
USER_CACHE, PACKAGES = "{cache}", "{packages}"
"""What `into` may begin with: the folder for caches of this user, `~/.cache` unless XDG_CACHE_HOME names another; and
site-packages of the generation in use, where some packages keep what they download."""
When = Literal["start", "use", "request"]
WHEN: Mapping[When, str] = {
    "start": "the app needs it to start",
    "use": "what it is for needs it, the first time",
    "request": "the app does not download it; `patchlock models APP --fetch` does",
}
_REPOSITORY = re.compile(r"[\w.-]+(?:/[\w.-]+)?|https?://[\w.-]+(?::\d+)?(?:/[\w.~%+-]+)+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"[A-Za-z0-9][\w.-]*")


def _inside(text: str) -> PurePosixPath:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or "\\" in text or not path.parts:
        raise ValueError(f'"{text}" must be a relative POSIX path')
    return path


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """One file of a model."""

    path: Annotated[PurePosixPath, Parsed(_inside, PurePosixPath("-"))]
    """In the repository."""
    name: Annotated[str, Key("as")] = ""
    """What the app calls it, where that is not `path`; a path in `into`."""
    bytes: int = 0
    """0: nobody has said."""
    sha256: Annotated[str, Matches('"{}" is not a sha256', _SHA256)] = ""
    """"" where nobody has said; then the first download is trusted and remembered."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Files of one repository that an app looks for in one place."""

    repository: Annotated[str, Matches('"{}" is neither OWNER/NAME of Hugging Face nor an address', _REPOSITORY)]
    """`owner/name` of Hugging Face (`name` of a few old ones), or the address of the folder that the files are in."""
    revision: Annotated[str, Matches('"{}" is not a commit, tag or branch', _REVISION)] = ""
    """Of Hugging Face: a commit, or the tag or branch that the app asks for; "" means `main`."""
    into: Annotated[str, Matches('"{}" must be a folder', re.compile(r"[^\\:~]+"))] = ""
    """Folder that the app looks in, from its own folder or below one of `USER_CACHE` and `PACKAGES`; "" for a cache of
    Hugging Face."""
    hub_cache: Annotated[str, Key("cache")] = ""
    """Folder of the app that it uses as a cache of Hugging Face; with "" and no `into` it uses the user's."""
    when: Annotated[When, OneOf('"{}" is not a time at which a model is downloaded', WHEN)] = "start"
    why: str
    """What it is for, a clause."""
    license: str
    source: str
    """Where the app's code asks for it."""
    profiles: ProfileNames = ()
    """Empty: all."""
    files: tuple[ModelFile, ...]

    @property
    def is_hub(self) -> bool:
        """Whether it lives at Hugging Face."""
        return "://" not in self.repository

    def url(self, file: ModelFile) -> str:
        """Give the public address of a file: its name in what is remembered, whatever mirror it comes from."""
        if self.is_hub:
            return f"https://{_HUB}/{self.repository}/resolve/{self.revision or 'main'}/{file.path}"
        return f"{self.repository}/{file.path}"

    def storage_path(self, file: ModelFile) -> PurePosixPath:
        """Name the place of a file in the store of a home; for models that are not of Hugging Face."""
        parts = urlsplit(self.url(file))
        return PurePosixPath(parts.netloc.replace(":", "_")) / parts.path.lstrip("/").replace("%", "_")

    @property
    def base(self) -> str:
        """What `into` begins with: `USER_CACHE`, `PACKAGES`, or "" for the app's folder."""
        return next((name for name in (USER_CACHE, PACKAGES) if self.into.startswith(name)), "")

    def placed(self, file: ModelFile) -> PurePosixPath:
        """Name a file where the app looks for it, from the folder that `base` stands for."""
        return PurePosixPath(self.into.removeprefix(self.base).lstrip("/")) / (file.name or file.path)


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """How many bytes files have together."""

    bytes: int
    """Of those whose size is known."""
    unknown: int
    """Files whose size nobody has said."""


def size_of(files: Iterable[ModelFile]) -> ModelSize:
    """Add up the sizes of files."""
    listed = tuple(files)
    return ModelSize(bytes=sum(file.bytes for file in listed), unknown=sum(not file.bytes for file in listed))


def models_for(models: Iterable[Model], profile: str) -> tuple[Model, ...]:
    """Keep what is for a profile; those that the app needs to start come first."""
    fitting = [model for model in models if not model.profiles or profile in model.profiles]
    return tuple(sorted(fitting, key=lambda model: model.when != "start"))


def sizes_by_time(files: Iterable[tuple[Model, ModelFile]]) -> dict[When, ModelSize]:
    """Add up the sizes of files for each time at which they are downloaded, in the order of `WHEN`."""
    listed = tuple(files)
    return {when: size_of(file for model, file in listed if model.when == when) for when in WHEN}


def total_text(size: ModelSize) -> str:
    """Write how much files are together, honestly where nobody has said."""
    unknown = f"{size.unknown} file{'s' if size.unknown > 1 else ''} whose size the catalogue does not say"
    if not size.bytes:
        return unknown if size.unknown else "nothing"
    return f"{size_text(size.bytes)} plus {unknown}" if size.unknown else size_text(size.bytes)


def short_text(size: ModelSize) -> str:
    """Write the same for a column of a table; "?" stands for the files whose size nobody has said."""
    if not size.unknown:
        return size_text(size.bytes) if size.bytes else "none"
    return f"{size_text(size.bytes)} + ?" if size.bytes else "?"


def models_at(models: Iterable[Model], address: str, hub: str = _HUB) -> tuple[Model, ...]:
    """Name the models that an address belongs to; of a host alone, all that lie there.

    Args:
        models: of an app.
        address: of a file, of what the server says about a repository, or of a host.
        hub: the host of Hugging Face, or of its mirror.
    """
    host, path = urlsplit(address).netloc, urlsplit(address).path.strip("/")
    found = []
    for model in models:
        place = urlsplit(model.repository)
        hosts = {_HUB, hub} if model.is_hub else {place.netloc}
        within = place.path.strip("/")
        if host in hosts and (not path or f"/{within}/" in f"/{path}/"):
            found.append(model)
    exact = [one for one in found if any(urlsplit(one.url(file)).path.strip("/") == path for file in one.files)]
    return tuple(exact or found)
