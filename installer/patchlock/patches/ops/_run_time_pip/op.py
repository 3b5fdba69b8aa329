"""The op run-time-pip: calls that install packages while the app runs become a value that their callers bear."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patchlock.model.patch import Located, Refusal, Site
from patchlock.model.text_files import Edit, SourceText, splice
from patchlock.patches.ops._functions import check_name
from patchlock.patches.ops._run_time_pip import install_commands, syntax_versions
from patchlock.patches.ops._run_time_pip.scopes import Call, Function, Scopes, read
from patchlock.patches.ops._run_time_pip.standins import by_use, of_executor, of_function
from patchlock.patches.ops._run_time_pip.string_values import Reader
from patchlock.patches.ops._run_time_pip.subprocess_calls import commands, guessed, kind_of, kind_of_name
from patchlock.patches.ops.syntax import Module, Place, parse, parse_expression, same

_SAYS = "patchlock: not installed at run time: "
_ROUNDS = 6


@dataclass(frozen=True, kw_only=True)
class RunTimePip:
    """Replace each call that installs, upgrades, downloads or removes packages while the app runs.

    The call says on standard error what was left out, and gives what its callers use: 0, an empty text, a finished
    process. A function that is told what to install is not touched; the calls that tell it are.

    Attributes:
        packages: only installs that mention one of these distributions; empty: all.
        within: only inside these functions or classes (`install`, `Loader.install`); empty: everywhere.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    packages: tuple[str, ...] = ()
    within: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.within:
            check_name(name)

    def locate(self, source: SourceText) -> Located:
        """Find the calls; what installs and cannot be replaced is refused."""
        if not install_commands.may_install(source.text):
            return Located()
        module = parse(source)
        if isinstance(module, Refusal):
            return Located(refusals=(syntax_versions.judged(source, module),))
        try:
            return _Search(module, self).located()
        except RecursionError:
            return Located(refusals=(Refusal.ambiguous(1, "an expression is nested too deeply to be read"),))


@dataclass(frozen=True)
class _Hit:
    """A call that installs."""

    call: Call
    text: str
    kind: str
    """Of a known executor."""
    function: Function | None
    """Of the file, that hands the command on."""


class _Search:
    """One look at one file."""

    def __init__(self, module: Module, op: RunTimePip) -> None:
        self._module = module
        self._op = op
        self._scopes: Scopes = read(module.tree)
        self._reader = Reader(self._scopes)
        self._hits: dict[int, _Hit] = {}
        self._handed: dict[int, set[str]] = {}
        """By `id()` of a function: commands in which its parameters stand."""
        self._refusals: list[Refusal] = []

    def located(self) -> Located:
        for call in self._scopes.calls:
            self._look(call)
        self._follow()
        self._refuse_executors_handed_on()
        return self._checked()

    def _look(self, call: Call) -> None:
        name, kind = kind_of(call, self._scopes)
        if kind:
            self._judge(call, commands(call, name, self._scopes, self._reader), kind, None)
        elif self._scopes.function(call.node.func, call.scope) is None:
            self._judge(call, guessed(call, self._reader), "", None)

    def _judge(self, call: Call, texts: tuple[str, ...], kind: str, function: Function | None) -> None:
        if not call.place.is_within(self._op.within):
            return
        for text in texts:
            verdict = install_commands.judge(text)
            if verdict == "installs" and self._is_wanted(text):
                self._hits.setdefault(id(call.node), _Hit(call, text, kind, function))
                return
        for text in texts:
            if marks := install_commands.parameters(text):
                for mark in marks:
                    owner = self._scopes.owners.get(mark)
                    if owner is not None:
                        self._handed.setdefault(id(owner), set()).add(text)
            elif kind and install_commands.judge(text) == "untellable" and not self._op.packages:
                why = "it asks an installer for something that only running it would tell"
                self._refusals.append(Refusal.ambiguous(call.node.lineno, why))
                return

    def _is_wanted(self, text: str) -> bool:
        return not self._op.packages or install_commands.mentions(text, self._op.packages)

    def _follow(self) -> None:
        """Follow commands from the functions that hand them on to those who tell them."""
        targets = [(call, self._scopes.function(call.node.func, call.scope)) for call in self._scopes.calls]
        seen: set[tuple[int, str]] = set()
        for _ in range(_ROUNDS):
            before = len(seen)
            for call, function in targets:
                if function is None or id(call.node) in self._hits:
                    continue
                new = [t for t in self._handed.get(id(function), ()) if (id(call.node), t) not in seen]
                seen.update((id(call.node), text) for text in new)
                if new:
                    self._judge(call, self._reader.bound(sorted(new), call, function), "", function)
            if len(seen) == before:
                return

    def _refuse_executors_handed_on(self) -> None:
        """`partial(subprocess.run, ["pip", …])` and `Thread(target=os.system, args=…)` cannot be replaced."""
        for call in self._scopes.calls:
            arguments = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
            handed = [a for a in arguments if isinstance(a, ast.Name | ast.Attribute)]
            if not any(kind_of_name(name) for a in handed for name in self._scopes.dotted(a, call.scope)):
                continue
            texts = [text for argument in arguments for text in self._reader.of(argument, call.scope)]
            if any(install_commands.judge(text) == "installs" and self._is_wanted(text) for text in texts):
                why = "it hands an executor on together with a command that installs"
                self._refusals.append(Refusal.ambiguous(call.node.lineno, why))

    def _checked(self) -> Located:
        """Write the edits, and prove that they give the tree that is meant."""
        edits: list[Edit] = []
        sites: list[Site] = []
        meant: dict[int, ast.AST] = {}
        for hit in self._outermost():
            place = self._replaced(hit)
            text, why = self._written(hit, place)
            node = place.node
            if why or not isinstance(node, ast.expr):
                self._refusals.append(Refusal.ambiguous(hit.call.node.lineno, why))
                continue
            start = self._module.start(node)
            is_glued = self._module.source.text[start - 1 : start].isalnum()
            edits.append(Edit(start=start, end=self._module.end(node), text=f"({text})" if is_glued else text))
            sites.append(self._module.site(node))
            meant[id(node)] = parse_expression(text) or node
        settled = tuple(self._module.site(c.node) for c in self._scopes.calls if _is_ours(c.node))
        refusals = tuple(sorted(self._refusals, key=lambda refusal: refusal.line))
        if edits:
            after = parse(splice(self._module.source, tuple(edits)))
            if isinstance(after, Refusal) or not same(self._module.tree, after.tree, meant):
                refusal = Refusal.ambiguous(sites[0].line, "what would be left of it does not parse")
                return Located(settled=settled, refusals=(*refusals, refusal))
        return Located(edits=tuple(edits), sites=tuple(sites), settled=settled, refusals=refusals)

    def _outermost(self) -> list[_Hit]:
        ranges = {
            key: (self._module.start(h.call.node), self._module.end(h.call.node)) for key, h in self._hits.items()
        }
        inside = {
            key
            for key, (start, end) in ranges.items()
            if any(other != key and a <= start and end <= b for other, (a, b) in ranges.items())
        }
        hits = [hit for key, hit in self._hits.items() if key not in inside]
        return sorted(hits, key=lambda hit: self._module.start(hit.call.node))

    def _replaced(self, hit: _Hit) -> Place:
        """Give the place of what is replaced: the call, or the `await` of it."""
        awaited = self._scopes.awaits.get(id(hit.call.node))
        return awaited if awaited is not None and hit.kind != "task" else hit.call.place

    def _written(self, hit: _Hit, place: Place) -> tuple[str, str]:
        """Write what takes the place of a call, or say why nothing can."""
        if place.barrier:
            return "", place.barrier
        if place.field == "decorator_list":
            return "", "it is a decorator"
        says = f'print({_SAYS + install_commands.shown(hit.text)!a}, file=__import__("sys").stderr)'
        value = self._value(hit, place)
        if not value:
            return "", "its value is used, and what it would be cannot be told"
        return (says, "") if value == "None" else (f"({says} or {value})", "")

    def _value(self, hit: _Hit, place: Place) -> str:
        is_awaited = place is not hit.call.place
        is_coroutine = hit.function is not None and isinstance(hit.function.node, ast.AsyncFunctionDef)
        if hit.kind in {"end", "task"}:
            return of_executor(hit.kind, hit.call, self._module)
        if is_coroutine and not is_awaited:
            return ""
        if isinstance(place.parent, ast.Expr):
            return "None"
        if hit.kind:
            return of_executor(hit.kind, hit.call, self._module)
        if hit.function is not None:
            return of_function(hit.function, self._scopes, self._module)
        return by_use(place, hit.call.scope)


def _is_ours(node: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print"), args=[ast.Constant(value=str(text))]):
            return text.startswith(_SAYS)
        case _:
            return False
