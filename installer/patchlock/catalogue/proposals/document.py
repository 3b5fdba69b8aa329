"""Write a proposal as an app's file, with the reason of each decision in a comment; pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

from patchlock.catalogue.authoring import writing
from patchlock.catalogue.authoring.writing import value
from patchlock.catalogue.proposals.findings import Proposal

_WIDTH = 118
_SHOWN = 8


def render(proposal: Proposal) -> str:
    """Give the whole text of `app.toml`."""
    parts = [_head(proposal), _upstream(proposal), _launch(proposal), *_needs(proposal), *proposal.tables]
    parts += ["\n".join([*_comment(one.comment), writing.tables([one.written])]) for one in proposal.sections]
    parts.append(_check(proposal))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from textwrap.wrap(line, _WIDTH - 2, initial_indent="# ", subsequent_indent="# ") or ["#"]


def _head(proposal: Proposal) -> str:
    facts = proposal.facts
    lines = [
        *_comment(f"Proposed by `patchlock new-app {proposal.url}`. Look each line through; what is found, and where:"),
        *(line for disease in proposal.diseases for line in _comment(_told(disease.name, disease.found))),
        *(line for remark in proposal.remarks for line in _comment(f"TODO: {remark}")),
        "",
        "[app]",
        f"title = {value(facts.title)}",
        *_comment(f"Licence: {facts.license_from}."),
        f"license = {value(facts.license)}",
        f"source = {value(proposal.url.removesuffix('.git'))}",
        *_comment(f"Python: {facts.python_from}."),
        f"python = {value(facts.python)}",
        *_comment(f"{proposal.requirements.path}: {proposal.requirements.why} ({proposal.requirements.count} lines)."),
        *_others("Not", [f"{one.path} ({one.why})" for one in proposal.alternatives]),
        f"requirements = {value((str(proposal.requirements.path),))}",
    ]
    for one in proposal.sets:
        lines += _comment(f"{one.name}: {one.why}.")
    if proposal.sets:
        lines.append(f"shared = {value(tuple(one.name for one in proposal.sets))}")
    if without := [name for one in proposal.sets for name in one.without]:
        lines += _comment("Left out, as they cannot be applied everywhere; what of them can stands below.")
        lines.append(f"without = {value(tuple(without))}")
    return "\n".join(lines)


def _told(name: str, found: Iterable[object]) -> str:
    places = [str(one) for one in found]
    more = [f"(and {len(places) - _SHOWN} more)"] if len(places) > _SHOWN else []
    return "\n".join([f"{name}:", *(f"  {place}" for place in [*places[:_SHOWN], *more])])


def _others(word: str, others: list[str]) -> list[str]:
    shown = others[:_SHOWN]
    more = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return list(_comment(f"{word}: {', '.join(shown)}{more}.")) if shown else []


def _upstream(proposal: Proposal) -> str:
    lines = ["[upstream]", f"url = {value(proposal.url)}"]
    return "\n".join([*lines, f"branch = {value(proposal.branch)}", f"commit = {value(proposal.commit)}"])


def _launch(proposal: Proposal) -> str:
    launch = proposal.facts.launch
    lines = [*_comment(f"{' '.join(launch.command)}: {launch.why}."), *_others("Others", list(launch.others))]
    lines += ["[launch]", f"command = {value(launch.command)}"]
    if launch.environment:
        lines += ["", "[launch.environment]"]
        lines += [f"{name} = {value(content)}" for name, content in launch.environment.items()]
    return "\n".join(lines)


def _needs(proposal: Proposal) -> Iterator[str]:
    for need in proposal.needs:
        rows = [*_comment(str(need.found)), "[[need]]", f"name = {value(need.name)}", f"why = {value(need.why)}"]
        rows += [f"source = {value(proposal.link(need.found.path, need.found.line))}", "required = false"]
        yield "\n".join(rows)


def _check(proposal: Proposal) -> str:
    rows = [
        *_comment("That the environment fits: required modules, then those of the app that its program imports."),
        "[[check]]",
        'id = "imports"',
        'kind = "imports"',
        f"present = {json.dumps(proposal.facts.imports)}",
        "absent = []",
    ]
    return "\n".join(rows)
