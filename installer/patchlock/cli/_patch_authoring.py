"""`patch new` and `patch test`: write patches from an edited tree, and try patches before anybody relies on them."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import _complete, _options, _output
from patchlock.cli._paths import UserPath
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from patchlock.catalogue.authoring.assembly import Authored
    from patchlock.model.app import SharedSet
    from patchlock.model.patch import Patch
    from patchlock.operations.patch_test import PatchTestResult
    from patchlock.worktree.edited_tree import Edits

_RUNS = 12
"""Outcome changes that are shown for one patch."""
_REASONS = 6
_PROSE = frozenset({".md", ".rst"})
_FOLDER = UserPath(file_okay=False)


@click.command("new")
@click.option("--source", metavar="DIR", type=_FOLDER, required=True, help="The app's folder, edited.")
@click.option("--base", metavar="COMMIT", help="Compare with this commit (default: HEAD of that clone).")
@click.option(
    "--base-dir",
    metavar="DIR",
    type=_FOLDER,
    help="Compare with this folder instead, if the app's folder is not a git clone.",
)
@click.option("--into", metavar="FILE", type=UserPath(dir_okay=False), help="Append the tables to this file.")
@click.option("--id", "prefix", metavar="PREFIX", default="", help="Prefix of the patches' ids.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON envelope on stdout.")
def new_command(
    source: Path, base: str | None, base_dir: Path | None, into: Path | None, prefix: str, as_json: bool
) -> int:
    """Turn your edits to an app into patches: ops where they are recognised, diffs otherwise.

    \b
    Example:
      patchlock patch new --source ~/clones/app --into patches/app/app.toml
    """
    from patchlock.catalogue import location
    from patchlock.catalogue.authoring import assembly, writing
    from patchlock.catalogue.authoring.drafts import slug
    from patchlock.catalogue.authoring.files import Likeness
    from patchlock.model.errors import PatchError, UsageError
    from patchlock.worktree import edited_tree

    if base is not None and base_dir is not None:
        raise UsageError("--base and --base-dir exclude each other", remedy="name a commit or a folder")
    if prefix != slug(prefix) and prefix:
        raise UsageError(f'the id "{prefix}" must be lower-case words joined by "-"', remedy=f"use --id {slug(prefix)}")
    if into is not None:
        if not into.parent.is_dir():
            raise UsageError(f"there is no folder {into.parent}", remedy="make it first, or correct --into")
        location.require_own(into.parent)
    edits = _of_the_app(edited_tree.read(source, base=base, base_folder=base_dir), source, into)
    known = into.read_bytes().decode("utf-8") if into is not None and into.exists() else ""
    try:
        taken, patches = writing.ids(known), writing.patches_of(known)
    except ValueError as error:
        raise UsageError(f"that file is not TOML: {error}", where=str(into), remedy="correct it first") from error
    used, unused = _shared_sets(into, known)
    shared = (patch for one in used for patch in one.patches)
    patches = (*(patch for patch in shared if not patch.profiles or edits.profile in patch.profiles), *patches)
    authored = assembly.author(edits.before, edits.after, prefix, edits.executable, taken, patches, edits.profile)
    text = writing.tables(authored.patches)
    writing.require_readable(text, authored.patches, patches)
    whole = _append(into, known, text) if into is not None and text else known
    is_same = not (authored.patches or edits.notes or authored.notes or authored.known)
    notes = (
        *edits.notes,
        *authored.notes,
        *_passed_over(authored, edits, into),
        *_without_place(patches, edits, taken, into),
    )
    if authored.patches:
        notes += tuple(_for_some_profiles(writing.patches_of(whole, str(into)), authored, edits))
        notes += tuple(_same_edits(used, unused, authored, edits, into))
    prose = [str(path) for path in authored.files if path.suffix.lower() in _PROSE]
    if prose:
        notes += (f"{', '.join(prose)} is text for people and no code: remove its patch, unless it must be patched",)
    if base_dir is None and into is not None and into.resolve().is_relative_to(source.resolve()):
        notes += tuple(_other_layout(authored, source, edits, into))
    missed = [str(path) for path, like in authored.files.items() if like is Likeness.OTHER]
    if as_json:
        wrong = None
        if missed:
            wrong = PatchError(
                f"what was written does not give the edited {', '.join(missed)}",
                remedy="read what it gives in `data`, and write a patch for the rest by hand",
                evidence=notes,
            )
        return _output.succeed("patch new", _data(authored, text, notes), wrong)
    if into is None:
        _output.file_text(text)
    if is_same:
        by_name = f"HEAD ({edits.base}); if your edits are committed, name upstream's commit: --base COMMIT"
        _output.echo(f"nothing differs from {edits.base if base or base_dir else by_name}", err=True)
    for line in _report(authored, edits.base, notes, into):
        _output.echo(line, err=True)
    return 1 if missed else 0


def _of_the_app(edits: Edits, source: Path, into: Path | None) -> Edits:
    """Leave out the files of patches: that of `--into`, and each that has or had some."""
    from patchlock.catalogue.authoring import writing

    sides = (edits.before, edits.after)
    changed = {path for side in sides for path in side}
    ours = {path for side in sides for path, data in side.items() if writing.are_patches(path, data)}
    ours |= {path for path in changed if into is not None and (source / path).resolve() == into.resolve()}
    before, after = ({path: data for path, data in side.items() if path not in ours} for side in sides)
    return dataclasses.replace(edits, before=before, after=after)


def _passed_over(authored: Authored, edits: Edits, into: Path | None) -> Iterator[str]:
    """Say which changes are not written again, and what git ignores, a sentence without full stop each."""
    if authored.known:
        count = "1 change is" if len(authored.known) == 1 else f"{len(authored.known)} changes are"
        yield f"{count} already in {into} or its shared sets ({', '.join(authored.known)}): not written again"
    if edits.ignored:
        more = f" and {len(edits.ignored) - _REASONS} more" if len(edits.ignored) > _REASONS else ""
        names = f"{', '.join(map(visible_name, map(str, edits.ignored[:_REASONS])))}{more}"
        yield f"git ignores {names}: not looked at; for a patch that adds such a file, first `git add -f FILE`"


def _without_place(patches: Iterable[Patch], edits: Edits, ids: Collection[str], into: Path | None) -> Iterator[str]:
    """Name the patches of the file that cannot be applied to upstream's files, a sentence without full stop each."""
    from patchlock.patches import engine

    patches = tuple(patches)
    profiles = {"", *(name for patch in patches for name in patch.profiles)}  # two of them may change the same line
    groups = {tuple(one for one in patches if not one.profiles or name in one.profiles) for name in profiles}
    tried = (engine.incomplete(engine.apply(group, edits.before)) for group in groups)
    wrong = sorted(set[str]().union(*tried).intersection(ids))
    if wrong:
        it, fit = ("it", "does not fit") if len(wrong) == 1 else ("them", "do not fit")
        names = ", ".join(wrong)
        yield f"{names} of {into} {fit} upstream's files any more: remove {it}, if what was written now says the same"


def _other_layout(authored: Authored, source: Path, edits: Edits, into: Path) -> Iterator[str]:
    """Say how a fork commits what its patches write, where the edit has another layout."""
    from patchlock.catalogue.authoring.files import Likeness
    from patchlock.core import command_lines

    others = [str(path) for path, like in authored.files.items() if like is Likeness.MEANING]
    if others:
        clone, file = (command_lines.quoted(str(path)) for path in (source, into))
        first = f"commit {file}, then " if edits.is_committed else ""
        back = f"git -C {clone} checkout {edits.commit[:12]} -- {command_lines.joined(others)}"
        yield (
            "your layout is not the patches' own: to let `patch undo` take these edits out, commit theirs in its place "
            f"(your comments go, too): {first}`{back}`, then `patchlock patch apply --patches {file} --source {clone}`"
        )


def _shared_sets(into: Path | None, text: str) -> tuple[tuple[SharedSet, ...], tuple[SharedSet, ...]]:
    """Give the shared sets of the catalogue that an app's file takes, and the others; none where it lies in none."""
    from patchlock.catalogue import location
    from patchlock.catalogue.reader import Catalogue

    file = into.resolve() if into is not None else Path()
    if file.name != "app.toml" or not location.is_catalogue(root := file.parent.parent.parent):
        return (), ()
    return Catalogue(root=root).shared_beside(tomllib.loads(text))


def _for_some_profiles(there: tuple[Patch, ...], authored: Authored, edits: Edits) -> Iterator[str]:
    """Say which patches of other profiles change lines that new ones change for all, a sentence without full stop each.

    Args:
        there: all patches of the file, the new ones among them.
        authored: the new ones.
        edits: those of the tree.
    """
    from patchlock.catalogue.authoring import assembly

    new = {one.patch.id for one in authored.patches}
    others = [one for one in there if one.id not in new and one.profiles and edits.profile not in one.profiles]
    at = {one.id: f"{one.id} ({one.origin})" for one in there}
    for name, told in assembly.shared_lines(others, authored.patches, edits.before).items():
        for is_same in (True, False):
            found = [patch for patch, (_, same) in told.items() if same is is_same]
            if not found:
                continue
            does = f"what {name} does" if is_same else f"something else in lines of {name}"
            profiles = ", ".join(sorted({profile for patch in found for profile in patch.profiles}))
            yield (
                f"{', '.join(patch.id for patch in found)} do{'es' if len(found) == 1 else ''} {does}, for {profiles} "
                f"alone: remove {', '.join(at[patch.id] for patch in found)}, or remove {at[name]} or give it other "
                "`profiles`"
            )


def _same_edits(
    used: tuple[SharedSet, ...], unused: tuple[SharedSet, ...], authored: Authored, edits: Edits, into: Path | None
) -> Iterator[str]:
    """Say which shared sets change lines that new patches change, a sentence without full stop each."""
    from patchlock.catalogue.authoring import assembly

    for one in (*used, *unused):
        rest = [patch for patch in one.patches if patch.id not in authored.known]
        by_new = assembly.shared_lines(rest, authored.patches, edits.before)
        same = {new for new, told in by_new.items() if any(is_same for _, is_same in told.values())}
        for news in (same, by_new.keys() - same if one in used else ()):
            if not news:
                continue
            names = [new for new in by_new if new in news]
            at = {patch: line for new in reversed(names) for patch, (line, _) in by_new[new].items()}
            patches = [patch for patch in rest if patch in at]
            remove = f"remove the new patch{'' if len(names) == 1 else 'es'} {', '.join(names)}"
            if all(patch.profiles for patch in patches):
                profiles = ", ".join(sorted({profile for patch in patches for profile in patch.profiles}))
                remove += f", or give {'it' if len(names) == 1 else 'them'} other `profiles` than {profiles}"
            ids = [patch.id for patch in patches]
            if news is same:
                making = [patch.id for patch in patches if any(by_new[new].get(patch, ("", False))[1] for new in names)]
                others = [name for name in ids if name not in making]
                verb = "changes" if len(others) == 1 else "change"
                told = f", but {' and '.join(others)} {verb} these lines in another way" if others else ""
                use = f'to use it, add "{one.name}" to `shared` in [app] of {into}, and ' if one in unused else ""
                yield f'the shared set "{one.name}" makes such an edit too ({", ".join(making)}){told}: {use}{remove}'
            else:
                where = ", ".join(f"{patch.id} at {at[patch]}" for patch in patches)
                yield (
                    f'the shared set "{one.name}" changes lines of your edits in another way ({where}): {remove}, '
                    f"or leave out those of the set: `without = {json.dumps(ids)}` in [app] of {into}"
                )


def _append(into: Path, known: str, text: str) -> str:
    from patchlock.core import atomic_files

    lead = "" if not known else "\n" if known.endswith("\n") else "\n\n"
    whole = known + lead + text
    atomic_files.atomic_write(into, whole)
    return whole


def _data(authored: Authored, text: str, notes: tuple[str, ...]) -> dict[str, object]:
    return {
        "toml": text,
        "patches": [
            {"id": one.patch.id, "op": one.patch.op_name, "paths": list(one.patch.paths)} for one in authored.patches
        ],
        "files": [{"path": str(path), "gives": like.value} for path, like in authored.files.items()],
        "notes": list(notes),
    }


def _report(authored: Authored, base: str, notes: tuple[str, ...], into: Path | None) -> list[str]:
    lines = []
    for path, like in authored.files.items():
        ops = Counter(one.patch.op_name for one in authored.patches if str(path) in one.patch.paths)
        told = ", ".join(f"{name} ({count} patches)" if count > 1 else name for name, count in ops.items())
        lines.append(f"{path}: {told or 'nothing'}; applied to {base}, it gives {like.value}")
    lines += [f"note: {note}" for note in notes]
    if authored.patches:
        place = f" in {into}" if into is not None else ""
        lines.append(f"now write down why: each patch{place} has a `why` and a `source` that begin with TODO")
    return lines


@click.command("test")
@click.argument("app", required=False, shell_complete=_complete.apps)
@click.option("--patch", "patch_id", metavar="ID", help="Only this patch.")
@click.option("--since", metavar="COMMIT", help="Try the patches on every commit of upstream from this one on.")
@click.option("--all", "every", is_flag=True, help="With --since: include commits from merged branches.")
@click.option(
    "--profile", metavar="PROFILE", shell_complete=_complete.profiles, help="Only the patches for this profile."
)
@_options.upstream
@_options.common
def test_command(
    app: str | None,
    patch_id: str | None,
    since: str | None,
    every: bool,
    profile: str | None,
    source: str | None,
    revision: str | None,
    catalogue: Path | None,
    as_json: bool,
) -> int:
    """Try patches on their test cases, twice and in another order; with --since, on upstream's history.

    \b
    Example:
      patchlock patch test demo
      patchlock patch test tts-service --since 4f2c8a1 --source ~/clones/second-brain
    """
    from patchlock.model.errors import PatchError, UsageError
    from patchlock.operations import patch_test

    if (since or source or revision or patch_id) and app is None:
        raise UsageError("--since, --source, --commit and --patch are about one app", remedy="name it")
    opened = _options.open_catalogue(catalogue)
    names = opened.app_names() if app is None else (app,)
    wanted = patch_test.PatchTestRequest(
        catalogue=opened,
        cache=_options.cache(),
        profile=profile,
        patch=patch_id,
        source=source,
        revision=revision,
        since=since,
        every=every,
    )
    tried = [patch_test.run_patch_tests(opened.app(name), wanted) for name in names]
    bad = [one for one in tried if not one.is_good]
    if as_json:
        error = None
        if bad:
            error = PatchError(
                f"patches of {', '.join(one.app for one in bad)} do not do what they say",
                remedy="correct the patch, or the case that says otherwise",
                evidence=(line for one in bad for line in _told(one)),
            )
        return _output.succeed("patch test", {"apps": [dataclasses.asdict(one) for one in tried]}, error)
    for one in tried:
        _output.echo("\n".join(_told(one)))
    return 1 if bad else 0


def _told(tried: PatchTestResult) -> list[str]:
    cases = f"{len(tried.cases)} case{'' if len(tried.cases) == 1 else 's'}"
    lines = [f"{tried.app}: {cases}, {tried.good_cases} as written; {tried.tree}"]
    lines += [f"  {case.patch}/{case.name}: {problem}" for case in tried.cases for problem in case.problems]
    lines += [f"  {problem}" for problem in tried.together]
    lines += [f"  {sentence}" for sentence in tried.idle]
    if tried.without_case:
        lines.append(f"  without a case: {', '.join(tried.without_case)}")
    if tried.unexplained:
        lines.append(f"  to be explained (why or source begins with TODO): {', '.join(tried.unexplained)}")
    if tried.survival:
        lines += _table(tried)
    return lines


def _table(tried: PatchTestResult) -> list[str]:
    head = ("patch", "target", "right", "refused", "silent", "changes")
    rows = [head] + [
        (s.patch, str(s.with_target), str(s.right), str(s.refused), str(s.silent), str(len(s.runs) - 1))
        for s in tried.survival
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    merged = f", without {tried.merged} that came in by merges (try them too with --all)" if tried.merged else ""
    lines = [f"  {tried.commits} commits{merged}, {tried.states} states of the files that the patches look at"]
    for row in rows:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append(f"  {row[0]:<{widths[0]}}  {numbers}")
    for one in tried.survival:
        shown = one.runs if len(one.runs) <= _RUNS else [*one.runs[: _RUNS // 2], None, *one.runs[-_RUNS // 2 :]]
        for run in shown if len(one.runs) > 1 else ():
            where = "" if run is None else f"{run.first[:12]}..{run.last[:12]}  {run.what} ({run.commits})"
            lines.append(f"    {one.patch}: {where or f'... {len(one.runs) - _RUNS} more, see --json'}")
        reasons = sorted(one.reasons.items(), key=lambda item: -item[1])
        lines += [f"    {one.patch}: {count} × {reason}" for reason, count in reasons[:_REASONS]]
    return lines
