"""Tell of every requirement and bound who wrote it, and where: upstream, a patch, the app or the profile; pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from packaging.requirements import Requirement

from patchlock.locks.conflicts.model import Member, Requester
from patchlock.model.app import App, OptionalLists
from patchlock.model.lock_rules import Constraint
from patchlock.model.patch import Patch
from patchlock.model.profile import Profile
from patchlock.model.text_files import Undecodable, decode
from patchlock.patches import engine, requirement_sources, requirements_for_locks
from patchlock.patches.pip_requirements import RequirementLine

Files = Mapping[PurePosixPath, bytes]


def members(
    app: App, profile: Profile, raw: Files, patched: Files, environment: Mapping[str, str]
) -> tuple[Member, ...]:
    """List all that is asked for and all that bounds it, files first, but no line whose marker does not hold.

    Args:
        app: its patches are replayed one by one, to see which of them wrote a line.
        profile: for which they are meant.
        raw: the requirement files as upstream has them.
        patched: all requirement files that are read, after the patches, in that order.
        environment: what markers see.
    """
    writers = _writers(engine.for_profile(app.patches, profile.name), raw, app.optional_lists)
    asked = requirements_for_locks.walk(
        app.requirement_files, patched, wanted=app.optional_lists, directory=app.directory
    )[0]
    bounding = {file.path for file in asked.files if file.is_constraint}
    found = []
    for path in patched:
        left = dict(_lines(raw.get(path, b""), path, app.optional_lists))
        for number, requirement in _lines(patched[path], path, app.optional_lists):
            line = next((n for n, one in left.items() if str(one) == str(requirement)), None)
            requester = writers.get((path, str(requirement)))
            if line is not None:
                del left[line]
                requester = Requester(kind="upstream", name="", file=str(path), line=line)
            elif requester is None:  # by a patch that edits text
                requester = Requester(kind="patch", name="", file=str(path), line=number)
            found.append(
                Member(requirement=requirement, requester=requester, path=path, is_constraint=path in bounding)
            )
    every = [one.requirement for one in found]
    seen = dict(environment) | {"extra": ""}
    return (
        *(
            dataclasses.replace(one, own_marker=requirement_sources.own_marker(one.requirement, every))
            for one in found
            if one.requirement.marker is None or one.requirement.marker.evaluate(seen)
        ),
        *_constraints(app, profile),
    )


def _constraints(app: App, profile: Profile) -> Iterator[Member]:
    def member(rule: Constraint, requester: Requester) -> Member:
        return Member(requirement=rule.requirement, requester=requester, path=None, is_constraint=True)

    for rule in profile.rules.constraints:
        yield member(rule, Requester(kind="profile", name=profile.name, file=rule.origin.file, line=rule.origin.line))
    for rule in app.rules.of(profile.name).constraints:
        yield member(rule, Requester(kind="app", name=app.name, file=rule.origin.file, line=rule.origin.line))


def _writers(
    patches: Iterable[Patch], raw: Files, wanted: OptionalLists
) -> Mapping[tuple[PurePosixPath, str], Requester]:
    """Replay the patches, and say which wrote each requirement that upstream does not have."""
    found: dict[tuple[PurePosixPath, str], Requester] = {}
    current = dict(raw)
    for patch in patches:
        for change in engine.apply([patch], current).changes:
            if change.path not in raw:
                continue
            before = {str(requirement) for _, requirement in _lines(current[change.path], change.path, wanted)}
            for _, requirement in _lines(change.after, change.path, wanted):
                if str(requirement) not in before:
                    origin = patch.origin
                    found[change.path, str(requirement)] = Requester(
                        kind="patch", name=patch.id, file=origin.file, line=origin.line
                    )
            current[change.path] = change.after
    return found


def _lines(data: bytes, path: PurePosixPath, wanted: OptionalLists) -> Iterator[tuple[int, Requirement]]:
    source = decode(path, data)
    for line in () if isinstance(source, Undecodable) else requirement_sources.lines(source, wanted):
        if isinstance(line, RequirementLine):
            yield line.line, line.requirement
