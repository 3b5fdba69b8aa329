"""The command line: one module for each command, and the one place that catches unexpected errors.

In: words of a command line. Out: lines or one JSON envelope, and an exit code. May import every room. `COMMANDS` says
which commands there are; each is imported when it is asked for, and click too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from patchlock import __version__
from patchlock.core import relative_paths
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import (
    EXIT_INTERRUPTED,
    EXIT_USAGE_OR_BUG,
    BugError,
    InterruptedCommandError,
    PatchlockError,
    from_os,
)

COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": ("_list", "Show the apps, the profiles they support, and what is installed."),
    "info": ("_info", "Show an app: size, licences, memory, machines, what is proved."),
    "plan": ("_plan", "Show what install would do; change nothing."),
    "install": ("_install", "Patch an app, install it and check that it works."),
    "run": ("_run", "Start an installed app; arguments after `--` go to it."),
    "update": ("_install", "Update an installed app; your edits are kept."),
    "uninstall": ("_remove", "Remove an installed app; your own files stay unless --purge."),
    "status": ("_status", "Show what is installed, interrupted, out of date or running."),
    "verify": ("_verify", "Check that an installed app still works."),
    "doctor": ("_doctor", "Find known problems of this machine, and their fixes."),
    "cache": ("_cache", "Show the disk space in use, or free it."),
    "report": ("_report", "Write one file for a bug report, without personal data."),
    "new-app": ("_new_app", "Draft an app file, patches and a lock for a repository."),
    "patch": ("_patch", "Show an app's patches, or apply them to a clone of yours."),
    "lock": ("_lock", "Make or check lockfiles, one for each app and profile."),
    "detect": ("_detect", "Show this machine, and which profile fits it and why."),
    "models": ("_models", "List the models that an app downloads, or fetch them."),
    "bench": ("_bench", "Measure one job of an app on each installed profile."),
    "outdated": ("_status", "Show which installed apps have something newer."),
    "rollback": ("_install", "Go back to the previous version of an app."),
    "bundle": ("_bundle", "Write one file with everything an offline install needs."),
    "trust": ("_trust", "Allow another catalogue to run its code here."),
    "completions": ("_completions", "Print the completion script of a shell."),
    "self": ("_self", "Update or remove patchlock itself."),
    "help": ("_help", "Show the help of a command, or list all commands."),
    "check": ("_check", "Validate the catalogue: files, patches, cases, locks."),
    "why": ("_why", "Explain why a package is in a lock, and what limits it."),
    "export": ("_export", "Write a lock as PEP 751, SBOM, Dockerfile or compose.yaml."),
    "scan": ("_scan", "Find the GPU architectures that wheels have code for."),
    "sdist": ("_sdist", "Show what an sdist requires, as a [[metadata]] table."),
    "index": ("_index", "Update the recorded indexes of the catalogue."),
    "matrix": ("_matrix", "List all pairs as JSON, for a CI matrix."),
}
"""Name → module here that has it (as a function of that name with `_command`), and what the overview says."""

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Use": ("detect", "list", "info", "plan", "install", "run", "update", "uninstall"),
    "Maintain": ("status", "verify", "doctor", "cache"),
    "Author": ("new-app", "patch", "lock"),
}
"""What `--help` shows; the rest is one level down, in `patchlock help --all`."""
MORE: Mapping[str, tuple[str, ...]] = {
    "More to use and maintain": (
        "report",
        "models",
        "bench",
        "outdated",
        "rollback",
        "bundle",
        "trust",
        "completions",
        "self",
        "help",
    ),
    "More to author": ("check", "why", "export", "scan", "sdist", "index", "matrix"),
}


_AFTER_CTRL_C = {
    **dict.fromkeys(("install", "update", "rollback"), "run the same command again to finish it"),
    "lock": "every lock is new or as it was; run the same command again",
    "models": "the same command continues the download",
    "sdist": "nothing was changed",
}
"""Command → what becomes of what it has begun."""


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
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json = any(word.partition("=")[0] == "--json" for word in ours)
    try:
        os.environ.update(relative_paths.resolved(os.environ))
        return _by_click(arguments, as_json)
    except PatchlockError as error:
        return _failed(error, arguments, as_json)
    except BrokenPipeError:  # the reader of stdout has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _failed(from_os(error), arguments, as_json)
    except KeyboardInterrupt:
        after = _AFTER_CTRL_C.get(_command_path(arguments), "")
        if as_json:
            stopped = InterruptedCommandError("interrupted", remedy=after or "run the same command again")
            return fail(stopped, _command_path(arguments), True)
        echo(f"interrupted; {after}" if after else "interrupted", err=True)
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the error boundary
        return _failed(_bug(error, arguments), arguments, as_json)
    finally:
        _close_log()


def _close_log() -> None:
    if "logging" in sys.modules:
        from patchlock.cli import _log

        _log.close()


def _failed(error: PatchlockError, arguments: Sequence[str], as_json: bool) -> int:
    """Keep the error for `patchlock report`, print it, and give its exit code."""
    from patchlock.cli import _folders, _last_errors
    from patchlock.cli._output import fail

    command = _command_path(arguments)
    _last_errors.remember(_folders.cache(), error, command)
    return fail(error, command, as_json, arguments)


def _command_path(arguments: Sequence[str]) -> str:
    """Name the command that a line asks for, with that of its group: `patch undo`; "" where there is none."""
    words = (word for word in arguments if not word.startswith("-"))
    name, inner = next(words, ""), next(words, "")
    if name not in COMMANDS:
        return ""
    # A group's module is there, unless reading it is what has failed.
    group = getattr(sys.modules.get(f"{__name__}.{COMMANDS[name][0]}"), f"{name.replace('-', '_')}_command", None)
    return f"{name} {inner}" if inner in getattr(group, "commands", {}) else name


def _by_click(arguments: list[str], as_json: bool) -> int:
    import click

    from patchlock.cli._commands import patchlock
    from patchlock.cli._output import echo, fail_usage, is_terminal

    if "_PATCHLOCK_COMPLETE" in os.environ:
        from patchlock.cli import _completions  # registers PowerShell

        _completions.register()
    try:
        if arguments in ([], ["install"]) and is_terminal(sys.stdin) and is_terminal(sys.stdout):
            from patchlock.cli import _guide

            return _guide.guide()
        result = patchlock.main(args=arguments, prog_name="patchlock", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        echo(error.format_message())
        if not arguments and os.environ.get("TERM") == "dumb" and sys.stdout.isatty():
            echo(
                "\nno guide: TERM=dumb says that this terminal only writes lines; begin with `patchlock list`", err=True
            )
        return EXIT_USAGE_OR_BUG
    except click.UsageError as error:
        return fail_usage(error, _command_path(arguments), as_json)
    except click.Abort as error:
        if error.__cause__ is None:  # at a question: its line is not ended, and nothing goes on that could be finished
            echo("\ninterrupted", err=True)
            return EXIT_INTERRUPTED
        raise KeyboardInterrupt from error
    return result if isinstance(result, int) else 0


def _bug(error: Exception, arguments: Sequence[str]) -> BugError:
    """Write down what a report needs, and say where."""
    import platform
    import tempfile
    import traceback

    from patchlock.cli import _folders

    head = f"patchlock {__version__}, Python {platform.python_version()}, {platform.platform()}\n{list(arguments)}\n\n"
    with tempfile.NamedTemporaryFile(
        "w", prefix=_folders.bug_prefix(), suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(without_secrets(head + "".join(traceback.format_exception(error))))
    return BugError(
        f"internal error in patchlock: {type(error).__name__}: {error}",
        where=file.name,
        remedy="please report it, with the file that `patchlock report` writes",
    )
