"""What an address may be that a lock names, and what a person is shown of one."""

from __future__ import annotations

import pytest

from patchlock.model.addresses import objection, without_secrets
from patchlock.model.errors import NetworkError

SECRETS = {
    "password": ("https://anna:s3cret@host/x.whl", "https://host/x.whl"),
    "token-as-user": ("git clone https://ghp_s3cret@host/x.git", "git clone https://host/x.git"),
    "query": ("`https://host/x.whl?token=s3cret`", "`https://host/x.whl`"),
    "query-in-brackets": ("(http://host/x?sig=s3cret)", "(http://host/x)"),
    "both-twice": ("a http://u:s3cret@h/a?b=s3cret https://s3cret@h/b", "a http://h/a https://h/b"),
    "fragment-stays": ("https://host/x.whl#sha256=12", "https://host/x.whl#sha256=12"),
    "no-address": ("anna@host: does 1 > 0?", "anna@host: does 1 > 0?"),
    "at-in-a-path": ("https://host/@scope/x@1.0", "https://host/@scope/x@1.0"),
    "at-in-a-password": ("https://u:s3c@ret@h/x", "https://h/x"),
    "slash-in-a-password": ("https://u:s3c/ret@h/x and https://u:s@3c/ret@h/x", "https://h/x and https://h/x"),
    "question-in-a-password": ("https://u:s3c?ret@h/x", "https://h/x"),
    "quote-in-a-password": ("'https://u:s3c'ret@h/x': 'https://u:s@h/x', a@b", "'https://h/x': 'https://h/x', a@b"),
    "capitals": ("HTTPS://u:s3cret@h/x", "HTTPS://h/x"),
    "any-scheme": ("s3://k:s@h socks5://u:p@h:1 _https://u:p@h", "s3://h socks5://h:1 _https://h"),
    "ssh-with-password": ("ssh://u:s3cret@h/x git+ssh://u:p@h/x", "ssh://h/x git+ssh://h/x"),
    "two-without-a-blank": ("https://u:p@h/x,https://u:p@i/y", "https://h/x,https://i/y"),
    "revision-after-a-token": ("git+https://s3cret@host/x.git@v1", "git+https://host/x.git@v1"),
    "port": ("https://host:8080/@scope/x@1.0 http://[::1]:8/a@b", "https://host:8080/@scope/x@1.0 http://[::1]:8/a@b"),
    "git-over-ssh": ("ssh://git@host/x.git", "ssh://git@host/x.git"),
}


@pytest.mark.parametrize(("text", "shown"), SECRETS.values(), ids=list(SECRETS))
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


def test_no_part_of_an_error_has_a_secret() -> None:
    secret = "https://anna:s3cret@host/x?token=s3cret"
    error = NetworkError(f"{secret} is silent", where=secret, remedy=f"ask {secret}", evidence=[secret])
    assert "s3cret" not in str(error) + repr(error.args)
    assert str(error).count("https://host/x") == 4


@pytest.mark.parametrize(
    ("address", "anywhere", "here"),
    [
        ("https://host/x.whl", True, True),
        ("https://localhost/x.whl", True, True),
        ("http://host/x.whl", False, False),
        ("http://localhost:8/x.whl", False, True),
        ("http://127.8.9.10/x.whl", False, True),
        ("http://[::1]/x.whl", False, True),
        ("http://[::1/x.whl", False, False),
        ("http://localhost.example.com/x.whl", False, False),
        ("http://127.0.0.1@host/x.whl", False, False),
        ("file:///srv/x.whl", False, True),
        ("https:///x.whl", False, False),
        ("https://s3cret@host/x.whl", False, False),
        ("https://host/x.whl?token=s3cret", False, False),
        ("ftp://host/x.whl", False, False),
        ("/srv/x.whl", False, False),
    ],
)
def test_a_lock_names_https_addresses(address: str, anywhere: bool, here: bool) -> None:
    assert (objection(address, local=False) == "", objection(address, local=True) == "") == (anywhere, here)
