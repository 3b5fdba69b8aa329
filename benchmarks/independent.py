"""Read what a file requires with other people's parsers: pip, tomllib, configparser, ast and PyYAML."""

from __future__ import annotations

import ast
import configparser
import optparse
import re
import tomllib
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pip._internal.exceptions import PipError
from pip._internal.req import req_file

Fact = tuple[str, str]
"""The normalised name of a distribution, or "" for anything else, and what is said of it, so that equals are equal."""

_NAME = re.compile(r"\s*(?:[\w.-]+::)?([A-Za-z0-9][\w.-]*)")


class NotReadError(Exception):
    """This parser refuses the file."""


def facts(path: PurePosixPath, data: bytes) -> list[Fact]:
    """Give all that a file says, in its order.

    Raises:
        NotReadError: the parser of the format refuses it.
    """
    try:
        if path.suffix in {".txt", ".in"}:
            return list(_pip(data))
        text = data.decode("utf-8-sig")
        if path.suffix == ".toml":
            return list(_walk("", tomllib.loads(text)))
        if path.suffix == ".cfg":
            return list(_cfg(text))
        if path.suffix == ".py":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return list(_python(ast.parse(data)))
        return list(_walk("", yaml.safe_load(text)))
    except (ValueError, SyntaxError, RecursionError, configparser.Error, yaml.YAMLError, PipError) as error:
        raise NotReadError(str(error).split("\n", maxsplit=1)[0]) from error


def _pip(data: bytes) -> Iterator[Fact]:
    """Read line by line, as pip does, so that one bad line does not hide the others."""
    content = req_file._decode_req_file(data, "requirements.txt")
    for _, line in req_file.preprocess(content):
        yield _pip_line(line)


@lru_cache(maxsize=100_000)
def _pip_line(line: str) -> Fact:
    try:
        words, options = req_file.get_line_parser(None)(line)
    except (req_file.OptionParsingError, optparse.OptParseError):
        return _requirement(re.split(r"\s-", line)[0])[0], line
    given = {key: value for key, value in vars(options).items() if value and key != "format_control"}
    name, shown = _requirement(words) if words else ("", "")
    if not words and given.get("editables"):
        name, _ = _requirement(given["editables"][0])
    return name, f"{shown} {sorted(given.items(), key=str)}"


def _requirement(words: str) -> Fact:
    place = re.search(r"[#&]egg=([\w.-]+)|([^/\\@\s-]+)-\d[^/\\]*\.whl", words)
    try:
        requirement = Requirement(words.replace(";", " ;") if "@" in words else words)
        if place and not requirement.url:  # a file's name that could also be a distribution's
            return canonicalize_name(place[1] or place[2]), words
    except InvalidRequirement:
        if place:
            return canonicalize_name(place[1] or place[2]), words
        plain = re.match(r"([A-Za-z0-9][\w.-]*?)\s*(?:\[[^\]]*\])?\s*[=<>!~;]", words)
        return (canonicalize_name(plain[1]) if plain else "", words)
    return canonicalize_name(requirement.name), str(requirement)


def _walk(place: str, value: object) -> Iterator[Fact]:
    """Give every leaf; strings in lists may be requirements, keys of Poetry's tables are names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if re.fullmatch(r"tool\.poetry\..*dependencies\.", place):
                leaves = " ".join(shown for _, shown in _walk("", inner))
                yield canonicalize_name(str(key)), f"{place} {leaves}"
            else:
                yield from _walk(f"{place}{key}.", inner)
    elif isinstance(value, list):
        for inner in value:
            name, shown = _string(inner) if isinstance(inner, str) else ("", "")
            yield from [(name, f"{place} {shown}")] if shown else _walk(place, inner)
    else:
        yield "", f"{place} {value!r}"


def _string(text: str) -> Fact:
    name, shown = _requirement(text)
    match = _NAME.match(text)
    return (name or (canonicalize_name(match[1]) if match else ""), shown)


def _cfg(text: str) -> Iterator[Fact]:
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    for section in parser.sections():
        for key, value in parser.items(section):
            for line in value.splitlines():
                if line.strip():
                    name, shown = _string(line.strip())
                    yield name, f"{section}.{key} {shown}"


def _python(tree: ast.Module) -> Iterator[Fact]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _string(node.value)
    kinds = Counter(type(node).__name__ for node in ast.walk(tree) if not isinstance(node, ast.Constant | ast.Load))
    yield "", str(sorted(kinds.items()))
