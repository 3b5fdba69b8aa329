"""`verify`: proves that an installation is as it was installed, and works; at three depths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchlock.model.errors import EXIT_NOT_CHECKED
from patchlock.model.kernel_results import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from patchlock.catalogue.expectations import ComparedResult
    from patchlock.model.kernel_results import KernelResult

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _options, _output, _progress
from patchlock.cli._paths import OutputFile

if TYPE_CHECKING:
    from patchlock.environments.generations import Receipt
    from patchlock.locks.lock_request import Request
    from patchlock.model.errors import VerifyError
    from patchlock.model.installation import Installation
    from patchlock.model.lockfile import Lock
    from patchlock.model.progress import Progress
    from patchlock.verify.checks import CheckResult
    from patchlock.verify.proof import ProofResult
    from patchlock.verify.reports import Report
    from patchlock.verify.verification import VerificationResult

_REPORT_HEAD = rb'<meta name="generator" content="patchlock">|^ "patchlock": "'
"""Is at the top of a report."""


@click.command("verify")
@_options.installed
@click.option("--quick", "depth", flag_value="quick", help="Do not run the app: check versions, presence and sizes.")
@click.option("--deep", "depth", flag_value="deep", help="Read every file too, and compare it with its RECORD.")
@click.option(
    "--report",
    "files",
    type=OutputFile(head=_REPORT_HEAD),
    multiple=True,
    help="Write what was proved to file.html or file.json, without personal data, so that you can share it.",
)
@_options.common
def verify_command(
    app: str, profile: str | None, depth: str | None, files: tuple[Path, ...], catalogue: Path | None, as_json: bool
) -> int:
    """Check that an installed app still works.

    \b
    Example:
      patchlock verify demo
      patchlock verify demo --deep
      patchlock verify demo --report proof.html
    """
    _require_formats(files, depth)
    installation = _alone(app, profile) if depth == "quick" else None
    if installation is not None:
        return _quick(installation, app, as_json)
    from patchlock.cli import _fallback
    from patchlock.environments import generations
    from patchlock.model import lockfile
    from patchlock.model.app import rules_of
    from patchlock.operations import lifecycle
    from patchlock.verify import verification

    request = _options.installed_request(catalogue, app, profile, as_it_is=True)
    progress = _progress.progress(as_json)
    lifecycle.recover(request, progress)
    installation = request.installation
    receipt = _options.require_current(request)
    folder = generations.generation(installation, receipt.id)
    path = verification.lock_file(folder, receipt, request.lock_path)
    lock = lockfile.parse(path.read_text(encoding="utf-8"), str(path))
    with progress.stage("verify"):
        if depth == "deep":
            origin = verification.Origin(
                platform=request.platform, cache=request.cache, exceptions=rules_of(request).exceptions
            )
            seen = verification.deep(folder, receipt, lock, origin, progress.transfer)
        else:
            seen = verification.quick(folder, receipt, lock)
        proved = _run(request, receipt, lock, progress)
        seen = dataclasses.replace(seen, notes=(*seen.notes, *_notes(request, receipt, proved)))
        results = (*seen.results, *proved.results)
        progress.say(verification.counted(results, proved.caveat))
    for file in files:
        _write_report(file, request, receipt, results, proved.report)
    passed = all(result.passed for result in results)
    cure = _cure(receipt, results, "" if passed else _fallback.other_profile(request, catalogue))
    if passed and receipt.unverified and receipt.unverified != proved.reservation:
        generations.write_receipt(folder, dataclasses.replace(receipt, unverified=proved.reservation))
    unverified = (proved.reservation, bool(proved.unverified))
    return _tell(installation, receipt, seen, results, depth or "plain", as_json, cure, unverified, proved.report)


def _require_formats(files: Iterable[Path], depth: str | None) -> None:
    """Refuse, before anything runs, what could not be written afterwards."""
    from patchlock.model.errors import UsageError

    for file in files:
        if file.suffix not in {".html", ".json"}:
            raise UsageError(f"a report is .html or .json, and not {file.name}", remedy="name it so")
        if not file.absolute().parent.is_dir():
            raise UsageError(f"there is no folder {file.parent}", remedy="make it, or name another one")
        if depth == "quick":
            raise UsageError("--quick proves nothing that a report could hold", remedy="leave it out")


def _write_report(
    file: Path, request: Request, receipt: Receipt, results: tuple[CheckResult, ...], report: Report
) -> None:
    import json

    from patchlock.core import atomic_files
    from patchlock.hardware import probes
    from patchlock.verify import shared_report

    say = shared_report.mask((request.home, request.cache, request.catalogue.root))
    data = shared_report.data(receipt, results, report, probes.probe(request.home), say)
    text = shared_report.html(data) if file.suffix == ".html" else json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    atomic_files.atomic_write(file, text)


def _alone(app: str, profile: str | None) -> Installation | None:
    """Find the installation by its folder, so that nothing of the catalogue is read; None where that takes more."""
    from patchlock.environments import generations
    from patchlock.model.installation import Installation

    names = [profile] if profile else [path.name.partition("@")[2] for path in _options.home().glob(f"{app}@*")]
    found = [Installation(folder=_options.home() / f"{app}@{name}") for name in names]
    if len(found) != 1 or found[0].journal.exists() or generations.current(found[0]) is None:
        return None
    return found[0]


def _quick(installation: Installation, app: str, as_json: bool) -> int:
    from patchlock.environments import generations
    from patchlock.verify import verification

    receipt = generations.require_current(installation, app)
    folder = generations.generation(installation, receipt.id)
    progress = _progress.progress(as_json)
    with progress.stage("verify"):
        seen = verification.quick_without_catalogue(folder, receipt)
        progress.say(verification.counted(seen.results))
    cure, unverified = _cure(receipt, seen.results), (receipt.unverified, False)
    return _tell(installation, receipt, seen, seen.results, "quick", as_json, cure, unverified)


def _run(request: Request, receipt: Receipt, lock: Lock, progress: Progress) -> ProofResult:
    """Run the checks of the profile and the app, but for the one that was answered without running anything."""
    from patchlock.environments import generations
    from patchlock.operations import install
    from patchlock.patches import outcomes

    told = {check.id for check in receipt.checks}  # of the patches that this generation needed
    executed = [check for p in request.app.patches for check in outcomes.smoke_checks_of(p) if check.id in told]
    folder = generations.generation(request.installation, receipt.id)
    proved = install.prove(request, lock, folder, progress, executed)
    return dataclasses.replace(proved, results=tuple(one for one in proved.results if one.id != "packages"))


def _notes(request: Request, receipt: Receipt, proved: ProofResult) -> tuple[str, ...]:
    """Say what is worth knowing about the kernels, and keep the report for the next comparison."""
    from patchlock.catalogue import optional_patches
    from patchlock.model.kernel_results import Verdict
    from patchlock.verify import proof, reports

    if not proved.report.judged:
        return ()
    app, profile = request.app, request.profile.name
    failed = {one.proof.kernel for one in proved.report.judged if one.proof.verdict is not Verdict.WORKS}
    return (
        *reports.notes(proved.report),
        *proof.store_report(request.installation, proved.report),
        *(
            f"{', '.join(sorted(failed & set(option.helps)))}: what does without is installed by "
            f"`patchlock install {app.name} --profile {profile} --with {option.name}`"
            for option in optional_patches.recommend(failed, app, profile, receipt.chosen)
        ),
    )


def _tell(
    installation: Installation,
    receipt: Receipt,
    seen: VerificationResult,
    results: tuple[CheckResult, ...],
    depth: str,
    as_json: bool,
    cure: tuple[str, str],
    unverified: tuple[str, bool],
    report: Report | None = None,
) -> int:
    """Print what was found, and give the exit code.

    Args:
        installation: that was looked at.
        receipt: of the generation.
        seen: what its files show.
        results: of all checks.
        depth: of the look.
        as_json: in an envelope.
        cure: what is to be done about failed checks: in words, and as a command.
        unverified: what the checks have not shown, or ""; and whether that is of the app itself, and was asked for.
        report: of the kernels.
    """
    from patchlock.environments import generations
    from patchlock.model.errors import NotCheckedError, PatchlockError
    from patchlock.verify import reports, verification

    drifted = verification.changed(installation)
    passed = all(result.passed for result in results)
    verification.keep(generations.generation(installation, receipt.id), depth, results)
    if as_json:
        data = {
            "generation": receipt.id,
            "depth": depth,
            "checks": [dataclasses.asdict(r) for r in results],
            "findings": [dataclasses.asdict(f) for f in seen.findings],
            "notes": list(seen.notes),
            "unverified": unverified[0],
            "drifted": [str(file) for file in drifted],
            "proofs": reports.data(report) if report is not None else None,
        }
        error: PatchlockError | None = None if passed else _error(installation, receipt, results, cure)
        if passed and all(unverified):
            error = NotCheckedError(unverified[0], where=str(installation.folder), remedy=_FILLED_IN)
        return _output.succeed("verify", data, error)
    rows = [
        (f"{'ok' if result.passed else 'FAILED':<6}  {result.level:<8}", f"{result.id}: {result.detail}")
        for result in results
    ]
    _output.echo(_output.rows(rows, indent=0))
    for line in _kernels(report.judged if report is not None else ()):
        _output.echo(line)
    of_app = (unverified[0],) if unverified[0] else ()
    if notes := [("note  ", note) for note in (*of_app, *seen.notes, *verification.edits(installation, drifted))]:
        _output.echo(_output.rows(notes, indent=0))
    if passed:
        return EXIT_NOT_CHECKED if all(unverified) else 0
    words, command = cure
    _output.echo(f"to {words}: patchlock {command}", err=True)
    return 1


_FILLED_IN = "write there how it is started, lock and install it again"


def _kernels(judged: Sequence[ComparedResult]) -> list[str]:
    """Lay out the kernels; on a terminal that is too narrow for it, by device and without indentation."""
    told = lines(judged)
    if _output.fits("\n".join(f"        {line}" for line in told if not line.startswith(" "))):
        return [f"        {line}" for line in told]
    devices = dict.fromkeys(one.proof.device for one in judged)
    parts = {device: lines((one for one in judged if one.proof.device == device), devices=False) for device in devices}
    return [line for device, part in parts.items() for line in (f"on {device}", *part)]


def _error(
    installation: Installation, receipt: Receipt, results: tuple[CheckResult, ...], cure: tuple[str, str]
) -> VerifyError:
    """Say in one error what a program reads that asked for JSON."""
    from patchlock.model.errors import VerifyError

    failed = [result for result in results if not result.passed]
    words, command = cure
    return VerifyError(
        f"{len(failed)} of {len(results)} checks of {receipt.app} did not pass: {', '.join(one.id for one in failed)}",
        where=str(installation.folder),
        remedy=f"to {words}, run `patchlock {command}`",
        evidence=(f"{one.id} ({one.level}): {one.detail}" for one in failed),
    )


def _cure(receipt: Receipt, results: tuple[CheckResult, ...], other: str = "") -> tuple[str, str]:
    """Say what is to be done about failed checks: in words, and as a command.

    Args:
        receipt: of the generation.
        results: of all checks.
        other: profile that could be installed instead, where there is one.
    """
    from patchlock.verify import proof, verification

    failed, pair = [result for result in results if not result.passed], f"{receipt.app} --profile {receipt.profile}"
    if any(result.id == verification.ONE_OWNER for result in failed):
        return "lock without one of them", f"lock {pair}"
    if any(result.level == "present" for result in failed):
        return "repair exactly that", f"install {pair} --repair"
    if any(result.id in proof.WRONG_LOCK for result in failed):
        return "lock what the profile needs", f"lock {pair}"
    if other:
        return f"use what works here, {other}", f"install {pair} --fallback"
    return "rebuild it", f"install {pair} --reinstall"


_HEAD = ("kernel", "device", "outcome", "error", "time", "on the CPU", "")
_NUMBERS = ("error", "time", "on the CPU")


def lines(judged: Iterable[ComparedResult], *, devices: bool = True) -> tuple[str, ...]:
    """Write one line for each kernel below a head, and under it why it failed; () where there was none.

    Args:
        judged: what was computed.
        devices: whether each line names its device.
    """
    rows = [(_row(one), _why(one)) for one in judged]
    if not rows:
        return ()
    widths = [
        max(len(head), *(len(cells[i]) for cells, _ in rows)) if any(cells[i] for cells, _ in rows) else 0
        for i, head in enumerate(_HEAD)
    ]
    if not devices:
        widths[_HEAD.index("device")] = 0
    made = [_line(_HEAD, widths)]
    for cells, why in rows:
        made.append(_line(cells, widths))
        made += [f"    {line}" for line in why]
    return tuple(made)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Write a row; a column that is empty in all rows is left out."""
    adjusted = (
        cell.rjust(width) if head in _NUMBERS else cell.ljust(width)
        for head, cell, width in zip(_HEAD, cells, widths, strict=True)
        if width
    )
    return "  ".join(adjusted).rstrip()


def _row(one: ComparedResult) -> tuple[str, ...]:
    proof = one.proof
    outcome = proof.verdict.value if not one.is_failure else proof.verdict.value.upper()
    error = "" if proof.error is None or proof.verdict is Verdict.UNAVAILABLE else f"{proof.error:.1e}"
    return (proof.kernel, proof.device, outcome, error, _time(proof.ms), _time(proof.cpu_ms), _ratio(proof))


def _time(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.2f} ms"


def _ratio(proof: KernelResult) -> str:
    if proof.ms is None or proof.cpu_ms is None or proof.ms <= 0 or proof.cpu_ms <= 0:
        return ""
    if proof.is_slower:
        return f"{proof.ms / proof.cpu_ms:.1f} times slower than the CPU"
    return f"{proof.cpu_ms / proof.ms:.1f} times faster" if proof.cpu_ms > proof.ms else ""


def _why(one: ComparedResult) -> tuple[str, ...]:
    said = (one.proof.detail,) if one.proof.detail else ()
    if one.expectation is None:
        return said
    known = "as expected" if not one.is_failure else "not as expected"
    if one.is_better:
        known = "it was expected not to work"
    return (*said, f"{known}: {one.expectation.why} ({one.expectation.source})")
