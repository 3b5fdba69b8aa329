"""Relative paths in the user's variables, which the programs that get them would look for in folders of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_PATHS = (
    *("UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_PYTHON_CACHE_DIR", "SSL_CERT_FILE"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "PIP_CLIENT_CERT", "SSL_CLIENT_CERT", "GIT_SSL_CAINFO"),
    *("HF_HOME", "HF_HUB_CACHE"),
)
_LISTS = {
    "UV_FIND_LINKS": ",",
    **dict.fromkeys(("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"), " "),
    **dict.fromkeys(("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"), " "),
}
"""Variables with places, and what stands between two of them."""
_PLACE = re.compile(r"\s*([A-Za-z0-9._-]+=)?(.*?)\s*")
"""A place in UV_INDEX may have a name."""
_NOT_RELATIVE = re.compile(r"~|[A-Za-z][A-Za-z0-9+.-]+:")


def resolved(variables: Mapping[str, str]) -> dict[str, str]:
    """Give the variables that have relative paths, with the paths that these mean in the folder one stands in.

    In lists they become addresses, as a path may have what stands between two places.

    Args:
        variables: those of the process.
    """
    found = {name: str(Path(value).absolute()) for name in _PATHS if _is_relative(value := variables.get(name, ""))}
    for name, between in _LISTS.items():
        told = variables.get(name, "")
        meant = between.join(_place(one) for one in told.split(between))
        found |= {name: meant} if meant != told else {}
    return found


def _place(text: str) -> str:
    found = _PLACE.fullmatch(text)
    if found is None or not _is_relative(found[2]):
        return text
    return f"{found[1] or ''}{Path(found[2]).absolute().as_uri()}"


def _is_relative(text: str) -> bool:
    return bool(text) and not _NOT_RELATIVE.match(text) and not Path(text).is_absolute()
