"""`new-app`: look at a repository that the catalogue does not have, and propose its file."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from patchlock.cli import _conflict_report, _launcher, _lock_table, _options, _output, _progress
from patchlock.cli._paths import UserPath
from patchlock.core import command_lines
from patchlock.model.addresses import without_secrets
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from patchlock.catalogue.proposals.downloads import Download
    from patchlock.catalogue.proposals.findings import Issue, Proposal
    from patchlock.catalogue.reader import Catalogue
    from patchlock.locks.conflicts.explanation import Explanation
    from patchlock.model.errors import PatchlockError
    from patchlock.model.fits import Platform
    from patchlock.model.profile import Profile
    from patchlock.model.progress import Progress
    from patchlock.operations.further_locks import OtherLock
    from patchlock.operations.lock_trials import LockResult
    from patchlock.operations.proposal_scratch import LockSettings
    from patchlock.operations.propose_app import ProposalResult

_SHOWN = 5
_ALL, _FIRST = "all", "cpu"
"""What stands for every profile, and which of them is tried first."""
_FOLDERS = ("profiles", "patches", "lockfiles", "docs/schemas")
"""What a catalogue has."""


@click.command("new-app")
@click.argument("url")
@click.option("--name", metavar="NAME", help="Name of the app (default: that of its repository).")
@click.option("--commit", "revision", metavar="REV", help="A commit or branch of upstream (default: its HEAD).")
@click.option("--source", metavar="PATH-OR-URL", help="Take upstream from here: a clone, a bare mirror, a fork.")
@click.option("--requirements", metavar="FILE", help="The app's requirement file (default: found in the repository).")
@click.option(
    "--into",
    type=UserPath(file_okay=False),
    help="Write the draft into this catalogue; a new folder becomes one (default: the catalogue in use).",
)
@click.option(
    "--profile",
    default="cpu",
    show_default=True,
    metavar="PROFILE",
    help="Try to lock for this profile, or for `all`.",
)
@click.option("--platform", metavar="PLATFORM", help="Try to lock for this platform (default: this machine's).")
@click.option(
    "--solve", is_flag=True, help="If requirements conflict, write the smallest edits that resolve it into the draft."
)
@click.option(
    "--explain",
    type=click.FloatRange(min=0),
    default=120,
    metavar="SECONDS",
    help="How long to look for the cause of a conflict, and for edits that resolve it (default: 120).",
)
@_options.common
def new_app_command(
    url: str,
    name: str | None,
    revision: str | None,
    source: str | None,
    requirements: str | None,
    into: Path | None,
    profile: str,
    platform: str | None,
    solve: bool,
    explain: float,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Draft an app file, patches and a lock for a repository.

    Lists each problem with its file and line. Comments in the draft give the reason for each decision. Runs none of the
    app's code.

    \b
    Example:
      patchlock new-app https://github.com/SWivid/F5-TTS --solve
    """
    from patchlock.catalogue.proposals import app_names
    from patchlock.environments import named_downloads
    from patchlock.operations import proposal_scratch, propose_app

    opened = _options.open_catalogue(catalogue)
    target, is_new = _target(opened, into)
    opened = opened if is_new else target  # whose profiles its locks are for
    chosen = opened.profile(_FIRST if profile == _ALL else profile)
    wanted_platform = _platform(chosen, platform)
    called = name if name is not None else app_names.name_of(url)
    app_names.name_of(url)  # so that an address that is none is told in any case
    app_names.require_name(called, target)
    progress = _progress.progress(as_json)
    wanted = propose_app.ProposalRequest(
        catalogue=opened,
        cache=_options.cache(),
        url=url,
        name=called,
        profile=chosen,
        source=source,
        revision=revision,
        requirements=PurePosixPath(requirements) if requirements is not None else None,
        for_all=profile == _ALL,
    )
    with progress.stage("look"):
        proposed = propose_app.propose(wanted, progress.say)
        count = len(proposed.proposal.issues)
        progress.say(f"{count} kind{'' if count == 1 else 's'} of problem")
    with tempfile.TemporaryDirectory(prefix="patchlock-new-app-") as folder:
        scratch = proposal_scratch.create_scratch_catalogue(opened, Path(folder) / "catalogue")
        trying = proposal_scratch.LockSettings(
            catalogue=scratch,
            cache=_options.cache(),
            profile=chosen,
            platform=wanted_platform,
            date=proposed.date,
            source=source,
            solve=solve,
            seconds=explain,
            sets={one: scratch.shared(one) for one in scratch.shared_names()},
            importers=functools.cache(proposed.importers),
            tell=progress.say,
        )
        profiles = [opened.profile(one) for one in opened.profile_names()] if profile == _ALL else []
        keep = functools.partial(_keep_draft, scratch.root, target.root, is_new=is_new)
        proposed, locked, others = _lock(proposed, trying, profiles, progress, keep)
        progress.say("asking how large its models are")
        downloads = proposed.downloads(locked.proposal.facts.launch)
        sizes = named_downloads.sizes(downloads)
        if locked.stuck is not None:
            found, order = locked.stuck
            shown = _conflict_report.for_profiles(found, order, (chosen.name,))
            locked = dataclasses.replace(locked, stuck=(shown, order))
        file = _put(scratch.root, target.root, called, is_new=is_new)
    error = locked.error or _objection(proposed, file)
    if as_json:
        return _output.succeed("new-app", _data(proposed, locked, file, others, downloads, sizes), error)
    named = target.root if into or catalogue else None
    _lock_table.warn(
        {
            locked.pair: locked.warnings,
            **{f"{called} × {one.profile} × {one.platform}": one.warnings for one in others},
        }
    )
    _output.echo("\n".join(_report(proposed, locked, file, named, others, _download_lines(downloads, sizes))))
    return 1 if error is not None else 0


def _lock(
    proposed: ProposalResult,
    trying: LockSettings,
    profiles: Sequence[Profile],
    progress: Progress,
    keep: Callable[[Proposal], None],
) -> tuple[ProposalResult, LockResult, tuple[OtherLock, ...]]:
    """Lock a proposal for its first pair, and for further profiles; what goes wrong with a lock costs no draft.

    Args:
        proposed: what to lock.
        trying: the first pair.
        profiles: the further ones.
        progress: is told of each stage.
        keep: is given the draft where this fails, as it was when the last stage had ended.
    """
    from patchlock.catalogue.proposals import stand_in_uses
    from patchlock.operations import further_locks, lock_trials, proposal_locks, proposal_start

    proposal = proposed.proposal
    others: tuple[OtherLock, ...] = ()
    try:
        with progress.stage("lock"):
            locked = proposal_locks.lock_proposal(proposal, trying)
            proposal = locked.proposal
            progress.say(_packages(locked.packages) if locked.packages else "no lock yet")
        if locked.error is None:
            with progress.stage("start"):
                started = proposal_start.prove(proposed, locked, trying)
                locked = started.locked
                proposal = locked.proposal
                proposed = dataclasses.replace(proposed, outcomes=lock_trials.outcomes(proposal, trying))
                found = "imports are missing" if started.missing else "none of its own imports is known to be missing"
                if any(one.name == stand_in_uses.NAME and one.is_at_start for one in proposal.issues):
                    found = "it calls what is left out"
                progress.say(found if proposed.commands else "no program is known whose imports could be followed")
        if profiles:
            with progress.stage("others"):
                locked, others = further_locks.lock_others(locked, trying, profiles)
                progress.say(f"{sum(one.packages > 0 for one in others)} of {len(others)} further pairs have a lock")
    except Exception:
        keep(proposal)
        raise
    return proposed, locked, others


def _keep_draft(scratch: Path, root: Path, proposal: Proposal, *, is_new: bool) -> None:
    """Bring a draft to its place without locks: nobody knows which of them are whole."""
    from patchlock.operations import proposal_scratch

    shutil.rmtree(scratch / "lockfiles", ignore_errors=True)
    proposal_scratch.write(proposal, scratch)
    _output.echo(f"written, without locks: {_put(scratch, root, proposal.name, is_new=is_new)}", err=True)


def _objection(proposed: ProposalResult, file: Path) -> PatchlockError | None:
    from patchlock.model.errors import PatchError

    if not proposed.problems:
        return None
    return PatchError(
        "patches of the proposal do not do what they say",
        where=str(file),
        remedy="correct them there, as the lines say",
        evidence=proposed.problems,
    )


def _platform(profile: Profile, name: str | None) -> Platform:
    from patchlock.hardware import probes
    from patchlock.model.errors import UsageError, nearest
    from patchlock.model.platforms import platform_of

    known = {one.name: one for one in profile.platforms}
    here = platform_of(probes.probe())
    if name is None:
        return known.get(here.name, profile.platforms[0]) if here is not None else profile.platforms[0]
    if name not in known:
        raise UsageError(f'{profile.name} has no platform "{name}"', remedy=nearest(name, known))
    return known[name]


# --- where it goes ----------------------------------------------------------------------------------------------------


def _target(opened: Catalogue, into: Path | None) -> tuple[Catalogue, bool]:
    """Open the catalogue that the proposal goes to; say whether it is still to be made."""
    import os

    from patchlock.catalogue import location
    from patchlock.catalogue.reader import Catalogue
    from patchlock.model.errors import UsageError

    root = into.absolute() if into is not None else opened.root
    if into is not None and (not root.exists() or not any(root.iterdir()) or _is_free_repository(root)):
        return Catalogue(root=root), True
    if not ((root / "profiles").is_dir() and (root / "patches").is_dir()):
        raise UsageError(
            "that folder holds something else than a catalogue",
            where=str(root),
            remedy="name a new or an empty folder, or the root of a git repository",
        )
    if location.is_bundled(root) or not os.access(root / "patches", os.W_OK):
        raise UsageError(
            "the catalogue in use cannot be written to",
            where=str(root),
            remedy="give a folder of yours: --into FOLDER; it becomes a catalogue with the same profiles",
        )
    return Catalogue(root=root), False


def _is_free_repository(root: Path) -> bool:
    """Tell whether a folder is a git repository's root, with nothing where a catalogue has its folders."""
    return (root / ".git").exists() and not any((root / name).exists() for name in _FOLDERS)


def _put(scratch: Path, root: Path, name: str, *, is_new: bool) -> Path:
    """Bring the proposal and its lock to their places, which nobody has, and the schemas that editors need there.

    A new folder becomes a catalogue first: it gets the profiles, and the patches for all apps.
    """
    from patchlock.catalogue import schemas

    if is_new:
        leave = shutil.ignore_patterns(name, "home", "lockfiles")
        shutil.copytree(scratch, root, ignore=leave, dirs_exist_ok=True)
    schemas.write(root)
    for folder in ("lockfiles", "patches"):  # the app's file last, which makes it an app
        if (scratch / folder / name).is_dir() and not (root / folder / name).exists():
            shutil.copytree(scratch / folder / name, root / folder / name)
    return root / "patches" / name / "app.toml"


# --- what is said -----------------------------------------------------------------------------------------------------


_STOPS = {
    "stops the start": "keeps it from being installed or started",
    "stops the first use": "may make it fail once that code runs",
    "may stop a use": "may make it fail, but nothing shows that its start leads there",
}
"""What a person reads for the words of `findings.STOPS`, which `--json` prints."""
_LEFT = {**_STOPS, "slower": "makes it slower"}
"""What a person reads of what the proposal leaves as it is."""
_CERTAIN = ("stops the start", "stops the first use")


def _report(
    proposed: ProposalResult,
    locked: LockResult,
    file: Path,
    named: Path | None,
    others: tuple[OtherLock, ...],
    downloads: list[str],
) -> list[str]:
    from patchlock.catalogue.proposals import findings
    from patchlock.catalogue.proposals.launch import PLACEHOLDER
    from patchlock.patches.outcomes import counted

    proposal = locked.proposal
    lines = [f"{proposal.name} at commit {proposal.commit[:12]}: {proposal.facts.title}"]
    lines += [""] if proposal.issues else []
    worst = ""
    for issue in findings.ranked(proposal.issues):
        if findings.stops(issue) != worst:
            worst = findings.stops(issue)
            lines += [f"{_STOPS.get(worst, worst)}:"]
        lines += _issue_lines(issue)
    requirements = proposal.requirements
    lines += ["", f"requirements: {requirements.path}, {requirements.why} ({requirements.count})"]
    lines += [f"  together with: {path}" for path in proposal.together if path != requirements.path]
    lines += [f"  also there: {one.path}, {one.why}" for one in proposal.alternatives[:_SHOWN]]
    lines.append(f"launch: {command_lines.joined(proposal.facts.launch.command)}, {proposal.facts.launch.why}")
    lines.append(f"licence: {proposal.facts.license}; Python {proposal.facts.python}: {proposal.facts.python_from}")
    needs = ", ".join(need.told for need in proposal.needs)
    lines += [f"needs of the machine: {needs}"] if needs else []
    lines += downloads
    ids = {outcome.patch for outcome in proposed.outcomes}
    more = len({section.written.patch.id for section in proposal.sections} - ids)
    counts = [f"{len(ids)}, {counted(proposed.outcomes)}"] if ids else []
    counts += [f"{more} for other profiles"] if more else []
    lines.append(f"patches: {'; '.join(counts) or 'none'}")
    lines += [f"  {problem}" for problem in proposed.problems]
    lines = [visible_name(line) for line in lines] + _of_lock(locked, proposed)
    lines += [
        f"  {one.profile} on {one.platform}: "
        + (_packages(one.packages) if one.packages else f"{'refused' if one.is_refused else 'no lock'}: {one.why}")
        + (f"; {one.missing}" if one.missing else "")
        for one in others
    ]
    for edit in dict.fromkeys(edit for one in others for edit in one.edits):
        names = dict.fromkeys(one.profile for one in others if edit in one.edits)
        lines.append(f"added to it for {', '.join(names)}: {edit}")
    left = [
        (stops, f"its TODO of {one.name}, which {_LEFT[stops]}: {one.remedy}")
        for one in findings.ranked(proposal.issues)
        if one.is_left and (stops := findings.stops(one)) in _LEFT
    ]
    doubtful = [told for stops, told in left if stops not in _CERTAIN]
    unknown = locked.unknown
    remarks = [one for one in proposal.remarks if not (unknown and one.endswith(unknown))]
    lines += [visible_name(f"look at: {remark}") for remark in (*remarks, *dict.fromkeys(doubtful))]
    at = _repeated(named)
    if not others:
        us = _launcher.own_command(_options.home())
        told = f"not tried, neither locked nor refused; `{us} lock {proposal.name}{at}` tries all"
        lines.append(f"other profiles: {told}")
    certain = [told for stops, told in left if stops in _CERTAIN]
    settle = [visible_name(f"get what its lock lacks: {unknown}")] if unknown else []
    settle += [visible_name(f"settle {told}") for told in [*dict.fromkeys(certain)][:_SHOWN]]
    if proposal.facts.launch.command == PLACEHOLDER:
        settle.append("settle the TODO of its [launch]: write there how it is started")
    return [*lines, "", f"written: {file}", *(f"next: {one}" for one in (*settle, _last_step(locked, file, named, at)))]


def _repeated(named: Path | None) -> str:
    """Repeat the options that a later command needs."""
    words = [*(["--catalogue", str(named)] if named is not None else []), *_output.given("source")]
    return f" {without_secrets(command_lines.joined(words))}" if words else ""


def _last_step(locked: LockResult, file: Path, named: Path | None, at: str) -> str:
    """Say how to go on with a proposal once its TODOs are settled, or what may give it a lock."""
    from patchlock.catalogue import agreement

    if way := _way(locked, f"remove {file.parent}, and propose it again"):
        return way
    pair = f"{locked.proposal.name} --profile {locked.pair.split(' × ')[1]}{at}"
    verb = "lock" if locked.error is not None else "install"
    then = [f"patch diff {pair}", f"{verb} {pair}"]
    if verb == "install" and named is not None and not agreement.is_trusted(named, _options.home()):
        then.insert(1, f"trust {command_lines.joined([str(named)])}")
    us = _launcher.own_command(_options.home())
    return f"read it through, then {' and '.join(f'`{us} {one}`' for one in then)}"


def _download_lines(downloads: Sequence[Download], sizes: Mapping[str, int]) -> list[str]:
    """Say which models the code names, each with its place, and with its size where its server tells."""
    from patchlock.model.byte_sizes import size_text

    lines = ["downloads when it runs, as its code names them:"] if downloads else []
    for one in downloads[:_SHOWN]:
        up_to = "up to " if one.is_put_together or not one.file else ""
        size = f"{up_to}{size_text(sizes[one.name])}" if one.name in sizes else "size unknown"
        when = ", named only as it runs" * one.is_put_together + ", as it starts" * one.is_at_start
        lines.append(f"  {one.name}: {size}{when} ({one.found.path}:{one.found.line})")
    more = len(downloads) - _SHOWN
    return [*lines, f"  (and {more} more; --json has all)"] if more > 0 else lines


def _issue_lines(issue: Issue) -> list[str]:
    lines = [f"{issue.name}: {issue.title}", f"  {issue.means}; {issue.remedy}"]
    lines += [f"    {place}" for place in issue.found[:_SHOWN]]
    more = len(issue.found) - _SHOWN
    return [*lines, f"    (and {more} more; --json has all)"] if more > 0 else lines


def _of_lock(locked: LockResult, proposed: ProposalResult) -> list[str]:
    lines = [f"added to it: {edit}" for edit in locked.edits]
    if locked.error is None:
        return [*lines, f"lock: {locked.pair}: {_packages(locked.packages)}"]
    lines.append(f"no lock: {locked.pair}: {str(locked.error).split(_lock_table.UV_ERROR_MARKER)[0]}")
    if locked.stuck is not None:
        lines += ["", _conflict_report.text(locked.pair, *locked.stuck)]
        lines += [
            f"no edit takes {name} out, with which it would resolve: {proposed.importers().told(name)}"
            for name in locked.stuck[0].kept
        ]
    if locked.attempts:
        lines += ["", "`--solve` has tried these and found no lock; none of it is in the proposal:"]
        lines += [f"  {attempt}" for attempt in locked.attempts]
    return lines


def _packages(count: int) -> str:
    return f"{count} package{'' if count == 1 else 's'}"


def _way(locked: LockResult, again: str) -> str:
    """Say how a proposal without a lock may get one; "" where it has one, or where `--solve` has found none."""
    from patchlock.model.errors import PolicyError

    if locked.error is None or locked.attempts:
        return ""
    if locked.stuck is not None:
        return _hint(locked.stuck[0], again)
    if isinstance(locked.error, PolicyError) and not click.get_current_context().params["solve"]:
        return f"{again} with `--solve`, which looks for what keeps the rules, and writes it into the proposal"
    return ""


def _hint(found: Explanation, again: str) -> str:
    """Say what `--solve` does about a conflict, and what it costs."""
    seconds = click.get_current_context().params["explain"]
    longer = (
        f"it looks for {seconds:g} s at most (--explain SECONDS), and tries files of later days before other versions"
    )
    if found.builds:
        return f"{again} with `--solve`, which writes the [[build]] above and what else resolves into it; {longer}"
    if found.tried:
        return f"{again} with `--solve`, which writes what resolves it into the proposal; {longer}"
    if found.is_complete:
        return f"no set of edits was found: {again} with `--solve`, which looks further; {longer}"
    return f"no edits were found in that time: {again}, with more time: --explain SECONDS"


def _data(
    proposed: ProposalResult,
    locked: LockResult,
    file: Path,
    others: tuple[OtherLock, ...],
    downloads: Sequence[Download],
    sizes: Mapping[str, int],
) -> dict[str, object]:
    from patchlock.catalogue.proposals import findings

    proposal = locked.proposal
    return {
        "name": proposal.name,
        "commit": proposal.commit,
        "file": str(file),
        "findings": [
            {
                "name": one.name,
                "stops": findings.stops(one),
                "title": one.title,
                "means": one.means,
                "remedy": one.remedy,
                "found": [{"path": str(f.path), "line": f.line, "text": f.text} for f in one.found],
            }
            for one in findings.ranked(proposal.issues)
        ],
        "downloads": [
            {
                "name": one.name,
                "bytes": sizes.get(one.name),
                "at_start": one.is_at_start,
                "path": str(one.found.path),
                "line": one.found.line,
            }
            for one in downloads
        ],
        "requirements": str(proposal.requirements.path),
        "launch": {
            "command": list(proposal.facts.launch.command),
            "environment": dict(proposal.facts.launch.environment),
            "why": proposal.facts.launch.why,
            "others": list(proposal.facts.launch.others),
        },
        "alternatives": [{"path": str(one.path), "why": one.why} for one in proposal.alternatives],
        "shared": [{"name": one.name, "why": one.why, "without": list(one.without)} for one in proposal.sets],
        "patches": [one.written.patch.id for one in proposal.sections],
        "problems": list(proposed.problems),
        "remarks": list(proposal.remarks),
        "lock": {
            "pair": locked.pair,
            "packages": locked.packages,
            "edits": list(locked.edits),
            "attempts": list(locked.attempts),
            "warnings": list(locked.warnings),
            "error": str(locked.error) if locked.error is not None else "",
            "others": [dataclasses.asdict(one) for one in others],
            "explanation": _conflict_report.data(locked.stuck[0]) if locked.stuck is not None else None,
        },
    }
