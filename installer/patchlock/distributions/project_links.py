"""Read which addresses a distribution on the index names as its own, so that a repository can be told from it."""

from __future__ import annotations

import email.parser
import tarfile
import zipfile
from urllib.parse import urlsplit

from packaging.utils import NormalizedName

from patchlock.core import http_ranges
from patchlock.distributions import _index_pages, index_client
from patchlock.distributions._index_pages import Listed
from patchlock.model.errors import DownloadError, IndexAnswerError

_SDISTS = (".tar.gz", ".tgz", ".tar.bz2")


def read(name: NormalizedName) -> tuple[str, ...]:
    """Give the addresses that the newest file of a distribution names; empty where it or the index says none.

    Raises:
        NetworkError: the index does not answer.
    """
    address = f"{index_client.address()}/{name}/"
    if urlsplit(address).scheme == "file":
        return ()
    page = http_ranges.page(address, accept=_index_pages.ACCEPT)
    try:
        files = _index_pages.read(page.data, page.media_type, page.address) if page is not None else ()
    except IndexAnswerError:
        return ()
    for wanted in (".whl", *_SDISTS):
        newest = [file for file in files if file.filename.endswith(wanted) and not file.is_yanked]
        if newest:
            return addresses(_metadata(newest[-1]))
    return ()


def addresses(metadata: str) -> tuple[str, ...]:
    """Read the addresses of core metadata. Source: packaging.python.org, "Core metadata"."""
    head = email.parser.HeaderParser().parsestr(metadata)
    named = [str(one).rpartition(",")[2].strip() for one in head.get_all("Project-URL", [])]
    pages = [str(head.get(key, "")).strip() for key in ("Home-page", "Download-URL")]
    return tuple(dict.fromkeys(one for one in (*pages, *named) if "://" in one))


def _metadata(file: Listed) -> str:
    """Read METADATA beside a wheel or in it, or the PKG-INFO at the top of an sdist; "" where there is none."""
    if file.has_metadata and (page := http_ranges.page(f"{file.url}.metadata", accept="*/*")) is not None:
        return page.data.decode("utf-8", errors="replace")
    try:
        with http_ranges.open_file(file.url) as remote:
            if file.filename.endswith(".whl"):
                with zipfile.ZipFile(remote) as wheel:
                    inside = next((one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")), None)
                    return wheel.read(inside).decode("utf-8", errors="replace") if inside is not None else ""
            with tarfile.open(fileobj=remote) as sdist:
                for member in sdist:
                    if member.name.count("/") == 1 and member.name.endswith("/PKG-INFO"):
                        opened = sdist.extractfile(member)
                        return opened.read().decode("utf-8", errors="replace") if opened is not None else ""
    except (zipfile.BadZipFile, tarfile.TarError, DownloadError):
        return ""
    return ""
