"""Which distributions install with a Python and end as they are imported there, and where an app's code does; pure."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import module_names
from patchlock.catalogue.proposals.findings import Issue
from patchlock.catalogue.proposals.shared_sets import Asked
from patchlock.patches.import_graph import Trees


@dataclass(frozen=True, kw_only=True)
class PythonLimit:
    """Versions of a distribution that a Python cannot import."""

    name: NormalizedName
    versions: SpecifierSet
    python: SpecifierSet
    why: str
    source: str


_DATACLASS = "a dataclass of it has a mutable default, which Python refuses since 3.11"
_LIMITS = (
    PythonLimit(
        name=canonicalize_name("fairseq"),
        versions=SpecifierSet("<=0.12.2"),
        python=SpecifierSet(">=3.11"),
        why=_DATACLASS,
        source="https://github.com/facebookresearch/fairseq/issues/5012",
    ),
    PythonLimit(
        name=canonicalize_name("hydra-core"),
        versions=SpecifierSet("<1.3"),
        python=SpecifierSet(">=3.11"),
        why=_DATACLASS,
        source="hydra/conf/__init__.py in the wheels of hydra-core 1.2.0 and 1.3.2 on PyPI",
    ),
)


def find(
    versions: Mapping[NormalizedName, Version],
    python: Version,
    others: Mapping[str, Version],
    asked: Asked,
    at_start: Collection[str],
) -> tuple[Issue, ...]:
    """Say which locked distributions the profile's Python cannot import.

    Args:
        versions: of the lock.
        python: the profile's.
        others: the Pythons of all profiles, by their names.
        asked: the app's requirements, by name.
        at_start: modules that its program imports as it starts.
    """
    found = [
        one
        for one in _LIMITS
        if one.name in versions and one.versions.contains(versions[one.name]) and one.python.contains(python)
    ]
    if not found:
        return ()
    named = " and ".join(f"{one.name} {versions[one.name]}" for one in found)
    sources = {why: [one.source for one in found if one.why == why] for why in dict.fromkeys(one.why for one in found)}
    reasons = "; ".join(f"{why} ({', '.join(said)})" for why, said in sources.items())
    older = [name for name, version in others.items() if not any(one.python.contains(version) for one in found)]
    way = f"the profile {older[0]} has Python {others[older[0]]}; or" if older else "no profile has an older Python, so"
    tops = {module.partition(".")[0] for module in at_start}
    return (
        Issue(
            name="not-for-this-python",
            title=f"{named} cannot be imported with Python {python}",
            means=reasons,
            found=tuple(place.found for one in found for place in asked.get(one.name, ())),
            remedy=f"{way} change what imports it with a patch, and leave it out",
            is_at_start=any(module_names.brings(one.name, top) for one in found for top in tops),
        ),
    )


def of_code(
    trees: Trees, come_to: Mapping[PurePosixPath, Collection[int]], pythons: Collection[Version]
) -> tuple[str, ...]:
    """Say where the program may end because of Python's version, each with its place.

    Args:
        trees: of the app.
        come_to: the files to which it may come, with the lines to which it does not.
        pythons: of all profiles; an end that a comparison keeps from all of them is none.
    """
    return tuple(
        f"{path}:{end.lineno} may end the program by the version of Python: see which it allows, as the profiles have "
        f"{', '.join(sorted({f'{one.major}.{one.minor}' for one in pythons}))}"
        for path in sorted(path for path in come_to if b"version_info" in trees.files[path])
        if (module := trees.of(path)) is not None
        for end in _ends(module.body, pythons)
        if end.lineno not in come_to[path]
    )


def _ends(body: list[ast.stmt], pythons: Collection[Version], *, is_asked: bool = False) -> Iterator[ast.stmt]:
    """Give what raises or exits below a question for Python's version, or after its parts were given to names."""
    for node in body:
        is_of_version = any(isinstance(one, ast.Attribute) and one.attr == "version_info" for one in _own_nodes(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield from _ends(node.body, pythons)
            case ast.If(test=test):
                is_met = is_of_version and any(_holds(test, one) for one in pythons)
                yield from _ends(node.body, pythons, is_asked=is_asked or is_met)
                yield from _ends(node.orelse, pythons, is_asked=is_asked)
            case ast.Raise() | ast.Expr(value=ast.Call(func=ast.Attribute(attr="exit") | ast.Name(id="exit"))):
                yield from [node] if is_asked else []
            case ast.Assign(targets=[ast.Tuple()]):
                is_asked |= is_of_version
            case ast.With() | ast.Try():
                yield from _ends(node.body, pythons, is_asked=is_asked)
            case _:
                pass


def _own_nodes(node: ast.stmt) -> Iterator[ast.AST]:
    """Give the nodes of a statement without those of the statements in it."""
    for child in ast.iter_child_nodes(node):
        yield from () if isinstance(child, ast.stmt) else ast.walk(child)


def _holds(test: ast.expr, python: Version) -> bool:
    """Tell whether a comparison with `sys.version_info` is true for a Python; true for what is none."""
    match test:
        case ast.Compare(left=ast.Attribute(attr="version_info"), ops=[sign], comparators=[ast.Tuple(elts=parts)]):
            wanted = tuple(one.value if isinstance(one, ast.Constant) else 0 for one in parts)
            have = (python.major, python.minor, python.micro)
            match sign:
                case ast.Lt():
                    return have < wanted
                case ast.LtE():
                    return have <= wanted
                case ast.Gt():
                    return have > wanted
                case ast.GtE():
                    return have >= wanted
    return True
