"""Which other repositories lie in a tree, as its `.gitmodules` says; pure."""

from __future__ import annotations

import configparser
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from patchlock.catalogue.proposals.findings import Issue
from patchlock.catalogue.proposals.imports import Imports
from patchlock.model.identities import CommitId


@dataclass(frozen=True, kw_only=True)
class Submodule:
    """A repository that lies in a folder of another one."""

    path: PurePosixPath
    url: str
    commit: CommitId


def read(data: bytes, commits: Mapping[PurePosixPath, CommitId], url: str) -> tuple[Submodule, ...]:
    """Read `.gitmodules`.

    Args:
        data: the file.
        commits: path → commit, as the tree has them.
        url: of the repository; an address that begins with `./` or `../` is from there.
    """
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    text = "\n".join(line.strip() for line in data.decode("utf-8", errors="replace").splitlines())
    try:
        parser.read_string(text)
    except configparser.Error:
        return ()
    found = []
    for section in parser.sections():
        path = PurePosixPath(parser.get(section, "path", fallback=""))
        if path in commits:
            address = _address(parser.get(section, "url", fallback=""), url)
            found.append(Submodule(path=path, url=address, commit=commits[path]))
    return tuple(sorted(found, key=lambda one: str(one.path)))


def _address(written: str, url: str) -> str:
    if not written.startswith(("./", "../")):
        return written
    base = url.rstrip("/").split("/")
    for part in written.split("/"):
        if part == "..":
            base.pop()
        elif part != ".":
            base.append(part)
    return "/".join(base)


def issues(listed: Collection[Submodule], imports: Imports, missing: Collection[str]) -> tuple[Issue, ...]:
    """Tell of submodules that the code imports: their files are not in the clone.

    Args:
        listed: all submodules.
        imports: of the app's files.
        missing: modules that the program imports at its start and nothing brings.
    """
    found = []
    for one in listed:
        places = tuple(each.found for each in imports.all() if of_module([one], each.module) is not None)
        if places:
            is_at_start = any(of_module([one], module) is not None for module in missing)
            found.append(
                Issue(
                    name="submodule-at-the-start" if is_at_start else "submodule",
                    title=f"it imports from the submodule {one.path}",
                    means="its files are not in the clone: it is another repository",
                    found=places,
                    remedy=f"in the clone, run `git clone {one.url} {one.path}`, then `git -C {one.path} checkout "
                    f"{one.commit}`",
                )
            )
    return tuple(found)


def of_module(listed: Collection[Submodule], module: str) -> Submodule | None:
    """Find the submodule that a Python module most likely lies in: by its folder's name, or that of a folder above."""
    parts = [re.sub(r"[-.]", "_", part).lower() for part in module.split(".")]
    for one in listed:
        names = [re.sub(r"[-.]", "_", part).lower() for part in one.path.parts]
        if names[-1] in parts or (parts[0] in names and len(parts) == 1):
            return one
    return None
