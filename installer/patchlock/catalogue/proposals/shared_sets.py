"""Which shared sets of patches an app calls for, and the places that call for them; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName
from packaging.version import Version

from patchlock.catalogue import shared_sets
from patchlock.catalogue.proposals.findings import Files, Finding, Issue, SetChoice, excerpt
from patchlock.catalogue.proposals.imports import Imports
from patchlock.model.app import SharedSet
from patchlock.model.patch import Patch
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import targets
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.ops.requirements.ops import AddRequirement

_OLD_GRADIO = Version("5.23")
"""The first whose gradio-client understands what pydantic 2.11 writes (gradio-client 1.8.0).

Source: https://github.com/gradio-app/gradio/issues/10792; METADATA of gradio 5.23.0"""

_NEW_PYDANTIC = Version("2.11")
"""The first that writes it; who bounds pydantic below has nothing to fear, and versions for pydantic 1 need that."""


@dataclass(frozen=True, kw_only=True)
class LocatedRequirement:
    """A requirement where it stands."""

    requirement: Requirement
    found: Finding


@dataclass(frozen=True, kw_only=True)
class Tree:
    """What is known of a clone."""

    files: Files
    asked: Mapping[NormalizedName, tuple[LocatedRequirement, ...]]
    imports: Imports
    requirement_files: tuple[str, ...]

    def requires(self, *names: str) -> tuple[Finding, ...]:
        """Give the places that require some distribution."""
        return tuple(one.found for name, all_of in self.asked.items() if name in names for one in all_of)

    def imported(self, *tops: str) -> tuple[Finding, ...]:
        """Give the places that import some top-level package."""
        return tuple(one.found for one in self.imports.of(tops))


def _old_gradio(tree: Tree) -> tuple[Finding, ...]:
    """Give the places that keep gradio below the version that is mended, and not below those that need it."""
    pydantic = [one for name, all_of in tree.asked.items() if name == "pydantic" for one in all_of]
    if any(_is_below(one.requirement, _NEW_PYDANTIC) for one in pydantic):
        return ()
    found = [one for name, all_of in tree.asked.items() if name == "gradio" for one in all_of]
    return tuple(one.found for one in found if _is_below(one.requirement, _OLD_GRADIO))


def _is_below(requirement: Requirement, version: Version) -> bool:
    bounds = [one for one in requirement.specifier if one.operator in {"==", "<", "<=", "~="}]
    return any(Version(one.version.removesuffix(".*")) < version for one in bounds)


CALLS: Mapping[str, Callable[[Tree], tuple[Finding, ...]]] = {
    "setuptools-pkg-resources": lambda tree: (
        *tree.imported("pkg_resources"),
        *tree.requires("resampy", "phonemizer", "webrtcvad", "pyworld", "jieba", "g2p-en", "pyannote-audio"),
        *tree.requires("clip", "clip-anytorch", "openai-clip"),
        *(
            one.found
            for name, all_of in tree.asked.items()
            if name == "librosa"
            for one in all_of
            if _is_below(one.requirement, Version("0.10"))
        ),
    ),
    "av-wheel": lambda tree: tree.requires("av", "faster-whisper", "whisperx"),
    "pydantic-gradio": _old_gradio,
    # It only adds a file: an app asks it where a patch of the app's own says so.
    "compute-device": lambda _: (),
}
"""Sets of whose need a site of their patches says nothing, as they add or bound requirements → what calls for them."""


_TOLD = 20
"""Files between two words on how far it is."""
_FIRST = "cpu"
"""The profile that is tried first; places that matter on others alone say so."""


def examine(
    sets: Sequence[SharedSet], tree: Tree, evaluator: Evaluator, tell: Callable[[str], None] = lambda _: None
) -> tuple[tuple[SetChoice, Issue], ...]:
    """Give the sets that found something, each with what it found.

    Args:
        sets: all shared sets.
        tree: what is known of the clone.
        evaluator: whom to ask what ops find.
        tell: called with what goes on.
    """
    sites = _sites(sets, tree, evaluator, tell)
    return tuple(found for one in sets if (found := _examined(one, tree, sites[one.name])) is not None)


def _examined(one: SharedSet, tree: Tree, sites: Collection[Finding]) -> tuple[SetChoice, Issue] | None:
    called = CALLS[one.name](tree) if one.name in CALLS else ()
    if not (called if one.name in CALLS else sites):
        return None
    asked = tree.requires(*(rule.name for rule in one.rules.exclusions))
    places = dict.fromkeys(sorted({*called, *asked, *(s for s in sites if _counts(s, one.name))}, key=_order))
    means = one.patches[0].why if one.patches else one.title
    files = len({place.path for place in places})
    count = f"{len(places)} place{'s' if len(places) != 1 else ''} in {files} file{'s' if files != 1 else ''}"
    first = next(iter(places))
    why = f"{count}, first {first.path}:{first.line}"
    issue = Issue(
        name=one.name,
        title=one.title,
        means=means,
        found=tuple(places),
        remedy=f'the shared set "{one.name}" fixes it',
    )
    return SetChoice(name=one.name, why=why), issue


def _counts(_site: Finding, name: str) -> bool:
    """Tell whether sites of a set's patches say where the issue is: those of a set that is called for do not."""
    return name not in CALLS


def _order(finding: Finding) -> tuple[str, int]:
    return str(finding.path), finding.line


def _sites(
    sets: Sequence[SharedSet], tree: Tree, evaluator: Evaluator, tell: Callable[[str], None]
) -> dict[str, list[Finding]]:
    """Give what the patches of each set find, file by file, as ops share what they read of a file."""
    found: dict[str, list[Finding]] = {one.name: [] for one in sets}
    wanted: dict[PurePosixPath, dict[str, list[Patch]]] = {}
    for one in sets:
        for patch in one.patches:
            if not isinstance(patch.op, AddRequirement):
                asked = shared_sets.with_requirement_files(patch, tree.requirement_files)
                for path in targets.matching_files(asked, tree.files):
                    wanted.setdefault(path, {}).setdefault(one.name, []).append(asked)
    for count, path in enumerate(sorted(wanted, key=lambda path: path.parts)):
        if count % _TOLD == 0:
            tell(f"looking at file {count + 1} of {len(wanted)}")
        data = tree.files.get(path, b"")
        for name, patches in wanted[path].items():
            mentioned = [patch for patch in patches if targets.mentions(data, patch.literal)]
            source = decode(path, data) if mentioned else None
            if isinstance(source, SourceText):
                found[name] += _in_file(mentioned, source, evaluator)
    return found


def _in_file(patches: Iterable[Patch], source: SourceText, evaluator: Evaluator) -> Iterable[Finding]:
    """Give what the patches of one set find in a file; in each line what the first of them finds there."""
    found: dict[int, Finding] = {}
    for patch in patches:
        possible = targets.possible_lines(patch.op, source) if found else None
        if possible is not None and possible <= found.keys():
            continue
        scope = "" if not patch.profiles or _FIRST in patch.profiles else f" (for {', '.join(patch.profiles)})"
        where = evaluator.locate(patch.op, source)
        for line, text in (
            *((site.line, site.text) for site in where.sites),
            *((one.line, f"({one.kind.value}: {one.why})") for one in where.refusals),
        ):
            found.setdefault(line, _finding(source.path, line, text, scope))
    return found.values()


def _finding(path: PurePosixPath, line: int, text: str, scope: str = "") -> Finding:
    return Finding(path=path, line=line, text=excerpt(text) + scope)
