"""Files of Hugging Face: which they are, and a cache that has them as the library of Hugging Face makes it.

That library says where its cache and its server are, knows the user's token, and writes the cache; it is imported only
where a model lives there. The bytes come through `core.download`, which goes on with what was cut and compares sha256:
huggingface_hub 2.4 does neither after its process was killed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from urllib.parse import urlsplit

from patchlock.core import atomic_files
from patchlock.model import telemetry
from patchlock.model.errors import ModelError, NetworkError

_MARKS = frozenset({".locks", "CACHEDIR.TAG"})
"""What the library leaves in a cache beside the models."""


@dataclass(frozen=True, kw_only=True)
class CachedName:
    """What a file is called in a cache."""

    commit: str
    etag: str
    """Its name among the blobs: its sha256, or the SHA-1 that git gives it."""


@dataclass(frozen=True, kw_only=True)
class HubFile(CachedName):
    """What the server says of a file."""

    url: str
    """Where its bytes come from, of that commit."""
    headers: dict[str, str]
    """For this server alone, with the user's token, which no error shows."""


def _library() -> ModuleType:
    for name, value in telemetry.OFF.items():  # it would tell the server who is calling
        os.environ.setdefault(name, value)
    import huggingface_hub
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.file_download
    import huggingface_hub.utils

    huggingface_hub.logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # what goes wrong is told by us
    return huggingface_hub


def _host() -> str:
    return urlsplit(_library().constants.ENDPOINT).hostname or "the server"


def user_cache() -> Path:
    """Name the cache that programs of this user share: HF_HUB_CACHE, or below HF_HOME, or ~/.cache/huggingface/hub."""
    return Path(_library().constants.HF_HUB_CACHE)


def cached(repository: str, path: PurePosixPath, revision: str, cache: Path) -> Path | None:
    """Find a file in a cache, without a network; None where it is not.

    Args:
        repository: `owner/name`.
        path: in the repository.
        revision: commit, tag or branch; "" means `main`.
        cache: its folder.
    """
    found = _library().try_to_load_from_cache(repository, str(path), cache_dir=cache, revision=revision or "main")
    return Path(found) if isinstance(found, str) else None


def describe(repository: str, path: PurePosixPath, revision: str, note: Callable[[str], None]) -> HubFile:
    """Ask the server what a file is; `note` is told that it does not answer at once, and is asked again.

    Raises:
        ModelError: it does not have the file, or not for this user.
        NetworkError: it does not answer.
    """
    hub = _library()
    with _told(repository, path, revision):
        url = hub.hf_hub_url(repository, str(path), revision=revision or "main")
        headers = hub.utils.build_hf_headers()
        try:
            found = hub.get_hf_file_metadata(url, headers=headers)
        except hub.errors.HTTPError as error:
            status = getattr(getattr(error, "response", None), "status_code", 500)
            if status < 500 and status != 429:
                raise
            note(f"{_host()} does not answer; trying for up to half a minute")
            found = hub.get_hf_file_metadata(url, headers=headers, retry_on_errors=True)
    if not found.etag or not found.commit_hash:
        raise NetworkError(
            "the server does not answer as Hugging Face does", where=url, remedy="check HF_ENDPOINT, and the proxy"
        )
    kept = {name: value for name, value in headers.items() if name.lower() == "authorization"}
    pinned = hub.hf_hub_url(repository, str(path), revision=found.commit_hash)
    return HubFile(commit=found.commit_hash, url=pinned, etag=found.etag, headers=kept)


def blob(repository: str, etag: str, cache: Path) -> Path:
    """Name the place of a file's bytes in a cache."""
    return folder(repository, cache) / "blobs" / etag


def folder(repository: str, cache: Path) -> Path:
    """Name the folder of a repository in a cache."""
    name: str = _library().file_download.repo_folder_name(repo_id=repository, repo_type="model")
    return cache / name


def name_blob(repository: str, path: PurePosixPath, found: CachedName, revision: str, cache: Path) -> Path:
    """Give a blob of a cache the name under which programs look for it, each step whole, as the library lays them out.

    Args:
        repository: `owner/name`.
        path: of the file in it.
        found: commit and blob.
        revision: that was asked for; "" means `main`.
        cache: its folder.
    """
    root = folder(repository, cache)
    # A program that asks for no commit, and reaches no server, looks for the one that `main` was.
    for name in {revision or "main", "main"} - {found.commit}:
        ref = root / "refs" / name
        if not ref.exists() or (name == (revision or "main") and ref.read_text("utf-8") != found.commit):
            ref.parent.mkdir(parents=True, exist_ok=True)
            atomic_files.atomic_write(ref, found.commit)
    pointer = root / "snapshots" / found.commit / path
    if not pointer.exists():
        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.unlink(missing_ok=True)  # a link to nothing
        target = root / "blobs" / found.etag
        try:
            pointer.symlink_to(os.path.relpath(target, pointer.parent))
        except OSError:  # Windows, where not everybody may
            os.link(target, pointer)
    return pointer


def name_of(pointer: Path, path: PurePosixPath) -> CachedName:
    """Tell the commit and the blob of a file in a cache."""
    root = pointer.parents[len(path.parts) + 1]
    if pointer.is_symlink():
        etag = pointer.readlink().name
    else:
        same = (blob.name for blob in (root / "blobs").glob("*") if blob.is_file() and blob.samefile(pointer))
        etag = next(same, "") or atomic_files.sha256(pointer)
    return CachedName(commit=pointer.parents[len(path.parts) - 1].name, etag=etag)


def forget(repository: str, commit: str, paths: Iterable[PurePosixPath], cache: Path) -> None:
    """Remove files of a commit from a cache, and the repository if nothing is left; killed, the next call goes on.

    Raises:
        OSError: something cannot be removed.
    """
    root = folder(repository, cache)
    snapshots, blobs = root / "snapshots", root / "blobs"
    for path in paths:
        pointer = snapshots / commit / path
        if not pointer.is_symlink() and not pointer.is_file():
            continue
        blob = blobs / name_of(pointer, path).etag
        others = (one for one in snapshots.rglob("*") if one != pointer and one.is_file())
        if not any(blob.exists() and one.samefile(blob) for one in others):
            blob.unlink(missing_ok=True)  # first, as the pointer tells which it is
        pointer.unlink()
    if not any(one.is_symlink() or one.is_file() for kept in (snapshots, blobs) for one in kept.rglob("*")):
        atomic_files.remove_tree(root)
        atomic_files.remove_tree(cache / ".locks" / root.name)


def remove_linked(repository: str, cache: Path, store: Path) -> bool:
    """Remove a repository from an app's own cache where another cache has all of its bytes.

    Returns:
        Whether it was removed.
    """
    here, there = folder(repository, cache), folder(repository, store)
    files = [path for path in here.rglob("*") if path.is_file() and path.parent.name != "refs"]
    if not files or not all(_is_same(path, there / path.relative_to(here)) for path in files):
        return False
    atomic_files.remove_tree(here)
    atomic_files.remove_tree(cache / ".locks" / here.name)
    if {path.name for path in cache.iterdir()} <= _MARKS:
        atomic_files.remove_tree(cache)
    return True


def _is_same(one: Path, other: Path) -> bool:
    return other.is_file() and (one.samefile(other) or atomic_files.sha256(one) == atomic_files.sha256(other))


@contextlib.contextmanager
def _told(repository: str, path: PurePosixPath, revision: str) -> Iterator[None]:
    """Turn the library's errors into ours; its own texts may have addresses with secrets in them."""
    errors = _library().errors
    where = f"{repository}, {path} at {revision or 'main'}"
    page = f"https://huggingface.co/{repository}"
    try:
        yield
    except errors.GatedRepoError as error:
        raise ModelError(
            f"{repository} is given only to who has accepted its terms",
            where=page,
            remedy="accept them on that page, and name your token in HF_TOKEN (https://huggingface.co/settings/tokens)",
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
        raise ModelError(
            "the server does not have that file, or does not show it to you",
            where=where,
            remedy=f"look at {page}; a private model needs your token in HF_TOKEN",
        ) from error
    except errors.OfflineModeIsEnabled as error:
        raise NetworkError(
            f"{path.name} is not here, and HF_HUB_OFFLINE forbids to fetch it", where=where, remedy="unset it"
        ) from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status in {401, 403}:
            raise ModelError(
                f"the server answers {status}: your token is not good for this model",
                where=where,
                remedy="set HF_TOKEN to one that may read it (https://huggingface.co/settings/tokens)",
            ) from error
        raise NetworkError(
            f"the server answers {status or 'with an error'}", where=where, remedy="try again later"
        ) from error
    except errors.HTTPError as error:
        raise NetworkError(
            f"{_host()} does not answer",
            where=where,
            remedy="check the network, the proxy and HF_ENDPOINT",
        ) from error


def size_of(repository: str, path: str, patience: float) -> int:
    """Ask the server how many bytes a file has, or all files of a repository; 0 where it does not say.

    Args:
        repository: `owner/name`.
        path: in the repository; "" for all of it.
        patience: seconds.
    """
    hub = _library()
    with contextlib.suppress(Exception):  # whatever is wrong there, whoever downloads it is told
        if path:
            url = hub.hf_hub_url(repository, path)
            return int(hub.get_hf_file_metadata(url, timeout=patience).size or 0)
        listed = hub.HfApi().model_info(repository, files_metadata=True, timeout=patience).siblings
        return sum(one.size or 0 for one in listed or ())
    return 0
