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
