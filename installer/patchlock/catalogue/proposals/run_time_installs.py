"""What an app would install as it runs, and its lock lacks once that is patched out; pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from packaging.utils import NormalizedName, canonicalize_name

from patchlock.catalogue.proposals.findings import Issue

_SET = "no-run-time-pip"
"""The shared set that patches it out."""
_STRING = re.compile(r"""(['"])(.*?)\1""")
_NAME = re.compile(r"([A-Za-z][\w.-]*)(?:\[.*\])?(?:[<>=!~].*)?")


def remarks(issues: Iterable[Issue], locked: Collection[NormalizedName]) -> tuple[str, ...]:
    """Say which distributions calls of pip name that are not locked, a sentence without a full stop for each call."""
    told = []
    for place in (place for issue in issues if issue.name == _SET for place in issue.found):
        line = " ".join(text for _, text in _STRING.findall(place.text))  # a variable is no name
        words = line.partition("install")[2].split()
        found = [match[1] for word in words if (match := _NAME.fullmatch(word))]
        names = [name for name in found if canonicalize_name(name) not in locked] if "-r" not in words else []
        if names:
            told.append(
                f"{place.path}:{place.line} would install {', '.join(names)} as it runs, and no longer does; the lock "
                "lacks it: if you use that part of the app, require it with a patch (add-requirement)"
            )
    return tuple(dict.fromkeys(told))
