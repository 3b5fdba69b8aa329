"""Tell a person what was chosen for which machine and why, and ask where a wrong choice would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchlock.cli import _output
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets
from patchlock.model.errors import UncertainChoiceError, UsageError

if TYPE_CHECKING:
    from patchlock.hardware.profile_choice import ProfileChoice


def print_warnings(found: ProfileChoice | None, *, as_json: bool, doubts: bool = True) -> None:
    """Say on stderr what computes more slowly than it could; commands say it at their end, `install` at once too."""
    if found is None or as_json:
        return
    for warning in (*(found.choice.doubts if doubts else ()), *found.choice.warnings):
        _output.echo(f"warning: {warning}", err=True)


def print_choice(found: ProfileChoice, *, as_json: bool) -> None:
    """Say in one line on stderr what was chosen and why, and in one more each what a person should know."""
    if as_json:
        return
    name = found.choice.chosen.profile.name
    if found.choice.why != "it was named":
        _output.note(f"profile {name}: {found.choice.why}")
    for note in found.notes:
        _output.note(f"note: {note}")


def confirm_choice(found: ProfileChoice, app: str, *, as_json: bool) -> None:
    """Tell, and go on only where the machine is this one and the choice is sure, or a person says so.

    Raises:
        click.exceptions.Exit: a person says no.
        UsageError: the machine is another one's recording.
        UncertainChoiceError: a better profile may have been missed, and nobody can be asked.
    """
    name = found.choice.chosen.profile.name
    is_recorded = found.observed.is_recorded
    print_warnings(found, as_json=as_json, doubts=is_recorded)
    print_choice(found, as_json=as_json)
    if is_recorded:
        given = _output.given(
            "source", "commit", "with", "without", "accept-edited-lock", "local-addresses", "catalogue"
        )
        words = command_lines.joined(["patchlock", "plan", app, "--profile", name, *given])
        raise UsageError(
            f"PATCHLOCK_HOST names another machine, and nothing is installed for one: `{without_secrets(words)}` shows "
            "what would be done there",
            remedy="to install on this machine, unset PATCHLOCK_HOST",
        )
    if not found.choice.doubts:
        return
    if as_json or not _output.can_ask():
        raise _uncertain(found)
    for doubt in found.choice.doubts:
        _output.echo(f"warning: {doubt}", err=True)
    if not _output.agreed(f"Install on {name} all the same?"):
        _output.leave("nothing was installed")


def _uncertain(found: ProfileChoice) -> UncertainChoiceError:
    name = found.choice.chosen.profile.name
    return UncertainChoiceError(
        f"{name} fits this machine, but a better profile may have been missed",
        remedy=f"if {name} is meant, name it: --profile {name}",
        evidence=found.choice.doubts,
    )
