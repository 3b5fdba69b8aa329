"""The errors that patchlock can meet: each has a stable code, a place and a way out; nothing is caught here."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from patchlock.model.addresses import without_secrets
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from patchlock.model.needs import Finding
    from patchlock.model.sdist import Sdist

EXIT_FAILURE = 1
"""Exit code: the world, the catalogue or the user's input does not allow it; also a `--check` that found drift."""
EXIT_USAGE_OR_BUG = 2
"""Exit code: the command line is wrong, or patchlock itself is."""
EXIT_NOT_CHECKED = 3
"""Exit code: nothing is wrong as far as was looked, but something could not be looked at."""
EXIT_INTERRUPTED = 130
"""Exit code: the user pressed Ctrl-C."""


class PatchlockError(Exception):
    """An expected failure, told in three parts.

    Attributes:
        what: what failed, a clause without a full stop.
        where: the place (file and line and key; patch, path and commit; command and exit code), or "" where the clause
            already names it.
        remedy: what to do now, as a command or an instruction, or "".
        evidence: lines that show it, such as the last ones of a program; printed below the sentence.

    Addresses in all of them lose user, password and query, whoever wrote them: a program that failed, too.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = EXIT_FAILURE

    def __init__(self, what: str, *, where: str = "", remedy: str = "", evidence: Iterable[str] = ()) -> None:
        super().__init__(without_secrets(what))
        self.what = without_secrets(what)
        self.where = without_secrets(where)
        self.remedy = without_secrets(remedy)
        self.evidence = tuple(map(without_secrets, evidence))

    def __str__(self) -> str:
        place = f" ({visible_name(self.where)})" if self.where else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        lines = "".join(f"\n  {line}" for line in self.evidence)
        return f"{self.what}{place}{remedy}{lines}"


class UsageError(PatchlockError):
    """The command line asks for something that does not exist."""

    code = "usage"
    exit_code = EXIT_USAGE_OR_BUG


class UnknownAppError(PatchlockError):
    """No app of that name is in the catalogue."""

    code = "unknown-app"


class UnknownProfileError(PatchlockError):
    """No profile of that name is in the catalogue."""

    code = "unknown-profile"


class UnknownIndexError(PatchlockError):
    """No recorded index of that name is in the catalogue."""

    code = "unknown-index"


class NoProfileFitsError(PatchlockError):
    """No profile of the catalogue fits this machine, or two fit equally well."""

    code = "no-profile-fits"


class UncertainChoiceError(PatchlockError):
    """A profile fits, but a better one may have been missed by a hair; a person must decide."""

    code = "uncertain-choice"


class RefusedError(PatchlockError):
    """The catalogue says, with its reason, that this app cannot run on this profile or platform."""

    code = "refused"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One mistake in a file that somebody wrote.

    Attributes:
        file: the file as the user knows it.
        line: 1-based line, or 0 where no line can be named.
        key: the dotted key (`patch[2].op`), or "".
        what: what is wrong, a clause without a full stop.
        remedy: what to write instead, or "".
    """

    file: str
    line: int
    key: str
    what: str
    remedy: str

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        key = f" {self.key}:" if self.key else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.file}{line}:{key} {self.what}{remedy}"


class CatalogueError(PatchlockError):
    """Files of the catalogue are wrong; carries every mistake that was found, in file order."""

    code = "catalogue"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            f"the catalogue has {count} mistake{'s' if count != 1 else ''}", evidence=map(str, self.problems)
        )


class RequirementsError(PatchlockError):
    """A requirement file of upstream cannot be read."""

    code = "requirements"


class UpstreamError(PatchlockError):
    """Upstream cannot be reached, or does not hold the commit."""

    code = "upstream"
    is_unreachable = False
    """Whether nothing is known, good or bad: no answer comes from there, or a clone lacks some of its files."""


class PatchError(PatchlockError):
    """A patch cannot do what it says: ambiguous, impossible, or its `ensure` does not hold."""

    code = "patch"


class SourceConflictError(PatchlockError):
    """The user's edits and ours touch the same lines; nothing was written."""

    code = "source-conflict"


class UnsafePathError(PatchlockError):
    """A path of a repository or of a patch leaves the tree that it belongs to; nothing was written there."""

    code = "unsafe-path"


class NotPatchedError(PatchlockError):
    """No patches are applied to this folder."""

    code = "not-patched"


class HookTakenError(PatchlockError):
    """A git hook of somebody else's stands where ours would; it was not touched."""

    code = "hook-taken"


class LockMissingError(PatchlockError):
    """There is no lockfile for this app, profile and platform."""

    code = "lock-missing"


class LockStaleError(PatchlockError):
    """What a lock was made from has changed since."""

    code = "lock-stale"


class LockFormatError(PatchlockError):
    """A lockfile is not one that patchlock wrote, or its lines were changed after it was made."""

    code = "lock-format"


class UnsatisfiableError(PatchlockError):
    """The resolver found no set of packages.

    Attributes:
        is_unknown: a recorded index that is not known to be complete lacks what is asked for; it may have it.
    """

    code = "unsatisfiable"
    is_unknown = False


class PolicyError(PatchlockError):
    """The resolver's answer breaks a rule of ours; no lock was written.

    Attributes:
        is_unknown: nothing is found to be wrong; the rules only lack what nobody has recorded yet.
    """

    code = "policy"
    is_unknown = False


class HashMismatchError(PatchlockError):
    """Bytes differ from the sha256 that was promised; nothing was installed.

    Attributes:
        found: sha256 of what came; "" where nobody has computed it.
    """

    code = "hash-mismatch"
    found = ""


class NetworkError(PatchlockError):
    """An index or a host does not answer."""

    code = "network"


class DiskFullError(PatchlockError):
    """There is not enough room."""

    code = "disk-full"


class FileAccessError(PatchlockError):
    """A file or folder of this machine cannot be read or written."""

    code = "file-access"


class ProgramMissingError(PatchlockError):
    """A program that is needed is not installed."""

    code = "program-missing"


class CommandFailedError(PatchlockError):
    """A program ended with a failure that has no better name."""

    code = "command-failed"


class BusyError(PatchlockError):
    """Another patchlock or git works on the same installation or folder, or the app itself runs."""

    code = "busy"


class NotInstalledError(PatchlockError):
    """The app is not installed, or has no earlier generation."""

    code = "not-installed"


class VerifyError(PatchlockError):
    """A check of the environment did not pass."""

    code = "verify"


class WheelError(PatchlockError):
    """A file is not a wheel, or one that no installer should be given."""

    code = "wheel"


class DownloadError(PatchlockError):
    """A server answers, but does not give the file."""

    code = "download"


class UnknownDistributionError(PatchlockError):
    """The catalogue has no patch for that distribution, or none for that version."""

    code = "unknown-distribution"


class IndexAnswerError(PatchlockError):
    """An index answers with something that no index should say."""

    code = "index-answer"


class RecordChangedError(PatchlockError):
    """A file of a recorded index has other bytes now under the same name."""

    code = "record-changed"


class MetadataMissingError(PatchlockError):
    """What an sdist requires would only be told by running its code, and is not written down."""

    code = "metadata-missing"

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        evidence: Iterable[str] = (),
        sdists: tuple[Sdist, ...] = (),
    ) -> None:
        super().__init__(what, where=where, remedy=remedy, evidence=evidence)
        self.sdists = sdists


class SdistError(PatchlockError):
    """A file is not an sdist, or its build backend does not answer."""

    code = "sdist"


class ArchiveError(PatchlockError):
    """An archive cannot be read, or holds what must not be unpacked; nothing of it was written."""

    code = "archive"


class OverlayError(PatchlockError):
    """Libraries that are loaded before an app's own cannot be put there, or cannot work on this machine."""

    code = "overlay"


class ModelError(PatchlockError):
    """A model cannot be had, or other bytes lie where it belongs; nothing was put there."""

    code = "model"


class NotReadyError(PatchlockError):
    """The machine lacks what an install needs; carries everything that it lacks."""

    code = "not-ready"

    def __init__(self, what: str, *, remedy: str, evidence: Iterable[str], findings: tuple[Finding, ...]) -> None:
        super().__init__(what, remedy=remedy, evidence=evidence)
        self.findings = findings


class SourceDamagedError(PatchlockError):
    """The clone of an installation is damaged; nothing was changed in it."""

    code = "source-damaged"


class BuildError(PatchlockError):
    """A source build failed, or made something else than was asked for."""

    code = "build"


class DriftError(PatchlockError):
    """What was only looked at would change; nothing was written."""

    code = "drift"


class LocksError(PatchlockError):
    """Locks that were asked about are not as they should be, each for its own reason."""

    code = "locks"


class UpdateError(PatchlockError):
    """Some of several apps could not be updated."""

    code = "update"


class CheckError(PatchlockError):
    """What the catalogue promises does not hold."""

    code = "check"


class NotCheckedError(PatchlockError):
    """Nothing that was looked at is wrong, but upstream could not be reached, and was not looked at."""

    code = "not-checked"
    exit_code = EXIT_NOT_CHECKED


class TroubleError(PatchlockError):
    """The machine, or what is installed for an app, has a known trouble for certain."""

    code = "trouble"


class EditsMeetError(PatchlockError):
    """The user's edits and the patches touch the same lines; both stand in the files, between markers."""

    code = "edits-meet"


class GitFirstError(PatchlockError):
    """Git has to do something first that patchlock does not do; what that concerns was not changed."""

    code = "git-first"


class WheelsMissingError(PatchlockError):
    """Files of a lock are not on this machine, and nobody may be asked for them."""

    code = "wheels-missing"


class BundleError(PatchlockError):
    """A bundle is damaged, or is for something else than what is asked for; nothing of it was used."""

    code = "bundle"


class UntrustedCatalogueError(PatchlockError):
    """A catalogue that did not come with patchlock would run code, and nobody has agreed to that."""

    code = "untrusted-catalogue"


class InterruptedCommandError(PatchlockError):
    """A person has ended the command."""

    code = "interrupted"
    exit_code = EXIT_INTERRUPTED


class BugError(PatchlockError):
    """Patchlock itself is wrong; carries where the details were written."""

    code = "bug"
    exit_code = EXIT_USAGE_OR_BUG


_PART = 3
"""Letters that a part of a word needs to mean that word."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Name the known word nearest to a mistyped one, as a remedy.

    Returns:
        `did you mean "x"?`, or a list of all known words where none is near, or "" where none is known.
    """
    words = sorted(known)
    return similar(name, words) or (f"known: {', '.join(words)}" if words else "")


def similar(name: str, known: Iterable[str]) -> str:
    """Name the known word that a mistyped one resembles, as a remedy, out of so many that a list of them is no help.

    Returns:
        `did you mean "x"?`, or `did you mean "x" or "y"?` where it is a part of several, or "" where none is near.
    """
    import difflib

    words = sorted(known)
    near = [word for word in words if word.startswith(name)] or [word for word in words if name in word]
    if not near or len(name) < _PART:  # what begins otherwise is more often another word, as gpu and cpu
        near = difflib.get_close_matches(name, words, n=1, cutoff=0.7) or difflib.get_close_matches(
            name, [word for word in words if word[:1] == name[:1]], n=1, cutoff=0.5
        )
    near = near or [word for word in words if word.lower().startswith(name.lower())]  # written in capitals
    quoted = " or ".join(f'"{word}"' for word in near[:3])
    return f"did you mean {quoted}?" if near else ""


def from_os(error: OSError) -> PatchlockError:
    """Turn a refusal of the operating system into a sentence."""
    place = str(error.filename or "")
    if error.errno in {errno.ENOSPC, errno.EDQUOT} or getattr(error, "winerror", None) == 112:
        return DiskFullError(
            "the disk is full while patchlock was writing",
            where=place,
            remedy="free some room and run the same command again",
        )
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    others = "choose other folders with PATCHLOCK_HOME and PATCHLOCK_CACHE_DIR"
    if isinstance(error, FileNotFoundError):
        remedy = "if another patchlock is at work, wait for it to end; then run the same command again"
    elif isinstance(error, PermissionError) or getattr(error, "winerror", None) == 5:
        remedy = f"correct its permissions or {others}"
    else:
        remedy = f"see what is there, or {others}"
    return FileAccessError(f"a file cannot be read or written: {reason}", where=place, remedy=remedy)
