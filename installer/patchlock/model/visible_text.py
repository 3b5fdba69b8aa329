"""Write a text that is not ours so that a terminal shows all of it and obeys none of it; pure."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)
"""Control characters but line ends and tabs; what changes the direction of a text or is not seen in it (source:
CVE-2021-42574, Unicode Technical Report 36); and bytes of a file's name that are not UTF-8, as Python reads them."""


def visible(text: str) -> str:
    r"""Write control characters as in a Python literal: `\x1b`, `\u202e`."""
    return _HIDDEN.sub(_escaped, text)


def visible_name(name: str) -> str:
    r"""Write the name of a file on one line, as `visible` does; line ends and tabs are `\n` and `\t`."""
    return visible(name).replace("\n", "\\n").replace("\t", "\\t")


def is_utf8(name: str) -> bool:
    """Tell whether a TOML file can hold the name of a file, as Python reads it."""
    return name.encode(errors="ignore").decode() == name


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return "\\r" if code == 0x0D else f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
