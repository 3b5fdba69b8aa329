"""What an address may be that a lock names or a person reads: no secrets in it; pure, asks nobody."""

from __future__ import annotations

import re

_USER = re.compile(r"\b(https?|ftp)://[^\s/?#@'\"`<>]+@")
_QUERY = re.compile(r"\b((?:https?|ftp)://[^\s?#'\"`<>]+)\?[^\s'\"`<>)]+")


def without_secrets(text: str) -> str:
    """Take out of all addresses in a text what may be a secret: user, password, query."""
    if "://" not in text:
        return text
    return _QUERY.sub(r"\1", _USER.sub(r"\1://", text))


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
        return "it is no address"
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
