"""What an address may be that a lock names or a person reads: no secrets in it; pure, asks nobody."""

from __future__ import annotations

import re

_QUOTE = r"""['"`](?![\s,;:.)\]}]|$)"""
"""One within an address, which a password may have: behind one that ends an address is a blank, a comma or the like."""
_USER = re.compile(
    rf"""([a-z0-9+.-]{{0,32}}://)((?:(?!://)(?:[^\s'"`<>]|{_QUOTE}))*@)((?:[^\s/?#'"`<>])*)""", re.IGNORECASE
)
_QUERY = re.compile(rf"""(://[^\s?#'"`<>]+)\?(?:[^\s'"`<>)]|{_QUOTE})+""")


def without_secrets(text: str) -> str:
    """Take out of all addresses in a text what may be a secret: user, password, query."""
    if "://" not in text:
        return text
    return _QUERY.sub(r"\1", _USER.sub(_without_user, text))


def _without_user(found: re.Match[str]) -> str:
    """Take user and password out of an address that has a "@"; what may be a part of a password goes, too."""
    scheme, before, host = found.groups()
    authority = re.split(r"[/?#]", before, maxsplit=1)[0]
    user, at, rest = authority.partition("@")
    if ":" in user if at else re.search(r":(?!\d*$)", authority) and not authority.startswith("["):
        return f"{scheme}{host}"
    if not at or scheme.lower().endswith("ssh://"):  # of a path; the user of ssh is no secret
        return found[0]
    return f"{scheme}{rest.rpartition('@')[2]}{before[len(authority) :]}{host}"


def objection(address: str, *, local: bool) -> str:
    """Say why a lock may not name an address, in a clause; "" where it may.

    Args:
        address: of a file.
        local: whether it may be of this machine: a file, or a server on loopback.
    """
    from urllib.parse import urlsplit  # every error imports this module

    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return "it is not an address"
    if "@" in parts.netloc or parts.query:
        return "it has a user, a password or a query, which may be secrets"
    if parts.scheme == "https" and host:
        return ""
    if parts.scheme == "file" or (parts.scheme == "http" and is_loopback(host)):
        return "" if local else "it is of one machine; `--local-addresses` allows that"
    return "it is not https"


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
