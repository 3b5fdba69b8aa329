"""Write a proposal as an app's file, with the reason of each decision in a comment; pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from patchlock.catalogue.authoring import writing
from patchlock.catalogue.proposals.findings import Issue, Proposal, ranked
from patchlock.model.toml_text import item
from patchlock.model.visible_text import visible_name

if TYPE_CHECKING:
    from packaging.utils import NormalizedName
    from tomlkit.items import Table

_SCHEMA = "#:schema ../../docs/schemas/app.json\n"
"""Where editors with Taplo look for the keys; `catalogue.schemas.write` puts it there."""
_WIDTH = 118
_SHOWN = 8
_WRAPPER = textwrap.TextWrapper(
    _WIDTH - 2, initial_indent="# ", subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
)
"""Breaks lines at spaces alone, so that an address stays whole."""


def render(proposal: Proposal) -> str:
    """Give the whole text of `app.toml`."""
    parts = [_SCHEMA + _head(proposal), _upstream(proposal), _launch(proposal), *_needs(proposal), *proposal.tables]
    parts += ["\n".join([*_comment(one.comment), writing.tables([one.written])]) for one in proposal.sections]
    parts += _check(proposal)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def build_table(
    versions: Mapping[NormalizedName, object], *, why: str, source: str, platforms: tuple[str, ...] = ()
) -> str:
    """Write the `[[build]]` table of distributions that have no wheel.

    Args:
        versions: of each.
        why: they are built.
        source: of that.
        platforms: on which alone; none: on all.
    """
    above = f"No wheel: {', '.join(f'{name} {version}' for name, version in versions.items())}."
    rows: list[tuple[str, object] | str] = [("names", tuple(versions)), ("why", why), ("source", source)]
    rows += [("platforms", platforms)] if platforms else []
    return _piece((f"# {above}",), {"build": [_table(*rows)]}).rstrip()


def rule_table(word: str, **rows: object) -> str:
    """Write a table of a rule of locks, such as `[[constraint]]`; its keys in their order."""
    return _piece((), {word: [_table(*rows.items())]}).rstrip()


def _comment(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from _WRAPPER.wrap(visible_name(line)) or ["#"]


def _piece(above: Iterable[str], tables: dict[str, object]) -> str:
    import tomlkit

    return "\n".join([*above, tomlkit.dumps(tables)])


def _table(*rows: tuple[str, object] | str) -> Table:
    """Make a table of keys with their values, and of comments above them."""
    import tomlkit

    table = tomlkit.table()
    for row in rows:
        if isinstance(row, str):
            table.add(tomlkit.comment(row.removeprefix("#").strip()))
        else:
            table.append(row[0], item(row[1]))
    return table


def _head(proposal: Proposal) -> str:
    facts = proposal.facts
    above = [
        *_comment(f"Proposed by `patchlock new-app {proposal.url}`. Read each line. What was found, and where:"),
        *(line for issue in ranked(proposal.issues) for line in _comment(_told(issue))),
        *(line for remark in proposal.remarks for line in _comment(f"TODO: {remark}")),
        "",
    ]
    rows: list[tuple[str, object] | str] = [
        ("title", facts.title),
        *_comment(f"Licence: {facts.license_from}."),
        ("license", facts.license),
        ("source", proposal.url.removesuffix(".git")),
        *_comment(f"Python: {facts.python_from}."),
        ("python", facts.python),
        *_comment(f"{proposal.requirements.path}: {proposal.requirements.why} ({proposal.requirements.count} lines)."),
        *_others("Also there", [f"{one.path} ({one.why})" for one in proposal.alternatives]),
        ("requirements", tuple(map(str, proposal.together))),
    ]
    if proposal.extras:
        rows.append(("extras", proposal.extras))
    for one in proposal.sets:
        rows += _comment(f"{one.name}: {one.why}.")
    if proposal.sets:
        rows.append(("shared", tuple(one.name for one in proposal.sets)))
    if without := [name for one in proposal.sets for name in one.without]:
        rows += _comment("Left out; what stands in their place is below, each with the reason.")
        rows.append(("without", without))
    return _piece(above, {"app": _table(*rows)})


def _told(issue: Issue) -> str:
    places = [str(one) for one in issue.found]
    more = [f"(and {len(places) - _SHOWN} more)"] if len(places) > _SHOWN else []
    return "\n".join(
        [
            f"{'TODO: ' * issue.is_left}{issue.name}: {issue.title}; {issue.remedy}",
            *(f"  {place}" for place in [*places[:_SHOWN], *more]),
        ]
    )


def _others(word: str, others: list[str]) -> list[str]:
    shown = others[:_SHOWN]
    more = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return list(_comment(f"{word}: {', '.join(shown)}{more}.")) if shown else []


def _upstream(proposal: Proposal) -> str:
    rows: list[tuple[str, object] | str] = [
        ("url", proposal.url),
        ("branch", proposal.branch),
        ("commit", proposal.commit),
    ]
    if proposal.submodules:
        rows += ["The code asks for their files.", ("submodules", proposal.submodules)]
    if proposal.as_of:
        rows += [
            "Files of the commit's day do not fit together: locks take those of later months.",
            ("as-of", proposal.as_of),
        ]
    return _piece((), {"upstream": _table(*rows)})


def _launch(proposal: Proposal) -> str:
    launch = proposal.facts.launch
    above = (*_comment(f"{' '.join(launch.command)}: {launch.why}."), *_others("Others", list(launch.others)))
    table = _table(("command", launch.command))
    if launch.environment:
        table.append("environment", _table(*launch.environment.items()))
    return _piece(above, {"launch": table})


def _needs(proposal: Proposal) -> Iterator[str]:
    for need in proposal.needs:
        rows: list[tuple[str, object] | str] = [("name", need.name), ("why", need.why)]
        rows.append(("source", proposal.link(need.found.path, need.found.line)))
        if not need.is_required:
            rows.append(("required", False))
        if need.platforms:
            rows.append(("platforms", need.platforms))
        yield _piece(_comment(str(need.found)), {"need": [_table(*rows)]})


def _check(proposal: Proposal) -> Iterator[str]:
    if not proposal.facts.imports:  # a check of nothing proves nothing
        return
    above = "That the environment fits: some of the modules that the app imports as it starts."
    rows = (("id", "imports"), ("kind", "imports"), ("present", proposal.facts.imports), ("absent", ()))
    yield _piece(_comment(above), {"check": [_table(*rows)]})
