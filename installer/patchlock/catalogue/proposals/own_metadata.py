"""An app that asks which version of itself is installed, and runs from its clone; pure."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from packaging.utils import canonicalize_name

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals import project_facts
from patchlock.catalogue.proposals.findings import Finding, Issue, ProposedPatch, excerpt
from patchlock.patches.import_graph import Trees

_ASKS = frozenset({"version", "distribution", "metadata", "get_distribution", "require"})
"""Of `importlib.metadata` and `pkg_resources`."""
_CALLS = re.compile(rb"\b(?:%s)\s*\(" % b"|".join(sorted(name.encode() for name in _ASKS)))


def repair(
    trees: Trees, files: Mapping[PurePosixPath, bytes], path: str, link: Callable[..., str]
) -> tuple[tuple[ProposedPatch, ...], tuple[Issue, ...]]:
    """Give the clone the metadata that an installation would have, where the app asks for them.

    Args:
        trees: of the app's Python files.
        files: of the tree.
        path: the PYTHONPATH with which it is started.
        link: names a place of upstream as a reader can open it, by path and line.
    """
    project = project_facts.project(files)
    name = str(project.get("name", ""))
    places = tuple(_places(trees, name)) if name else ()
    if not places:
        return (), ()
    # https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    module = canonicalize_name(name).replace("-", "_")
    version = str(project.get("version", "0"))
    home = PurePosixPath(path.partition(":")[0] or ".")
    target = home / f"{module}-{version}.dist-info" / "METADATA"
    content = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    made = op("add-file", content=content)
    if made is None:
        raise ValueError("add-file does not take a text")  # a mistake of this module
    checks = ensures(("file-is", {"sha256": hashlib.sha256(content.encode()).hexdigest()}))
    draft = Draft(op_name="add-file", op=made, slug=slug(f"{name}-metadata"), ensures=checks)
    patch = dataclasses.replace(
        draft.patch(draft.slug, [target]),
        why=f"the app asks for the version of {name}, which is not installed: it runs from its clone",
        source=link(places[0].path, places[0].line),
    )
    issue = Issue(
        name="own-metadata",
        title="the app asks which version of itself is installed",
        means="it runs from its clone, so that it ends with PackageNotFoundError",
        found=places,
        remedy="the clone gets the metadata that an installation would have",
    )
    return (ProposedPatch(comment=str(places[0]), written=Written(patch=patch, ensures=checks)),), (issue,)


def _places(trees: Trees, name: str) -> Iterator[Finding]:
    """Find the calls that ask for a distribution of that name, or of that of their own package."""
    wanted = canonicalize_name(name)
    for path in sorted(trees.files):
        data = trees.files[path]
        if (b"metadata" not in data and b"pkg_resources" not in data) or not _CALLS.search(data):
            continue
        for node in ast.walk(trees.of(path) or ast.Module(body=[], type_ignores=[])):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                is_own = canonicalize_name(first.value) == wanted
            else:
                is_own = isinstance(first, ast.Name) and first.id in {"__package__", "__name__"}
            if is_own and called in _ASKS:
                yield Finding(path=path, line=node.lineno, text=excerpt(ast.unparse(node)))
