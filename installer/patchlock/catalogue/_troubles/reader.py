"""Turn a file of `profiles/troubles/` into a value, noting every mistake; reads no file."""

from __future__ import annotations

import re
import shlex

from patchlock.catalogue._troubles.conditions import CONDITION_KEYS, condition
from patchlock.catalogue.table_reader import Table
from patchlock.model.devices import VENDORS
from patchlock.model.errors import nearest
from patchlock.model.troubles import SHELLS, Condition, Remedy, Shell, Sign, Trouble

_ANYWHERE = ("{python}", "docker", "nvidia-smi", "patchlock")
READERS = {
    "sh": (
        *_ANYWHERE,
        *(
            "cat",
            "command",
            "df",
            "dpkg-query",
            "env",
            "getconf",
            "grep",
            "groups",
            "head",
            "id",
            "ldconfig",
            "ls",
            "lsmod",
            "modinfo",
        ),
        *("printenv", "rocminfo", "sort", "tail", "test", "uname", "wc"),
    ),
    "powershell": (
        *_ANYWHERE,
        *("Format-List", "Get-ChildItem", "Get-CimInstance", "Get-Command", "Get-Item", "Get-ItemProperty"),
        *("Get-MpComputerStatus", "Get-MpThreatDetection", "Select-Object", "Select-String", "Test-Path"),
        *("Where-Object", "wsl", "winget"),
    ),
}
"""Shell → the programs that a proof may start; all of them can only read, asked as `_ASKED` allows."""
_ASKED = {
    "docker": r"version|info|inspect|ps|images",
    "wsl": r"--version|--status|--list|-l",
    "winget": r"list|search|show",
    "patchlock": r"doctor|verify|detect|list|status",
    "ldconfig": r"-p",
}
_BETWEEN = {"|", "||", "&&", ";", "(", "&"}
_PYTHON = "python3"
_CMDLET = re.compile(r"\b[A-Z][A-Za-z]+-[A-Z]\w+")


def trouble(root: Table, name: str) -> Trouble:
    """Read a file of `profiles/troubles/`."""
    where = root.table("where", required=False)
    read = Trouble(
        name=name,
        title=root.text("title"),
        why=root.text("why"),
        sources=root.texts("sources"),
        before_install=root.boolean("before-install", False),
        vendors=root.texts("vendors", ()),
        where=condition(where),
        unless=tuple(_unless(table) for table in root.tables("unless")),
        signs=tuple(_sign(table) for table in root.tables("sign")),
        remedies=tuple(_remedy(table) for table in root.tables("remedy")),
    )
    _finish(where)
    for vendor in read.vendors:
        if vendor not in VENDORS:
            root.problem("vendors", f'there is no vendor "{vendor}"', nearest(vendor, VENDORS))
    for source in read.sources:
        if not source.startswith(("https://", "PyPI: ")):
            remedy = "write one that a reader can open: https://…, or PyPI: NAME VERSION"
            root.problem("sources", f'"{source}" is not an address', remedy)
    if not read.sources:
        root.problem("sources", "it is empty")
    if not read.signs:
        root.problem("sign", "a trouble needs a sign", "write a [[sign]]")
    if not read.remedies:
        root.problem("remedy", "a trouble needs a remedy", "write a [[remedy]]")
    return read


def _unless(table: Table) -> Condition:
    read = condition(table)
    _finish(table)
    return read


def _sign(table: Table) -> Sign:
    read = table.read(Sign, is_said=table.has("says"), condition=condition(table))
    _finish(table)
    return read


def _finish(table: Table) -> None:
    """Report what is no clause, with the nearest one."""
    table.known(CONDITION_KEYS)
    table.finish()


def _remedy(table: Table) -> Remedy:
    where = table.table("where", required=False)
    shell = _shell(table, "shell", None)
    read = table.read(Remedy, where=condition(where), shell=shell, proof_shell=_shell(table, "proof-shell", shell))
    _finish(where)
    if not read.commands and table.has("commands"):
        table.problem("commands", "it is empty", "write what a person pastes; a page is opened by a command, too")
    for mistake in writes(read.proof, read.proof_shell):
        table.problem("proof", mistake, f"it may start: {', '.join(READERS[read.proof_shell])}")
    table.finish()
    return read


def _shell(table: Table, key: str, default: Shell | None) -> Shell:
    name = table.text(key, default)
    if name and name not in SHELLS:
        table.problem(key, f'there is no shell "{name}"', nearest(name, SHELLS))
    return next((shell for shell in SHELLS if shell == name), SHELLS[0])


def writes(command: str, shell: Shell) -> list[str]:
    """Say what of a command may do more than read, a clause each; empty where it only reads."""
    lexer = shlex.shlex(
        command.replace("{python}", _PYTHON).replace("{app}", "app"), posix=True, punctuation_chars=True
    )
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError as error:
        return [f"it cannot be read: {error}"]
    found = [f'"{word}" may write' for word in words if set(word) & set("<>") and set(word) <= set("<>|&;()")]
    found += [f'"{word}" starts a program out of sight' for word in ("$(", "`") if shell == "sh" and word in command]
    firsts = [at for at in range(len(words)) if at == 0 or words[at - 1] in _BETWEEN]
    started = [words[at] for at in firsts if words[at][0].isalnum() or words[at][0] in "./~"]
    started += _CMDLET.findall(command) if shell == "powershell" else []
    found += [f'"{one}" may do more than read' for one in sorted(set(started) - {*READERS[shell], _PYTHON})]
    for at in firsts:
        asked = " ".join(words[at + 1 : at + 2])
        if words[at] in _ASKED and not re.fullmatch(_ASKED[words[at]], asked):
            found.append(f'"{words[at]} {asked}" may do more than read')
    return found
