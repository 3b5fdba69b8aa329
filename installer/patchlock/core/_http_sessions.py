"""Connections over HTTP that several requests and threads share; the certificates are read once, not for each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchlock import __version__
from patchlock.model.errors import NetworkError

if TYPE_CHECKING:
    import ssl

    import requests
    from requests.adapters import HTTPAdapter

_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Variables that name a file or folder of certificates: those of requests, in its order, and that of uv."""


def open_session(*, encoding: str, at_once: int) -> requests.Session:
    """Open connections that several threads may use at once; keeps no cookies.

    The proxies are those of the environment, and so are the certificates.

    Args:
        encoding: what the server may pack its answers with.
        at_once: connections to one server that are kept open.

    Raises:
        NetworkError: a variable names certificates that cannot be read.
    """
    from http.cookiejar import DefaultCookiePolicy

    import requests

    session = requests.Session()
    adapter = _adapter(_context(), at_once)
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)
    session.headers.update({"User-Agent": f"patchlock/{__version__}", "Accept-Encoding": encoding})
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


def deciding_variable() -> str:
    """Name the variable whose certificates count; "" where none is set."""
    return next((name for name in _CERTIFICATES if os.environ.get(name)), "")


def _context() -> ssl.SSLContext:
    import certifi
    from urllib3.util import create_urllib3_context

    variable = deciding_variable()
    place = os.environ[variable] if variable else certifi.where()
    context = create_urllib3_context()
    try:
        if Path(place).is_dir():
            context.load_verify_locations(capath=place)
        else:
            context.load_verify_locations(cafile=place)
    except OSError as error:  # ssl.SSLError is one, too
        raise NetworkError(
            "the certificates cannot be read", where=place, remedy=f"correct or remove {variable}"
        ) from error
    return context


def _adapter(context: ssl.SSLContext, at_once: int) -> HTTPAdapter:
    from requests.adapters import HTTPAdapter

    class Shared(HTTPAdapter):
        """Hands one context to all connections, where requests would let each read the certificates again."""

        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, **options, ssl_context=context)

        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
            return super().proxy_manager_for(proxy, **options, ssl_context=context)

        def build_connection_pool_key_attributes(self, request: Any, _verify: Any, cert: Any = None) -> Any:
            return super().build_connection_pool_key_attributes(request, True, cert)

        def cert_verify(self, _conn: Any, _url: str, _verify: Any, _cert: Any) -> None:
            """Leave the connection as it is: its context verifies."""

    return Shared(pool_maxsize=at_once)
