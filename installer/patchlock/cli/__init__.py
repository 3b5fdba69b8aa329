"""The command line: one module for each command, and the one place that catches unexpected errors.

In: words of a command line. Out: lines or one JSON envelope, and an exit code. May import every room. `COMMANDS` says
which commands there are; each is imported when it is asked for, and click too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from patchlock import __version__
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import EXIT_INTERRUPTED, EXIT_USAGE_OR_BUG, BugError, PatchlockError, from_os

COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": ("patchlock.cli._list", "Show the apps, the profiles, and which pairs are locked."),
    "detect": ("patchlock.cli._detect", "Show what this machine is, and which profile fits it and why."),
    "plan": ("patchlock.cli._plan", "Show what install would do, with the diff of every patch; change nothing."),
    "install": ("patchlock.cli._install", "Patch the app's source, install its lock and prove that it works."),
    "update": (
        "patchlock.cli._install",
        "Bring an installed app to what upstream's branch has now; your edits are kept.",
    ),
    "verify": (
        "patchlock.cli._verify",
        "Prove that an installed app still works: packages, imports, its start, a computation on the device.",
    ),
    "bench": (
        "patchlock.cli._bench",
        "Measure one job of an app on each profile that it is installed on: time, memory, device.",
    ),
    "doctor": (
        "patchlock.cli._doctor",
        "Name the known troubles that this machine shows, what cures each, and the command that proves the cure.",
    ),
    "models": (
        "patchlock.cli._models",
        "List the models that an app downloads, and fetch them into their places with --fetch.",
    ),
    "run": ("patchlock.cli._run", "Start an installed app; what follows `--` goes to it."),
    "rollback": (
        "patchlock.cli._install",
        "Go back to the generation made before the one in use, environment and source together.",
    ),
    "prune": (
        "patchlock.cli._remove",
        "Remove every generation but the one in use, and say how much room that frees.",
    ),
    "uninstall": (
        "patchlock.cli._remove",
        "Remove an installed app; models, outputs and edits of yours stay unless --purge.",
    ),
    "lock": ("patchlock.cli._lock", "Make the lockfiles of apps, one for each profile and platform, or check them."),
    "index": (
        "patchlock.cli._index",
        "Keep the recorded indexes of the catalogue up to date; for its maintainers.",
    ),
    "export": (
        "patchlock.cli._export",
        "Write a lock in another shape: PEP 751, an SBOM with our patches, or a Dockerfile.",
    ),
    "check": (
        "patchlock.cli._check",
        "Say whether the catalogue holds: its files, patches on upstream's commit and on cases, locks.",
    ),
    "matrix": (
        "patchlock.cli._matrix",
        "List the pairs of app, profile and platform as JSON, for the matrix of a CI job.",
    ),
    "scan": (
        "patchlock.cli._scan",
        "Find the GPU architectures that wheels have code for, without installing or downloading them whole.",
    ),
    "why": ("patchlock.cli._why", "Say why a distribution is in a lock: who asked, what bounds it, where it is from."),
    "sdist": ("patchlock.cli._sdist", "Show what an sdist and its build require, as a [[metadata]] table."),
    "new-app": (
        "patchlock.cli._new_app",
        "Say what keeps a repository's app from this machine; propose its patches, file and lock.",
    ),
    "trust": (
        "patchlock.cli._trust",
        "Let a catalogue that did not come with patchlock run its codemods, builds and checks here.",
    ),
    "patch": (
        "patchlock.cli._patch",
        "Show what the patches of an app do; bring them into any clone of yours.",
    ),
}
"""Name → module that holds it (as a function of that name with `_command`), and what the overview says."""


def main(arguments: Sequence[str]) -> int:
    """Run a command line to its end; every expected failure becomes one message and its exit code.

    Returns:
        0 done, 1 the world says no, 2 usage or a bug, 130 interrupted.
    """
    from patchlock.cli._output import echo, fail

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    arguments = list(arguments)
    command = next((word for word in arguments if word in COMMANDS), "")
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    try:
        return _by_click(arguments, command, as_json)
    except PatchlockError as error:
        return fail(error, command, as_json)
    except BrokenPipeError:  # the reader of stdout has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return fail(from_os(error), command, as_json)
    except KeyboardInterrupt:
        after = {
            "lock": "every lock is new or as it was; run the same command again",
            "sdist": "nothing was changed",
        }.get(command, "the next `patchlock install` finishes or undoes what was begun")
        echo(f"interrupted; {after}", err=True)
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the error boundary
        return fail(_bug(error, arguments), command, as_json)


def _by_click(arguments: list[str], command: str, as_json: bool) -> int:
    import click

    from patchlock.cli._commands import patchlock
    from patchlock.cli._output import echo, fail_usage

    try:
        result = patchlock.main(args=arguments, prog_name="patchlock", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message())
        return EXIT_USAGE_OR_BUG
    except click.UsageError as error:
        return fail_usage(error, command, as_json)
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return result if isinstance(result, int) else 0


def _bug(error: Exception, arguments: Sequence[str]) -> BugError:
    """Write down what a report needs, and say where."""
    import platform
    import tempfile
    import traceback

    head = f"patchlock {__version__}, Python {platform.python_version()}, {platform.platform()}\n{list(arguments)}\n\n"
    with tempfile.NamedTemporaryFile(
        "w", prefix="patchlock-bug-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(without_secrets(head + "".join(traceback.format_exception(error))))
    return BugError(
        f"patchlock met a mistake of its own: {type(error).__name__}: {error}",
        where=file.name,
        remedy="please report it with that file",
    )
