"""Read what an index says of a distribution: its page of files and a wheel's METADATA; pure, asks nobody.

Source: packaging.python.org, "Simple repository API" (PEP 503, 592, 629, 658, 691, 700, 714) and "Core metadata".
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import InvalidVersion, Version

from patchlock.model.errors import IndexAnswerError
from patchlock.model.identities import Sha256

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
"""What is asked for. Source: PEP 691, "Content negotiation"."""


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One file of a page."""

    filename: str
    url: str
    """Absolute, without fragment."""
    sha256: Sha256 | None
    uploaded: str
    """As the page says it, an RFC 3339 time; "" where it says none that can be read."""
    has_metadata: bool
    """Whether the page promises the METADATA beside the file."""
    metadata_sha256: Sha256 | None
    is_yanked: bool


def read(data: bytes, media_type: str, address: str) -> tuple[Listed, ...]:
    """Read the page of a distribution, in its own order.

    Args:
        data: the page.
        media_type: as the server names it; JSON is also known by its first character.
        address: where the page came from in the end; links are relative to it.

    Raises:
        IndexAnswerError: it is no such page.
    """
    is_json = "json" in media_type or data.lstrip()[:1] == b"{"
    try:
        text = data.decode("utf-8-sig")
        listed = _from_json(json.loads(text), address) if is_json else _from_html(text, address)
    except (UnicodeDecodeError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise _garbage(address) from error
    if not any(file.filename.endswith((".whl", ".tar.gz", ".zip")) for file in listed):
        raise _garbage(address)
    return listed


def _garbage(address: str) -> IndexAnswerError:
    return IndexAnswerError(
        "the server answers, but not with the page of an index: it lists no file",
        where=address,
        remedy="correct `url` or `distributions` in the index's file, or try again later; a proxy may have answered",
    )


def _version(text: object) -> None:
    if str(text).partition(".")[0] != "1":
        raise ValueError("another version of the simple API")


def _from_json(page: Mapping[str, Any], address: str) -> tuple[Listed, ...]:
    _version(page["meta"]["api-version"])
    found = []
    for file in page["files"]:
        metadata = file.get("core-metadata", file.get("dist-info-metadata", False))
        found.append(
            Listed(
                filename=str(file["filename"]),
                url=urljoin(address, file["url"]).partition("#")[0],
                sha256=_sha256(file["hashes"].get("sha256")),
                uploaded=upload_time(file.get("upload-time")),
                has_metadata=bool(metadata),
                metadata_sha256=_sha256(metadata.get("sha256")) if isinstance(metadata, dict) else None,
                is_yanked=file.get("yanked", False) is not False,
            )
        )
    return tuple(found)


class _Links(HTMLParser):
    """Collects the links of a page and the version that it names."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "base" and not self.base:
            self.base = values.get("href") or ""
        elif tag == "meta" and values.get("name") == "pypi:repository-version":
            _version(values.get("content"))
        elif tag == "a" and values.get("href"):
            self.links.append(values)


def _from_html(text: str, address: str) -> tuple[Listed, ...]:
    parser = _Links()
    parser.feed(text)
    parser.close()
    found = []
    for link in parser.links:
        url, _, fragment = urljoin(urljoin(address, parser.base), link["href"] or "").partition("#")
        metadata = link.get("data-core-metadata", link.get("data-dist-info-metadata", "false")) or "true"
        found.append(
            Listed(
                filename=unquote(urlsplit(url).path.rpartition("/")[2]),
                url=url,
                sha256=_sha256(_named(fragment)),
                uploaded=upload_time(link.get("data-upload-time")),
                has_metadata=metadata != "false",
                metadata_sha256=_sha256(_named(metadata)),
                is_yanked="data-yanked" in link,
            )
        )
    return tuple(found)


def _named(text: str) -> str | None:
    """Take the value of `sha256=…` out of a fragment or an attribute."""
    found = re.search(r"(?:^|&)sha256=([0-9a-fA-F]+)", text)
    return found[1] if found else None


def upload_time(text: object) -> str:
    """Take an upload time; one that cannot be read is not known."""
    try:
        return text if isinstance(text, str) and datetime.datetime.fromisoformat(text).tzinfo else ""
    except ValueError:
        return ""


def _sha256(text: str | None) -> Sha256 | None:
    return Sha256(text.lower()) if text and re.fullmatch(r"[0-9a-fA-F]{64}", text) else None


def requires(data: bytes, name: NormalizedName, version: Version, address: str) -> tuple[Requirement, ...]:
    """Read what a wheel requires from its METADATA, sorted, each once.

    Args:
        data: the file.
        name: the distribution that it must be of.
        version: the version that it must be of; a local version may be missing on either side.
        address: where it came from, for messages.

    Raises:
        IndexAnswerError: it is no METADATA, or that of another wheel.
    """
    from packaging.metadata import parse_email  # it brings the standard library's e-mail along

    raw, _ = parse_email(data)
    try:
        is_right = canonicalize_name(raw["name"]) == name and Version(raw["version"]).public == version.public
    except (KeyError, InvalidVersion):
        is_right = False
    if not is_right:
        raise IndexAnswerError(
            f"the server gives something else than the METADATA of {name} {version}",
            where=address,
            remedy="try again later; if it happens again, the index is broken: report it to its operator",
        )
    try:
        # Windows wheels of torch before 2.8 end these lines with a stray carriage return.
        parsed = {str(Requirement(text.strip())) for text in raw.get("requires_dist", [])}
    except InvalidRequirement as error:
        raise IndexAnswerError(
            f"the METADATA of {name} {version} has a requirement that cannot be read: {str(error).splitlines()[0]}",
            where=address,
            remedy="record this wheel by hand, or keep it out with `distributions` in the index's file",
        ) from error
    return tuple(Requirement(text) for text in sorted(parsed))
