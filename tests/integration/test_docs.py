"""The docs name what is there: each path, module and function in them exists, and each link leads somewhere."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGE = ROOT / "installer" / "patchlock"
ROOMS = tuple(sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
FOLDERS = ("tests", "docs", "installer", "profiles", "patches", "lockfiles", "benchmarks", r"\.ci", r"\.github", *ROOMS)
DOCS = ROOT / "docs"
PAGES = (
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in DOCS.rglob("*.md") if path.name != "errors.md"),
)

_PATH = re.compile(rf"(?<![\w./~>-])(?:{'|'.join(FOLDERS)})/[\w./*-]*(?:<[^<>`\n]+>[\w./*-]*)*")
_NAME = re.compile(r"`((?:patchlock|" + "|".join(ROOMS) + r")(?:\.\w+)+)(?:\(\))?`")
_FILES = (".json", ".toml", ".txt", ".md")


def _is_there(path: str) -> bool:
    """Find a path from the checkout or from the package; `<name>` and `*` stand for anything."""
    pattern = re.sub(r"<[^<>]+>", "*", path.rstrip("./"))
    return any(any(folder.glob(pattern)) for folder in (ROOT, PACKAGE))


def _names_of(module: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _is_defined(name: str) -> bool:
    """Find a dotted name: a package, a module, or what a module defines."""
    place, parts = PACKAGE, name.removeprefix("patchlock.").split(".")
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if parts and (place / f"{parts[0]}.py").is_file():
        place /= f"{parts.pop(0)}.py"
    module = place if place.is_file() else place / "__init__.py"
    return not parts or (len(parts) == 1 and parts[0] in _names_of(module))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_what_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = {name for name in _NAME.findall(text) if not name.endswith(_FILES)}
    missing = {path for path in _PATH.findall(text) if not _is_there(path)} | {n for n in names if not _is_defined(n)}
    missing |= {path for path in re.findall(r"`(\w+/[\w/]+\.py)`", text) if not _is_there(path)}
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link}
    missing |= {link for link in links if link and not (page.parent / link).exists()}
    assert sorted(missing) == []


def test_no_command_is_broken_over_lines() -> None:
    pages = {page: re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL) for page in PAGES}
    broken = [
        (page.name, word)
        for page, text in pages.items()
        for paragraph in text.split("\n\n")
        for word in re.findall(r"`([^`]+)`", paragraph)
        if "\n" in word
    ]
    assert broken == []


def test_each_way_to_name_something_can_be_wrong() -> None:
    assert _PATH.findall("`tests/unit -x`, `patches/<app>/x.toml`, https://a/docs/b") == [
        "tests/unit",
        "patches/<app>/x.toml",
    ]
    assert _is_there("patches/<app>/app.toml")
    assert not _is_there("patches/<app>/recipe.toml")
    assert _is_there("patches/engine.py")
    assert _is_defined("locks.relock.resolve")
    assert _is_defined("patchlock.model.backends.TORCH_KERNELS")
    assert not _is_defined("locks.relock.settle")
    assert not _is_defined("locks.gathering")


def test_the_table_of_rooms_is_the_one_that_is_held() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert [room for room, _ in rows] == [room for room in reversed(layers) if room != "__main__"]
    missing = [
        f"{room}/{module}"
        for room, modules in rows
        for module in re.findall(r"`(\w+)`", modules)
        if not _is_there(f"{room}/{module}.py") and not _is_there(f"{room}/{module}/__init__.py")
    ]
    assert missing == []


def test_the_architecture_can_be_read_in_one_sitting() -> None:
    assert (DOCS / "architecture.md").stat().st_size <= 12 * 1024


def test_the_front_page_is_a_screen_and_a_half_and_counts_right() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 72
    apps = [path.parent for path in (ROOT / "patches").glob("*/app.toml")]
    locks = [path for path in (ROOT / "lockfiles").glob("*/*.txt") if not path.name.endswith(".build.txt")]
    profiles = list((ROOT / "profiles").glob("*.toml"))
    count = f"{len(apps) - 1} apps and a demo are patched and locked for {len(profiles)} kinds of machine, with {len(locks)}"
    assert f"{count} lockfiles" in " ".join(text.split())


def test_every_decision_is_in_the_index_once() -> None:
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = sorted(path.name for path in (DOCS / "decisions").glob("[0-9]*.md"))
    assert len(pages) > 40
    assert sorted(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index)) == pages
    for page in pages:
        title = (DOCS / "decisions" / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        assert f"[{title}]({page})" in index
