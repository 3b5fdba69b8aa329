"""Read what a structured file requires, list by list, with the loader of its language; knows no offsets."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

BUILD = "build-system.requires"


@dataclass(frozen=True, kw_only=True)
class Declared:
    """One requirement in a list."""

    place: str
    """The list's dotted keys."""
    text: str
    """The requirement, in Poetry's case only what stands behind the key."""
    words: Literal["pip", "poetry", "conda"]
    name: str = ""
    """In Poetry's case, the key."""


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """Why a file cannot be checked, a clause."""

    why: str


UNLOADABLE = (ValueError, SyntaxError, RecursionError, configparser.Error)
"""What a reader raises for a file that is not what its name says; YAML's errors are made into a `ValueError`."""

Reader = Callable[[str], Iterator[Declared | Unknown]]


def reader(path: PurePosixPath) -> Reader | None:
    """Choose a reader by the file's name; None for a pip requirement file and for what is none of them."""
    if path.suffix.lower() in {".yml", ".yaml"}:
        return None if path.name.lower() == "conda-lock.yml" else _conda
    return {"pyproject.toml": _pyproject, "setup.cfg": _setup_cfg, "setup.py": _setup_py}.get(path.name.lower())


def _pyproject(text: str) -> Iterator[Declared | Unknown]:
    data = tomllib.loads(text)
    project, tool = _table(data, "project"), _table(data, "tool")
    uv, pdm, poetry = _table(tool, "uv"), _table(tool, "pdm"), _table(tool, "poetry")
    lists: dict[str, object] = {
        "project.dependencies": project.get("dependencies"),
        "tool.uv.dev-dependencies": uv.get("dev-dependencies"),
        BUILD: _table(data, "build-system").get("requires"),
    }
    for place, groups in (
        ("project.optional-dependencies", _table(project, "optional-dependencies")),
        ("dependency-groups", _table(data, "dependency-groups")),
        ("tool.pdm.dev-dependencies", _table(pdm, "dev-dependencies")),
    ):
        lists |= {f"{place}.{group}": listed for group, listed in groups.items()}
    for place, listed in lists.items():
        yield from _strings(place, listed)
    tables = {f"tool.poetry.{name}": poetry.get(name) for name in ("dependencies", "dev-dependencies")}
    for group, inner in _table(poetry, "group").items():
        tables[f"tool.poetry.group.{group}.dependencies"] = inner.get("dependencies") if isinstance(inner, dict) else {}
    for place, table in tables.items():
        for name, value in table.items() if isinstance(table, dict) else ():
            for one in value if isinstance(value, list) else (value,):
                is_version = (
                    isinstance(one, dict) and "version" in one and not one.keys() & {"git", "url", "path", "file"}
                )
                shown = one["version"] if is_version else one
                yield Declared(place=place, name=name, text=str(shown), words="poetry")


def _setup_cfg(text: str) -> Iterator[Declared | Unknown]:
    parser = configparser.RawConfigParser()
    parser.read_string(text.replace("\r\n", "\n").replace("\r", "\n"))
    places = [("options", name) for name in ("install_requires", "setup_requires", "tests_require")]
    if parser.has_section("options.extras_require"):
        places += [("options.extras_require", name) for name in parser.options("options.extras_require")]
    for section, name in places:
        value = parser.get(section, name, fallback="")
        if value.startswith(("file:", "attr:")):
            yield Unknown(why=f"{section}.{name} is read from elsewhere: `{value}`")
            continue
        yield from _strings(f"{section}.{name}", value.split("\n") if "\n" in value else value.split(";"))


def _setup_py(text: str) -> Iterator[Declared | Unknown]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    given = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "setup":
            for keyword in call.keywords:
                yield from _keyword(keyword, tree, given)


def _keyword(keyword: ast.keyword, tree: ast.Module, given: Mapping[str, ast.expr]) -> Iterator[Declared | Unknown]:
    name = keyword.arg or "**"
    if name not in {"**", "install_requires", "setup_requires", "tests_require", "extras_require"}:
        return
    try:
        value = _literal(keyword.value, tree, given)
    except ValueError:
        yield Unknown(why=f"line {keyword.value.lineno} computes {name}, which only running it would tell")
        return
    for extra, listed in value.items() if isinstance(value, dict) else [("", value)]:
        lines = listed.splitlines() if isinstance(listed, str) else listed
        yield from _strings(f"{name}.{extra}" if extra else name, lines)


def _literal(node: ast.expr, tree: ast.Module, given: Mapping[str, ast.expr]) -> object:
    """Evaluate what is written down, also through names that nothing changes.

    Raises:
        ValueError: it is computed.
    """
    if isinstance(node, ast.Name):
        _require_unchanged(node.id, tree)
        if node.id not in given:
            raise ValueError(node.id)
        return _literal(given[node.id], tree, given)
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return {str(key): _literal(value, tree, given) for key, value in zip(keys, node.values, strict=True)}
    value: object = ast.literal_eval(node)
    return value


def _require_unchanged(name: str, tree: ast.Module) -> None:
    """Allow one assignment, and no use but as an argument or as a value of a dictionary."""
    harmless = [value for node in ast.walk(tree) if isinstance(node, ast.Call) for value in _arguments(node)]
    harmless += [value for node in ast.walk(tree) if isinstance(node, ast.Dict) for value in node.values]
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    if sum(not any(use is one for one in harmless) for use in uses) != 1:
        raise ValueError(name)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords]


def _conda(text: str) -> Iterator[Declared | Unknown]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        data: object = YAML(typ="rt", pure=True).load(text)
    except YAMLError as error:
        raise ValueError(str(error)) from error
    listed = data.get("dependencies", "") if isinstance(data, dict) else ""
    if not isinstance(listed, list | None):
        yield Unknown(why="it has no list `dependencies`")
        return
    for item in listed or ():
        if isinstance(item, dict):
            yield from _strings("dependencies.pip", item.get("pip"))
        else:
            yield Declared(place="dependencies", text=str(item), words="conda")


def _strings(place: str, listed: object) -> Iterator[Declared]:
    for item in listed if isinstance(listed, list | tuple) else ():
        if isinstance(item, str):
            yield Declared(place=place, text=re.sub(r"(^|\s)#.*$", "", item).strip(), words="pip")


def _table(data: Mapping[str, object], key: str) -> dict[str, object]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}
