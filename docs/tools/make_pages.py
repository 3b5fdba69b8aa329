"""Lay out the site's pages in a folder: those of the repository, those of the commands and those of the catalogue.

`python docs/tools/make_pages.py FOLDER` writes Markdown for the site's generator; `.ci/site` runs both. What is made
here is never committed. A relative link that leads to no page and no file of the repository ends it.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import relpath

import click
import plots

from patchlock.catalogue import app_summaries, optional_patches, pair_table, proofs
from patchlock.catalogue.reader import Catalogue
from patchlock.cli._commands import patchlock
from patchlock.model import byte_sizes
from patchlock.model.app import App, GitUpstream
from patchlock.model.choice import FAILS_IN_PART
from patchlock.model.conditions import VERSIONED
from patchlock.model.devices import VENDORS, Card
from patchlock.model.fits import Fit
from patchlock.model.profile import Profile
from patchlock.model.troubles import NEEDS, Trouble

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/patchlock/patchlock"
SITE = "https://patchlock.github.io/patchlock/"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def pages() -> dict[PurePosixPath, PurePosixPath]:
    """Name the Markdown files that become pages: file in the repository → page of the site."""
    made = {
        PurePosixPath("README.md"): PurePosixPath("index.md"),
        PurePosixPath("CONTRIBUTING.md"): PurePosixPath("contributing.md"),
        PurePosixPath("CHANGELOG.md"): PurePosixPath("changelog.md"),
        PurePosixPath("SECURITY.md"): PurePosixPath("report-a-vulnerability.md"),
        PurePosixPath("benchmarks/README.md"): PurePosixPath("benchmarks/index.md"),
    }
    for path in sorted((ROOT / "benchmarks" / "reports").glob("*.md")):
        made[_of_root(path)] = PurePosixPath("benchmarks", path.name)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        inside = PurePosixPath(path.relative_to(ROOT / "docs").as_posix())
        if inside != PurePosixPath("README.md"):  # the index of somebody who reads on GitHub
            made[_of_root(path)] = inside.with_name("index.md") if inside.name == "README.md" else inside
    return made


def _of_root(path: Path) -> PurePosixPath:
    return PurePosixPath(path.relative_to(ROOT).as_posix())


def relinked(text: str, file: PurePosixPath, known: Mapping[PurePosixPath, PurePosixPath]) -> str:
    """Point the relative links of a file to pages of the site, or to the repository where the site has none.

    Raises:
        ValueError: a link leads nowhere.
    """
    page = known[file]

    def changed(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        path, hash_sign, anchor = target.partition("#")
        if target.startswith(SITE):  # of a page that is made here, for readers elsewhere
            there = f"{target.removeprefix(SITE)}index.md"
            return f"[{words}]({relpath(there, str(page.parent))})"
        if "://" in target or target.startswith("mailto:") or not path:
            return found[0]
        aim = (ROOT / file).parent / path
        if not aim.exists():
            raise ValueError(f"{file}: the link {target} leads nowhere")
        inside = PurePosixPath(aim.resolve().relative_to(ROOT).as_posix())
        inside = inside / "README.md" if inside / "README.md" in known else inside
        if inside in known or (mark and inside.is_relative_to("docs")):
            there = known.get(inside) or inside.relative_to("docs")
            return f"{mark}[{words}]({relpath(str(there), str(page.parent))}{hash_sign}{anchor})"
        kind = "tree" if aim.is_dir() else "blob"
        return f"{mark}[{words}]({REPOSITORY}/{kind}/main/{inside}{hash_sign}{anchor})"

    return _outside_code(text, lambda part: _LINK.sub(changed, part))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


# --- commands ---------------------------------------------------------------------------------------------------------


def command_pages() -> Iterator[tuple[str, str]]:
    """Describe each command as `--help` does, and list them all."""
    rows = []
    for name, command in _commands(patchlock):
        page = "index-command" if name == "index" else name  # commands/index.md is the list of all
        rows.append(f"| [`{name}`]({page}.md) | {_cell(command.get_short_help_str(limit=200))} |")
        parts = [f"# {name}", *_about(command, f"patchlock {name}")]
        if isinstance(command, click.Group):
            for sub, one in _commands(command):
                parts += [f"## patchlock {name} {sub}", *_about(one, f"patchlock {name} {sub}")]
                link = f"[`{name} {sub}`]({page}.md#patchlock-{name}-{sub})"
                rows.append(f"| {link} | {_cell(one.get_short_help_str(limit=200))} |")
        yield f"commands/{page}.md", "\n\n".join(parts)
    text = [
        "# Commands",
        "Every command has `--help`, and most have `--json`.",
        "\n".join([*_head("command", "what it does"), *rows]),
    ]
    yield "commands/index.md", "\n\n".join(text)


def _commands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        if (command := group.get_command(context, name)) and not command.hidden:
            yield name, command


def _about(command: click.Command, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    for part in inspect.cleandoc(command.help or "").split("\n\n"):
        if part.startswith("\b"):
            head, *lines = part.removeprefix("\b\n").splitlines()
            yield f"{head.removesuffix(':')}:"
            yield "\n".join(["```sh", *(line.removeprefix("  ") for line in lines), "```"])
        else:
            yield part.replace("\n", " ").replace("<", "&lt;")
    yield "\n".join(["```", command.get_usage(context).removeprefix("Usage: "), "```"])
    records = [found for option in command.get_params(context) if (found := option.get_help_record(context))]
    if records:
        # An argument without a text is in the usage above.
        rows = [f"| `{_cell(left)}` | {_cell(right)} |" for left, right in records if right]
        yield "\n".join([*_head("option", "what it does"), *rows])


# --- catalogue --------------------------------------------------------------------------------------------------------


def catalogue_pages(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Describe each app and each profile, and which of them go together."""
    apps, profiles = catalogue.read_all()
    summaries = app_summaries.read_summaries(catalogue.root)
    states = pair_table.pair_states(summaries, profiles, app_summaries.is_locked(catalogue.root, profiles))
    proved = proofs.read(catalogue.root)
    cards = catalogue.cards()
    yield "catalogue/index.md", "\n\n".join(_overview(apps, profiles, states))
    for app in apps:
        found = [one for one in states if one.app == app.name]
        known = [one for one in proved if one.app == app.name]
        yield f"catalogue/{app.name}.md", "\n\n".join(_of_app(app, profiles, found, known))
    for profile in profiles:
        found = [one for one in states if one.profile == profile.name]
        known = [one for one in proved if one.profile == profile.name]
        yield f"catalogue/profiles/{profile.name}.md", "\n\n".join(_of_profile(profile, found, known, cards))


def _overview(
    apps: Iterable[App], profiles: Iterable[Profile], states: Iterable[pair_table.PairState]
) -> Iterator[str]:
    yield "# Catalogue"
    yield (
        "Which app runs on which kind of machine; what has run on real hardware is on the page of each app and of each "
        f"profile. {pair_table.LEGEND[:1].upper()}{pair_table.LEGEND[1:]}."
    )
    yield "## Apps"
    yield "\n".join(
        [*_head("app", "what it is"), *(f"| [{app.name}]({app.name}.md) | {_cell(app.title)} |" for app in apps)]
    )
    yield "## Profiles"
    rows = [f"| [{one.name}](profiles/{one.name}.md) | {_cell(one.title)} |" for one in profiles]
    yield "\n".join([*_head("profile", "machine"), *rows])
    yield "## Which app on which profile"
    head, *body = pair_table.rows(tuple(states))
    links = [f"[{name}]({name}.md)" for name in head[1:]]
    lines = [f"| [{row[0]}](profiles/{row[0]}.md) | {' | '.join(row[1:])} |" for row in body]
    yield "\n".join([*_head("profile", *links), *lines])
    yield "## Why not"
    yield "\n".join(
        [
            *_head("not supported", "why", "source"),
            *(f"| {pair_table.pair(one)} | {_cell(one.why)} | {_source(one.source)} |" for one in _reasons(states)),
        ]
    )


def _reasons(states: Iterable[pair_table.PairState]) -> tuple[pair_table.Reason, ...]:
    return pair_table.reasons(tuple(states))


def _state(one: pair_table.PairState) -> str:
    on_processor = f"; computes on the CPU there: {_cell(one.on_processor)}" if one.on_processor else ""
    trial = f"; {FAILS_IN_PART}: {_cell(one.trial)} ({_source(one.source)})" if one.trial else ""
    return f"{pair_table.shown_state(one.state)}{on_processor}{trial}"


def _of_app(
    app: App, profiles: Iterable[Profile], states: list[pair_table.PairState], known: list[proofs.Proof]
) -> Iterator[str]:
    yield f"# {app.name}"
    yield app.title
    upstream = app.upstream
    origin = (
        f"<{upstream.url}>, commit `{upstream.commit[:12]}`"
        if isinstance(upstream, GitUpstream)
        else "in the catalogue"
    )
    yield f"- Licence: {_cell(app.license)}\n- Upstream: {origin}"
    yield "\n".join(["```sh", f"patchlock install {app.name}", "```"])
    yield "## Where it runs"
    yield (
        "*Locked*: its packages fit together, each with its sha256; that was checked without the machine. What has run "
        "on one is [below](#proved-on-real-machines)."
    )
    yield from _states("profile", states, lambda one: f"[{one.profile}](profiles/{one.profile}.md)")
    yield from _proved("profile", "../", [(f"[{one.profile}](profiles/{one.profile}.md)", one) for one in known])
    locked = {one.profile for one in states if one.state == "locked"}
    options: dict[str, tuple[str, list[str]]] = {}
    for profile in profiles:
        if profile.name in locked:
            for one in optional_patches.of_profile(app, profile.name):
                options.setdefault(one.name, (one.gives, []))[1].append(f"[{profile.name}](profiles/{profile.name}.md)")
    if options:
        yield "## Options"
        rows = [f"| `--with {name}` | {_cell(gives)} | {', '.join(on)} |" for name, (gives, on) in options.items()]
        yield "\n".join([*_head("option", "what it gives", "profiles"), *rows])
    if app.memory:
        yield "## Memory"
        rows = [
            f"| {_cell(one.what)} | {_size(one.device)} | {_size(one.ram)} | "
            f"{_size(one.without_card)}{one.basis} | {_source(one.source)} |"
            for one in app.memory
        ]
        yield "\n".join([*_head("what", "GPU memory", "RAM with a GPU", "RAM without a GPU", "source"), *rows])
    if app.models:
        yield "## Models"
        rows = [f"| {_cell(one.repository)} | {_cell(one.why)} | {_cell(one.license)} |" for one in app.models]
        yield "\n".join([*_head("model", "for", "licence"), *rows])
    yield "## Patches"
    rows = [f"| `{one.id}` | {_cell(one.why)} | {_source(one.source)} |" for one in app.patches]
    yield "\n".join([*_head("patch", "why", "source"), *rows])


def _size(size: int) -> str:
    return byte_sizes.size_text(size) if size else "not known"


def _of_profile(
    profile: Profile, states: list[pair_table.PairState], known: list[proofs.Proof], cards: Iterable[Card]
) -> Iterator[str]:
    yield f"# {profile.name}: {_cell(profile.title)}"
    lines = [
        f"- Systems: {', '.join(platform.name for platform in profile.platforms)}",
        f"- Python: {profile.python}",
        f"- Computes on: {profile.computes_on}",
        f"- Facts from: {_source(profile.source)}",
    ]
    yield "\n".join(lines)
    if profile.fits:
        yield "## Machines"
        yield "\n".join([*_head("GPU", "where", "why", "source"), *(_fit(fit) for fit in profile.fits)])
    if profile.trials:
        yield "## Untested: it may work"
        yield "\n".join([*_head("GPU", "where", "why", "source"), *(_fit(fit) for fit in profile.trials)])
    yield "## Apps"
    yield from _states("app", states, lambda one: f"[{one.app}](../{one.app}.md)")
    yield from _proved("app", "../../", [(f"[{one.app}](../{one.app}.md)", one) for one in known])
    for heading, fits in (
        (f"GPUs of {profile.name}, by name", profile.fits),
        (f"GPUs on which nobody has tried {profile.name}, by name", profile.trials),
    ):
        if names := {name for one in cards if _is_of(one, fits) for name in one.name.split(" / ")}:
            yield f"## {heading}"
            yield _cell(", ".join(sorted(names)))


def _is_of(card: Card, fits: Iterable[Fit]) -> bool:
    return any(fit.vendor == card.vendor and (card.arch in fit.archs or card.family in fit.families) for fit in fits)


def _proved(head: str, up: str, known: list[tuple[str, proofs.Proof]]) -> Iterator[str]:
    yield "## Proved on real machines"
    rows = [
        f"| {name} | {one.platform} | {', '.join(one.devices) or 'the CPU'} | "
        f"{' · '.join(['locked', *(level for level in proofs.LEVELS if level in one.levels)])} | "
        f"{one.date}{', with an older lock' if proofs.is_of_older_lock(ROOT, one) else ''} | "
        f"[report]({REPOSITORY}/blob/main/{one.file}) |"
        for name, one in known
    ]
    if not rows:
        yield "Nothing yet; the lockfiles have only been checked."
        return
    yield "\n".join([*_head(head, "system", "device", "what", "when", "report"), *rows])
    yield f"[What these words mean]({up}glossary.md#proof): {proofs.LEGEND}."


def _fit(fit: Fit) -> str:
    named = ", ".join(f"`{name}`" for name in (*fit.archs, *fit.families))
    where = {None: [], True: ["in WSL2"], False: ["not in WSL2"]}[fit.wsl]
    where += [f"{VERSIONED[one.name].called} must be {one.words}" for one in fit.requires]
    return f"| {VENDORS[fit.vendor]} {named} | {_cell('; '.join(where))} | {_cell(fit.why)} | {_source(fit.source)} |"


def _states(
    head: str, states: list[pair_table.PairState], name: Callable[[pair_table.PairState], str]
) -> Iterator[str]:
    there = [f"| {name(one)} | {one.platform} | {_state(one)} |" for one in states if one.state != "refused"]
    if there:
        yield "\n".join([*_head(head, "system", "state"), *there])
    refused = [
        f"| {name(one)} | {one.platform} | {_cell(one.why)} | {_source(one.source)} |"
        for one in states
        if one.state == "refused"
    ]
    if refused:
        yield "Not supported:"
        yield "\n".join([*_head(head, "system", "why", "source"), *refused])


def _head(*words: str) -> list[str]:
    return [f"| {' | '.join(words)} |", f"|{' --- |' * len(words)}"]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _source(text: str) -> str:
    """Link each of several sources."""
    return ", ".join(map(_linked, text.split("; ")))


def _linked(text: str) -> str:
    if text.startswith("https://"):
        return f"[source]({text})"
    path = text.partition(":")[0]
    return f"[source]({REPOSITORY}/blob/main/{path})" if (ROOT / path).is_file() else _cell(text)


# --- errors, troubles and plots ---------------------------------------------------------------------------------------


def troubles_page(troubles: Iterable[Trouble]) -> Iterator[str]:
    """Describe each known problem that `doctor` finds, under its code."""
    yield "# Known problems"
    yield (
        "What `patchlock doctor` recognises on a machine or in an error message. It prints the code in brackets, and "
        "fills in `{app}` and `{python}`: the app, and the Python of its environment. It knows more messages than are "
        'shown here: give it yours with `patchlock doctor --says "THE ERROR"`.'
    )
    for one in troubles:
        yield f"## {one.name}"
        yield f"**{_cell(one.title[:1].upper() + one.title[1:])}.** {_cell(one.why)}"
        signs = tomllib.loads((ROOT / "profiles/troubles" / f"{one.name}.toml").read_text(encoding="utf-8"))["sign"]
        if texts := {text: None for sign in signs for says in sign.get("says", ()) if (text := _plain(says))}:
            yield f"Messages: {', '.join(f'`{text}`' for text in texts)}"
        for remedy in one.remedies:
            system = "In PowerShell on Windows" if remedy.shell == "powershell" else "In a terminal"
            needs = f" (needs {', '.join(NEEDS[need] for need in remedy.needs)})" if remedy.needs else ""
            yield f"{system}{needs}: {_cell(remedy.do)}"
            if remedy.commands:
                yield "\n".join([f"```{remedy.shell}", *remedy.commands, "```"])
        yield f"Facts from: {', '.join(map(_linked, one.sources))}"


def _plain(pattern: str) -> str:
    """Give one text that a pattern stands for; "" where that is not easily told."""
    text = re.sub(r"\(\?\w*:(.*)\)$", r"\1", pattern).removeprefix("^").removesuffix("$")
    text = re.sub(r"(\.|\\[wWdDsS])[*+]\??", "…", text)
    text = re.sub(r"\(([^()|]+)(\|[^()]*)?\)(?![?*+])", r"\1", text)  # the first of several
    text = re.sub(r"\[(\w)\w\]", r"\1", text).strip("…^$")
    if re.search(r"[\\^$.|?*+()\[\]{}`]", re.sub(r"\\\W", "", text)):
        return ""
    return re.sub(r"\\(\W)", r"\1", text)


def errors_by_code(text: str) -> str:
    """Give each row of the table of errors a heading of its own, so that it can be linked and found."""
    row = re.compile(r"^\| `([\w-]+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
    text = re.sub(r"^\| code .*\n\|[-| ]+\n", "", text, flags=re.MULTILINE)
    return row.sub(
        lambda found: f"## {found[1]}\n\nExit code {found[2]}: {found[3]}.\n\n**What to do:** {found[4]}.\n", text
    )


def with_plots(text: str) -> str:
    """Put a plot in the place of each `<!-- plot NAME -->`."""
    reports = ROOT / "benchmarks" / "reports"
    drawn = {
        "survival": lambda: plots.survival((reports / "survival.md").read_text("utf-8")),
        "jobs": lambda: plots.jobs((reports / "bench-jobs.md").read_text("utf-8")),
    }
    return re.sub(r"<!-- plot (\w+) -->", lambda found: drawn[found[1]](), text)


def make(folder: Path) -> None:
    """Write all pages."""
    shutil.rmtree(folder, ignore_errors=True)
    known = pages()
    made: dict[str, str] = {}
    for file, page in known.items():
        text = relinked((ROOT / file).read_text("utf-8"), file, known)
        text = errors_by_code(text) if file.name == "errors.md" else text
        made[str(page)] = with_plots(text)
    catalogue = Catalogue(root=ROOT)
    made |= dict(command_pages()) | dict(catalogue_pages(catalogue))
    made["troubles/index.md"] = "\n\n".join(troubles_page(catalogue.troubles()))
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(front_matter(name, text) + text, "utf-8")
    shutil.copytree(ROOT / "docs" / "images", folder / "images")
    shutil.copy(ROOT / "docs" / "tools" / "site.css", folder)
    settings = (ROOT / "zensical.toml").read_text("utf-8")
    (folder.parent / "zensical.toml").write_text(with_made_pages(settings, made), "utf-8")


def front_matter(page: str, text: str) -> str:
    """Say what only search engines and the site's own search read of a page."""
    if page == "index.md":  # its description is the site's
        lines = ["title: Run AI apps on the hardware you have"]
    else:
        lines = [f"description: {json.dumps(described(text), ensure_ascii=False)}"]
    # A search is for what to do: the pages that need a reason, a report or a measurement link to it.
    if page == "plans.md" or (page.startswith(("decisions/", "reports/", "benchmarks/")) and "/index." not in page):
        lines = ["search:", "  exclude: true", *lines]
    return "\n".join(["---", *lines, "---", "", ""])


def described(text: str) -> str:
    """Give a page's heading and the first sentence below it, without markup."""
    heading, _, rest = text.partition("\n\n")
    words = " ".join(rest.partition("\n\n")[0].split()) if re.match(r"[\w*`\"]", rest) and rest[:3] != "```" else ""
    sentence = re.split(r"(?<=[.:?!])\s(?=[A-Z])", words, maxsplit=1)[0].rstrip(".:")
    plain = _LINK.sub(
        r"\2", f"{heading.removeprefix('# ')}. {sentence}." if sentence else f"{heading.removeprefix('# ')}."
    )
    return re.sub(r"[`*]", "", plain).replace('"', "'").replace("&lt;", "<")


def with_made_pages(settings: str, made: Mapping[str, str]) -> str:
    """Put the pages of the commands and of the catalogue below their entries in the navigation.

    Args:
        settings: zensical.toml.
        made: all pages.
    """

    def below(folder: str) -> str:
        names = [name for name in made if str(PurePosixPath(name).parent) == folder and name != f"{folder}/index.md"]
        return ", ".join(f'{{ "{PurePosixPath(name).stem.removesuffix("-command")}" = "{name}" }}' for name in names)

    profiles = f'{{ "Profiles" = [ {below("catalogue/profiles")} ] }}'
    settings = settings.replace('"commands/index.md"', f'[ "commands/index.md", {below("commands")} ]')
    return settings.replace('"catalogue/index.md"', f'[ "catalogue/index.md", {below("catalogue")}, {profiles} ]')


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
