"""Which shared sets of patches an app calls for, and the places that call for them; pure."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue import shared_sets
from patchlock.catalogue.proposals import device_places, importers, pkg_resources_users
from patchlock.catalogue.proposals.device_places import Verdict
from patchlock.catalogue.proposals.findings import Files, Finding, Issue, SetChoice, excerpt
from patchlock.catalogue.proposals.imports import Imports
from patchlock.model.app import SharedSet
from patchlock.model.patch import Located, Outcome, Patch
from patchlock.model.text_files import SourceText, decode
from patchlock.patches import import_graph, targets
from patchlock.patches.evaluation import Evaluator
from patchlock.patches.ops.requirements.ops import AddRequirement, DropRequirement, RenameRequirement, SetRequirement
from patchlock.patches.outcomes import APPLIED

_OLD_GRADIO = Version("5.23")
"""The first whose gradio-client understands what pydantic 2.11 writes (gradio-client 1.8.0).

Source: https://github.com/gradio-app/gradio/issues/10792; METADATA of gradio 5.23.0"""

_NEW_PYDANTIC = Version("2.11")
"""The first that writes it; who bounds pydantic below has nothing to fear, and versions for pydantic 1 need that."""

_AV_WHEELS = Version("12")
"""The first PyAV that the set allows."""

_USERS_OF_AV = ("faster-whisper", "whisperx")
"""What fails with PyAV 19."""


@dataclass(frozen=True, kw_only=True)
class LocatedRequirement:
    """A requirement where it stands."""

    requirement: Requirement
    found: Finding


Asked = Mapping[NormalizedName, tuple[LocatedRequirement, ...]]
"""The requirements of an app, by name."""


@dataclass(frozen=True, kw_only=True)
class Tree:
    """What is known of a clone."""

    files: Files
    asked: Asked
    imports: Imports
    requirement_files: tuple[str, ...]
    started: Collection[PurePosixPath] = ()
    """Files that its program comes to as it starts: these count wherever they lie."""
    left_out: Collection[str] = ()
    """Devices that upstream leaves out: nothing gives it these."""
    profile: str = "cpu"
    """That is tried first; places that matter on others alone say so."""
    idle: Callable[[str], Mapping[PurePosixPath, Collection[int]]] = lambda _: {}
    """A kind of device → lines to which the program comes on others alone."""
    made: device_places.Made = dataclasses.field(default_factory=dict)

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


def _users_of_pkg_resources(tree: Tree) -> tuple[LocatedRequirement, ...]:
    return tuple(
        one
        for name, all_of in tree.asked.items()
        for one in all_of
        if pkg_resources_users.all_import_it(one.requirement, name)
    )


def _why_pkg_resources(tree: Tree) -> str:
    users = [one.requirement for one in _users_of_pkg_resources(tree)]
    own = ["the app"] if tree.imported("pkg_resources") else []
    return pkg_resources_users.reason([*own, *(f"{one.name}{one.specifier}" for one in users)])


def _is_av_doubtful(tree: Tree) -> bool:
    """Tell whether PyAV alone is required, in versions that have wheels."""
    own = tree.asked.get(canonicalize_name("av"), ())
    return not tree.requires(*_USERS_OF_AV) and not any(_is_below(one.requirement, _AV_WHEELS) for one in own)


CALLS: Mapping[str, Callable[[Tree], tuple[Finding, ...]]] = {
    pkg_resources_users.SET: lambda tree: (
        *tree.imported("pkg_resources"),
        *(one.found for one in _users_of_pkg_resources(tree)),
    ),
    "av-wheel": lambda tree: tree.requires("av", *_USERS_OF_AV),
    "pydantic-gradio": _old_gradio,
    # It only adds a file: an app asks it where a patch of the app's own says so.
    "compute-device": lambda _: (),
}
"""Sets of whose need a site of their patches says nothing, as they add or bound requirements → what calls for them."""
_REASONS: Mapping[str, Callable[[Tree], str]] = {
    pkg_resources_users.SET: _why_pkg_resources,
    "av-wheel": lambda tree: "" if tree.requires(*_USERS_OF_AV) else "av 11 and 14.4.0 have no wheels",
}
"""Sets whose reason depends on what calls for them → that reason, a clause; "" for the set's own."""
_DOUBTFUL: Mapping[str, Callable[[Tree], bool]] = {"av-wheel": _is_av_doubtful}
"""Sets that may do nothing for what calls for them → whether that is so."""
_BEGINS: Mapping[str, tuple[NormalizedName, Version]] = {
    "torch-load-weights-only": (canonicalize_name("torch"), Version("2.6")),
}
"""Sets whose trouble begins with a version → that version. Source: the `source` of each."""


def holds(issue: Issue, versions: Mapping[NormalizedName, Version]) -> bool:
    """Tell whether what an issue says is so with the versions of a lock."""
    if issue.name == pkg_resources_users.SET and versions:
        is_own = any(place.path.suffix == ".py" for place in issue.found)
        return is_own or any(pkg_resources_users.imports_it(name, version) for name, version in versions.items())
    name, first = _BEGINS.get(issue.name, ("", Version("0")))
    return name not in versions or versions[canonicalize_name(name)] >= first


_TOLD = 20
"""Files between two words on how far it is."""
_PLAINEST = "cpu"
"""The profile without a GPU: what a patch does on others alone makes the app faster there."""
_OF_THE_CPU = frozenset({"cpu", "float32"})
"""What such a library is given for the CPU: the device, and the type that it computes in there."""
_OVER_TO_CPU = "its code takes the CPU there, although there is a GPU"
_CPU_BY_DEFAULT = "a function takes the CPU where no caller gives it another device, although there is a GPU"
_BY_DEFAULT = "a function takes an NVIDIA card where no caller gives it another device"
_IF_GIVEN = "it takes an NVIDIA card where somebody gives it the number of one"


@dataclass(frozen=True, kw_only=True)
class _Site:
    """What a patch of a set finds."""

    found: Finding
    patch: Patch
    verdict: Verdict | None = None
    """Whether it counts on the machines of its patch; None: it does."""
    refused: str = ""
    """Why the patch is not made there, a clause; "" where it is."""

    @property
    def is_precision(self) -> bool:
        """Tell whether it is about half precision, and not about a device."""
        return getattr(self.patch.op, "precision", "") == "single"

    @property
    def is_slower(self) -> bool:
        """Tell whether the app works without the patch: on the CPU where it should take a GPU, or in slow precision."""
        return self.is_precision or self.patch.advisory or _is_elsewhere(self.patch)

    @property
    def is_doubtful(self) -> bool:
        """Tell whether it counts only for some who call the function."""
        return self.verdict is not None and not self.is_slower

    @property
    def why(self) -> str:
        """Say what happens without the patch, or why it is not made, a clause."""
        if self.refused or self.is_precision:
            return self.refused or self.patch.why
        is_over = _is_device(self.patch) and _is_elsewhere(self.patch)
        match self.verdict:
            case Verdict.BY_DEFAULT:
                return _CPU_BY_DEFAULT if is_over else _BY_DEFAULT
            case Verdict.IF_GIVEN if not is_over:
                return _IF_GIVEN
            case _:
                return _OVER_TO_CPU if is_over else self.patch.why


def _is_device(patch: Patch) -> bool:
    return patch.op_name == "device-literals"


def is_left_out(patch: Patch, devices: Collection[str]) -> bool:
    """Tell whether a patch only chooses devices of a few."""
    return (
        _is_elsewhere(patch) and _is_device(patch) and {one.partition("-")[0] for one in patch.profiles} <= {*devices}
    )


def _is_elsewhere(patch: Patch) -> bool:
    return bool(patch.profiles) and _PLAINEST not in patch.profiles


def examine(
    sets: Sequence[SharedSet], tree: Tree, evaluator: Evaluator, tell: Callable[[str], None] = lambda _: None
) -> tuple[tuple[SetChoice, tuple[Issue, ...]], ...]:
    """Give the sets that found something, each with what it found: first what fails, then what is slower.

    Args:
        sets: all shared sets.
        tree: what is known of the clone.
        evaluator: whom to ask what ops find.
        tell: called with what goes on.
    """
    sites = _sites(sets, tree, evaluator, tell)
    return tuple(found for one in sets if (found := _examined(one, tree, sites[one.name])) is not None)


def _examined(one: SharedSet, tree: Tree, sites: Collection[_Site]) -> tuple[SetChoice, tuple[Issue, ...]] | None:
    called = CALLS[one.name](tree) if one.name in CALLS else ()
    if not (called if one.name in CALLS else sites):
        return None
    asked = tree.requires(*(rule.name for rule in one.rules.exclusions))
    counted = [site for site in sites if site.verdict is not Verdict.NEVER]
    counted = [] if one.name in CALLS else counted  # the sites of what is called for do not say where the issue is
    slower = [site for site in counted if site.is_slower]
    failing = [site for site in counted if not site.is_slower and not site.is_doubtful]
    doubtful = [site for site in counted if site.is_doubtful]
    issues = []
    if failing or called or asked:
        whys = list(dict.fromkeys(site.why for site in failing)) or [one.patches[0].why if one.patches else one.title]
        means = (_REASONS[one.name](tree) if one.name in _REASONS else "") or "; ".join(whys)
        made = _issue(one, means, {*called, *asked, *(site.found for site in failing)})
        is_doubtful = one.name in _DOUBTFUL and _DOUBTFUL[one.name](tree)
        issues.append(dataclasses.replace(made, is_doubtful=is_doubtful))
    for kind in filter(None, (slower, doubtful)):
        whys = list(dict.fromkeys(site.why for site in kind))
        made = _issue(one, "; ".join(whys), {site.found for site in kind})
        issues.append(dataclasses.replace(made, is_slower=kind is slower, is_doubtful=kind is doubtful))
    places = {place for issue in issues for place in issue.found} or {site.found for site in sites}
    files = len({place.path for place in places})
    count = f"{len(places)} place{'s' if len(places) != 1 else ''} in {files} file{'s' if files != 1 else ''}"
    first = min(places, key=_order)
    without = tuple(patch.id for patch in one.patches if is_left_out(patch, tree.left_out))
    why = f"{count}, first {first.path}:{first.line}"
    return SetChoice(name=one.name, why=why, without=without), tuple(issues)


def by_what_is_left(
    issue: Issue, choice: SetChoice | None, written: Collection[Patch], files: Files
) -> tuple[Issue, ...]:
    """Tell the places of an issue that the patches change apart from those that they leave as they are.

    Args:
        issue: of the shared set.
        choice: what is taken of the set; None for nothing.
        written: patches that the app's own file has in the place of the set's.
        files: of the tree.
    """
    kept = {patch.id: targets.matching_files(patch, files) for patch in written}
    without = choice.without if choice is not None else tuple(place.patch for place in issue.found)
    left = tuple(
        place for place in issue.found if place.patch in without and place.path not in kept.get(place.patch, ())
    )
    if not left:
        return (issue,)
    first, *more = dict.fromkeys(place.path for place in left)
    where = f"{first}{f' and {len(more)} more' if more else ''}"
    remedy = f'the shared set "{issue.name}" cannot be applied to {where}: write a patch of your own'
    cured = dataclasses.replace(issue, found=tuple(place for place in issue.found if place not in left))
    return (*([cured] if cured.found else []), dataclasses.replace(issue, found=left, remedy=remedy, is_left=True))


def with_more_changes(
    choice: SetChoice, one: SharedSet, issues: Iterable[Issue], outcomes: Iterable[Outcome]
) -> SetChoice:
    """Name the files that the patches of a set change although none of its places stands there: tests, examples."""
    told = {place.path for issue in issues if issue.name == one.name for place in issue.found}
    ids = {patch.id for patch in one.patches} - {*choice.without}
    every = (each.path for each in outcomes if each.patch in ids and each.kind in APPLIED)
    paths = sorted({path for path in every if path is not None and path.suffix == ".py"} - told)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return dataclasses.replace(choice, why=f"{choice.why}; it also changes {paths[0]}{more}") if paths else choice


def _issue(one: SharedSet, means: str, places: Iterable[Finding]) -> Issue:
    is_bound = bool(one.patches) and all(isinstance(patch.op, SetRequirement) for patch in one.patches)
    return Issue(
        name=one.name,
        title=one.title,
        means=means,
        found=tuple(sorted(places, key=_order)),
        remedy=f'the shared set "{one.name}" {"bounds the version" if is_bound else "fixes it"}',
    )


def _order(finding: Finding) -> tuple[str, int]:
    return str(finding.path), finding.line


def _sites(
    sets: Sequence[SharedSet], tree: Tree, evaluator: Evaluator, tell: Callable[[str], None]
) -> dict[str, list[_Site]]:
    """Give what the patches of each set find, file by file, as ops share what they read of a file."""
    found: dict[str, list[_Site]] = {one.name: [] for one in sets}
    wanted: dict[PurePosixPath, dict[str, list[Patch]]] = {}
    for one in sets:
        for patch in one.patches:
            if is_left_out(patch, tree.left_out):
                continue
            if not isinstance(patch.op, AddRequirement) and not _is_of_an_extra(patch, tree):
                asked = shared_sets.with_requirement_files(patch, tree.requirement_files)
                for path in targets.matching_files(asked, tree.files):
                    if importers.is_no_part(path, tree.started):
                        continue
                    wanted.setdefault(path, {}).setdefault(one.name, []).append(asked)
    for count, path in enumerate(sorted(wanted, key=lambda path: path.parts)):
        if count % _TOLD == 0:
            tell(f"looking at file {count + 1} of {len(wanted)}")
        data = tree.files.get(path, b"")
        for name, patches in wanted[path].items():
            mentioned = [patch for patch in patches if targets.mentions(data, patch.literal)]
            if not targets.mentions(data, ("cuda",)):  # what only is given a device there has another file's
                mentioned = [patch for patch in mentioned if not (_is_device(patch) and _is_elsewhere(patch))]
            source = decode(path, data) if mentioned else None
            if isinstance(source, SourceText):
                found[name] += _in_file(mentioned, source, evaluator, tree)
    return found


def _is_of_an_extra(patch: Patch, tree: Tree) -> bool:
    """Tell whether a patch is about a distribution that only extras ask for, which nobody takes so far."""
    op = patch.op
    return isinstance(op, DropRequirement | RenameRequirement | SetRequirement) and op.name not in tree.asked


def _in_file(patches: Iterable[Patch], source: SourceText, evaluator: Evaluator, tree: Tree) -> Iterable[_Site]:
    """Give what the patches of one set find in a file; in each line what the first of them finds there that counts.

    What counts on other profiles than the wanted one alone names all of them.
    """
    found: dict[int, _Site] = {}
    idle: list[_Site] = []
    scopes: dict[int, tuple[str, ...]] = {}
    lines = source.text.splitlines() or [""]
    for patch in patches:
        possible = targets.possible_lines(patch.op, source) if found else None
        if possible is not None and possible <= found.keys() - scopes.keys():
            continue
        where = evaluator.locate(patch.op, source)
        module = import_graph.tree(source.path, source.text.encode()) if _is_device(patch) else None
        kind = str(getattr(patch.op, "device", "")).partition(":")[0]
        verdicts = device_places.verdicts(module, kind, tree.made) if module is not None else {}
        never, ended = (
            {line for line, one in verdicts.items() if one is kind_of} for kind_of in (Verdict.NEVER, Verdict.ENDED)
        )
        unused = {*tree.idle(kind).get(source.path, ())} if module is not None else set()
        kept = _kept_on_cpu(where, source) if module is not None and _is_elsewhere(patch) else frozenset()
        for line, text, refused, outside in (
            *((site.line, site.text, "", unused | never | ended | where.companions) for site in where.sites),
            # What is refused below a question for CUDA is missed by the other machines.
            *(
                (one.line, lines[one.line - 1], one.why.partition(";")[0], (unused - never) | ended)
                for one in where.refusals
            ),
        ):
            if line in kept and not refused:
                continue
            place = Finding(path=source.path, line=line, text=excerpt(text), patch=patch.id)
            verdict = Verdict.NEVER if line in outside else None if line in never else verdicts.get(line)
            site = _Site(found=place, patch=patch, verdict=verdict, refused=refused)
            if verdict is Verdict.NEVER:
                idle.append(site)
                continue
            if not patch.profiles or tree.profile in patch.profiles:
                if scopes.pop(line, None) is not None:  # found so far by patches of other profiles alone
                    cured = dataclasses.replace(found[line].found, patch=patch.id)
                    found[line] = dataclasses.replace(found[line], found=cured)
            elif line in scopes or line not in found:
                scopes[line] = tuple(dict.fromkeys((*scopes.get(line, ()), *patch.profiles)))
            found.setdefault(line, site)
    for line, profiles in scopes.items():
        place = found[line].found
        scoped = dataclasses.replace(place, text=f"{place.text} (for {', '.join(profiles)})")
        found[line] = dataclasses.replace(found[line], found=scoped)
    return [*found.values(), *idle]


def _kept_on_cpu(where: Located, source: SourceText) -> frozenset[int]:
    """Give the lines on which a library that knows no other card than CUDA's is only given the CPU."""
    starts, lines = source.line_starts(), dict[int, set[str]]()
    for edit in where.edits:
        lines.setdefault(bisect.bisect_right(starts, edit.start), set()).add(edit.text.strip("\"'"))
    return frozenset(line for line, texts in lines.items() if "cpu" in texts and texts <= _OF_THE_CPU)
