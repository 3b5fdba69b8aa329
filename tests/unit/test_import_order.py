"""Who may import whom: only lower storeys, nothing heavy at import, and no code between ops and ensures."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from conftest import ROOT

PACKAGE = ROOT / "installer" / "patchlock"

STOREYS: dict[str, int] = {
    **dict.fromkeys(
        (
            "hosts",
            "host_words",
            "devices",
            "fact_sources",
            "fits",
            "identities",
            "errors",
            "lazily",
            "places",
            "sources",
            "lock_rules",
            "model",
            "check_kinds",
            "tables",
            "rule_tables",
            "platforms",
        ),
        1,
    ),
    **dict.fromkeys(("declarations", "distribution_tables", "requirement_files", "json_places", "notebooks"), 1),
    **dict.fromkeys(("vocabulary", "ops", "ensures", "targets", "patching", "authoring", "trials"), 1),
    **dict.fromkeys(("hiding", "host_variables", "nvidia_cards", "toml_lines", "version_bounds"), 1),
    **dict.fromkeys(("machine_files", "main_memory", "pci_devices", "kfd", "tegra", "wsl", "nvidia"), 2),
    **dict.fromkeys(
        ("accelerator_versions", "host_settings", "device_nodes", "linux_devices", "linux_system", "shared_libraries"),
        2,
    ),
    **dict.fromkeys(("linux_host", "mac_host"), 2),
    **dict.fromkeys(("windows_records", "windows_cards", "windows_facts", "windows_cim", "windows_view"), 1),
    **dict.fromkeys(("windows_registry", "windows_devices", "windows_drivers", "windows_system", "windows_host"), 2),
    **dict.fromkeys(
        ("shared_sets", "optional_patches", "pair_table", "refusal_tables", "launch_tables", "os_errors"), 1
    ),
    **dict.fromkeys(("requirement_sources", "proposals"), 1),
    "cloning": 2,
    **dict.fromkeys(("proposing", "proposal_locks"), 3),
    **dict.fromkeys(("policy", "policy_tables", "fatbins"), 1),
    **dict.fromkeys(("ranges", "index_answers", "wheel_facts", "wheel_archs", "judging"), 2),
    **dict.fromkeys(("fit_tables", "device_tables", "fitting", "device_choice"), 1),
    **dict.fromkeys(("toml_files", "machine_tables", "pretended", "kept_choice"), 2),
    **dict.fromkeys(("choosing", "looking"), 3),
    **dict.fromkeys(("selection", "missed", "planning", "lockfile", "compatibility", "launch_scripts"), 1),
    **dict.fromkeys(("lock_diff", "exports", "pairing", "index_pages", "index_tables", "records"), 1),
    **dict.fromkeys(("conflicts", "conflict_search", "conflict_versions", "askers", "corrections", "reasons"), 1),
    **dict.fromkeys(("asking", "explaining", "alternatives"), 2),
    **dict.fromkeys(("process", "uv", "mutex", "catalogue", "probes", "checkout", "worktree", "locking"), 2),
    **dict.fromkeys(("trees", "standing", "merging", "move_plan", "staging", "moving", "manifest", "hooks"), 2),
    **dict.fromkeys(
        (
            "environments",
            "generations",
            "beside",
            "gate",
            "room",
            "smoke",
            "checks",
            "codemods",
            "cases",
            "edited",
            "histories",
        ),
        2,
    ),
    **dict.fromkeys(
        (
            "wheels",
            "wheelhouse",
            "housekeeping",
            "freshness",
            "checked_locks",
            "wheel_cases",
            "download",
            "indexes",
            "recording",
            "addresses",
        ),
        2,
    ),
    **dict.fromkeys(("cross_check", "revisions"), 2),
    **dict.fromkeys(("gathering", "providing", "relocking", "install", "upkeep", "trying", "distributions"), 3),
    **dict.fromkeys(
        ("upstream_files", "repatching", "patch_sets", "patched_upstream", "meanwhile", "missing_wheels"), 3
    ),
    **dict.fromkeys(("own_code", "questions", "resolver_input", "frames", "memory_use"), 2),
    **dict.fromkeys(("exporting", "holding", "patched_wheels"), 3),
    **dict.fromkeys(("sizes", "disk_room", "uv_cache", "fetching"), 2),
    "transfers": 1,
    **dict.fromkeys(("exporting", "holding", "filling"), 3),
    **dict.fromkeys(("lockable", "sdist_statements", "build_constraints"), 1),
    **dict.fromkeys(("damage", "blame"), 1),
    **dict.fromkeys(("digests", "installed", "ledger", "inspection", "originals", "settling", "constraints"), 2),
    **dict.fromkeys(("verifying", "repair"), 3),
    **dict.fromkeys(("archives", "building", "build_hooks", "sdists"), 2),
    **dict.fromkeys(("member_names", "overlays", "overlay_tables"), 1),
    **dict.fromkeys(("unpacking", "preloading", "trusted"), 2),
    "overlaying": 3,
    **dict.fromkeys(("needs", "need_tables", "package_managers", "interpreters", "preflight"), 1),
    **dict.fromkeys(("machine", "sightings", "whole_files"), 2),
    **dict.fromkeys(("stating", "readiness", "working"), 3),
    **dict.fromkeys(("recipes", "recipe_tables", "build_records"), 1),
    **dict.fromkeys(("sdist_unpacking", "build_tools", "build_room", "build_store", "build_judging", "products"), 2),
    **dict.fromkeys(("build_shop", "source_builds", "in_tree"), 3),
    **dict.fromkeys(
        ("troubles", "trouble_clauses", "trouble_devices", "trouble_rules", "trouble_tables", "diagnosis"), 1
    ),
    "environment_facts": 2,
    **dict.fromkeys(("cli", "__main__"), 4),
    **dict.fromkeys(("backends", "proofs", "expectations", "proof_reports"), 1),
    "contained": 2,
    "proving": 3,
    "kernels": 0,
    "": 0,  # the package itself holds the version
}
"""Module or folder of patchlock → storey; a new module has its storey written here."""

HEAVY = {"requests", "libcst", "rich", "ruamel", "click"}
FACE = {"click", "rich"}
IMPURE = {"subprocess", "socket", "requests", "urllib.request", "shutil", "tempfile"}
"""What no module of the first storey has a use for."""


def _modules() -> dict[str, ast.Module]:
    """Give each module by its dotted name below patchlock; a package by its folder."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


MODULES = _modules()


def _imports(node: ast.AST, *, at_import: bool) -> Iterator[str]:
    """Name what a module imports, `from a import b` as `a.b`; with `at_import` only what runs when it is imported."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                assert level == 0, "relative imports hide the storey"
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() if at_import:
                continue
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse) if at_import:
                for statement in orelse:
                    yield from _imports(ast.Module(body=[statement], type_ignores=[]), at_import=True)
            case _:
                yield from _imports(child, at_import=at_import)


@functools.cache
def _imported(name: str, at_import: bool) -> tuple[str, ...]:
    return tuple(_imports(MODULES[name], at_import=at_import))


def _of_ours(name: str, *, at_import: bool = False) -> set[str]:
    """Name the modules of patchlock that a module imports, below patchlock; "" is the package itself."""
    found = set()
    for imported in _imported(name, at_import):
        if imported.split(".")[0] == "patchlock":
            below = imported.removeprefix("patchlock").removeprefix(".")
            while below and below not in MODULES:
                below = below.rpartition(".")[0]
            found.add(below)
    return found


def _tops(name: str, *, at_import: bool) -> set[str]:
    return {imported.split(".")[0] for imported in _imported(name, at_import)}


def _top(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


def _below(top: str) -> list[str]:
    return [name for name in MODULES if _top(name) == top]


def test_table_of_the_rooms_has_each_module_in_the_column_of_its_storey() -> None:
    found: dict[str, int] = {}
    for line in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) == 6:  # what it is about, and the first three storeys
            for storey, cell in enumerate(cells[2:5], 1):
                found |= dict.fromkeys(re.findall(r"`([a-z_]+)/?`", re.sub(r"\([^)]*\)", "", cell)), storey)
    assert found == {name: storey for name, storey in STOREYS.items() if 1 <= storey <= 3}


def test_every_module_has_a_storey() -> None:
    assert {_top(name) for name in MODULES} == STOREYS.keys()


def test_modules_import_only_from_their_storey_and_lower_ones() -> None:
    for name in MODULES:
        higher = {other for other in _of_ours(name) if STOREYS[_top(other)] > STOREYS[_top(name)]}
        assert higher == set(), name


def test_no_module_is_reached_from_itself() -> None:
    reached = {name: _of_ours(name, at_import=True) - {name} for name in MODULES}
    before = {}
    while reached != before:
        before = reached
        reached = {name: others.union(*(before[other] for other in others)) for name, others in before.items()}
    assert [name for name, others in reached.items() if name in others] == []


def test_kernels_import_nothing_of_ours() -> None:
    assert {name: _of_ours(name) for name in _below("kernels") if _of_ours(name)} == {}


def test_ensures_and_ops_share_no_code() -> None:
    allowed = {"ensures", "model", "errors", "lazily", "vocabulary"}
    for name in _below("ensures"):
        assert {other for other in _of_ours(name) if _top(other) not in allowed} == set(), name
    for name in _below("ops"):
        assert {other for other in _of_ours(name) if _top(other) == "ensures"} == set(), name


def test_only_the_face_knows_click_and_rich() -> None:
    for name in MODULES:
        assert _top(name) == "cli" or _tops(name, at_import=False) & FACE == set(), name


def test_nothing_heavy_is_imported_at_import() -> None:
    for name in MODULES:
        allowed = {"click"} if _top(name) == "cli" else set()
        assert (_tops(name, at_import=True) & HEAVY) - allowed == set(), name


def test_first_storey_does_no_io() -> None:
    for name in (name for name in MODULES if STOREYS[_top(name)] == 1):
        imported = set(_imported(name, at_import=False))
        assert {one for one in imported if one in IMPURE or one.split(".")[0] in IMPURE} == set(), name
        calls = {
            node.func.id
            for node in ast.walk(MODULES[name])
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert calls & {"open", "print", "input", "exec", "eval"} == set(), name


def test_only_process_starts_programs() -> None:
    starts = re.compile(r"subprocess\.\w+|os\.(system|popen|fork|exec\w+|spawn\w+|posix_spawn\w*|startfile)")
    for name in MODULES.keys() - {"process", "kernels.gate", "kernels.forks"}:
        calls = [ast.unparse(node.func) for node in ast.walk(MODULES[name]) if isinstance(node, ast.Call)]
        assert [call for call in calls if starts.fullmatch(call)] == [], name
