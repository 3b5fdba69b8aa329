"""`patch new` and `patch test`: write patches from an edited tree, and try patches before anybody relies on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from patchlock.cli import options, output

if TYPE_CHECKING:
    from patchlock.authoring.tree import Authored

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("new")
@click.option("--source", metavar="DIR", type=_FOLDER, required=True, help="The app's folder, edited.")
@click.option("--base", metavar="COMMIT", help="What it was made from (default: HEAD of that clone).")
@click.option("--base-dir", metavar="DIR", type=_FOLDER, help="What it was made from, where it is no git clone.")
@click.option(
    "--into", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Append the tables to this file."
)
@click.option("--id", "prefix", metavar="PREFIX", default="", help="How the ids of the patches begin.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON envelope on stdout.")
def new_command(
    source: Path, base: str | None, base_dir: Path | None, into: Path | None, prefix: str, as_json: bool
) -> int:
    """Turn an edited tree into patches: by meaning where the change is recognised, as a diff otherwise.

    \b
    Example:
      patchlock patch new --source ~/clones/app --into patches/app/app.toml
    """
    from patchlock import edited
    from patchlock.authoring import tree, writing
    from patchlock.authoring.drafts import slug
    from patchlock.authoring.files import Likeness
    from patchlock.errors import UsageError

    if base is not None and base_dir is not None:
        raise UsageError("--base and --base-dir exclude each other", remedy="name a commit or a folder")
    if prefix != slug(prefix) and prefix:
        raise UsageError(f'the id "{prefix}" must be lower-case words joined by "-"', remedy=f"use --id {slug(prefix)}")
    edits = edited.read(source, base=base, base_folder=base_dir)
    known = into.read_bytes().decode("utf-8") if into is not None and into.exists() else ""
    try:
        taken = writing.ids(known)
    except ValueError as error:
        raise UsageError(f"that file is not TOML: {error}", where=str(into), remedy="correct it first") from error
    authored = tree.author(edits.before, edits.after, prefix, edits.executable, taken)
    text = writing.tables(authored.patches)
    writing.require_readable(text, authored.patches)
    if into is not None and text:
        _append(into, known, text)
    missed = any(like is Likeness.OTHER for like in authored.files.values())
    if as_json:
        output.succeed("patch new", _data(authored, text, (*edits.notes, *authored.notes)), ok=not missed)
    else:
        if into is None:
            click.echo(text, nl=False)
        for line in _report(authored, edits.base, (*edits.notes, *authored.notes), into):
            click.echo(line, err=True)
    return 1 if missed else 0


def _append(into: Path, known: str, text: str) -> None:
    lead = "" if not known else "\n" if known.endswith("\n") else "\n\n"
    beside = into.with_name(f"{into.name}.partial")
    beside.write_bytes((known + lead + text).encode())
    beside.replace(into)


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
    if not authored.patches and not notes:
        return [f"nothing differs from {base}"]
    lines = []
    for path, like in authored.files.items():
        ops = [one.patch.op_name for one in authored.patches if str(path) in one.patch.paths]
        lines.append(f"{path}: {', '.join(ops) or 'nothing'}; applied to {base}, it gives {like.value}")
    lines += [f"note: {note}" for note in notes]
    if authored.patches:
        place = f" in {into}" if into is not None else ""
        lines.append(f"now write down why: each patch{place} has a `why` and a `source` that begin with TODO")
    return lines
