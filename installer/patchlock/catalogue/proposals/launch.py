"""How an app seems to be started, and whose import proves that its environment fits; pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from packaging.utils import NormalizedName

from patchlock.catalogue.proposals import module_names
from patchlock.catalogue.proposals.findings import Files, Launching
from patchlock.catalogue.proposals.launch_commands import LaunchCommand
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees

_MOST = 6
PLACEHOLDER = ("python",)
"""Stands for a command that nothing says."""
_OTHERS = frozenset({"tests", "test", "docs", "doc", "examples", "scripts", "tools", "benchmarks"})
"""Folders of a project that are not the app."""


def launching(commands: Sequence[LaunchCommand]) -> Launching:
    """Take the likeliest command.

    Args:
        commands: the likeliest first.
    """
    if not commands:
        why = "no document and no file says how it is started, or only how it is trained; TODO: name the command"
        return Launching(command=PLACEHOLDER, environment={}, why=why, others=())
    first, *others = commands
    told = tuple(f"{' '.join(one.command)} ({one.why})" for one in others[:_MOST])
    return Launching(command=first.command, environment=first.environment, why=first.why, others=told)


def modules_to_import(
    files: Files, required: Collection[NormalizedName], launch: Launching, trees: Trees | None = None
) -> tuple[str, ...]:
    """Choose required modules that the app's program imports as soon as it starts: torch, then in their order there.

    Where it is known of none, those that the app's packages import.

    Args:
        files: of the tree.
        required: distributions that its requirement files name.
        launch: how it is started.
        trees: of its Python files, where they are known.
    """
    parsed = trees if trees is not None else Trees(files)
    roots = sorted(path.parent.name for path in parsed.files if path.match("*/__init__.py") and len(path.parts) == 2)
    of_packages = (*PLACEHOLDER, "-c", "\n".join(f"import {root}" for root in roots if root not in _OTHERS))
    for command in (launch.command, of_packages):
        reached = import_graph.reached(parsed.files, command, launch.environment.get("PYTHONPATH", ""), parsed)
        tops = dict.fromkeys(one.module.partition(".")[0] for one in reached.modules)
        if theirs := [top for top in tops if module_names.distribution_of(top) in required]:
            return tuple(sorted(theirs, key=lambda top: top != "torch")[:_MOST])
    return ()
