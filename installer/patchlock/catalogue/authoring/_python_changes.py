"""Recognise changes of a Python file, and say them as ops; what is not recognised is left to a diff."""

from __future__ import annotations

import ast
import dataclasses
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchlock.catalogue.authoring import _comparison, _guards
from patchlock.catalogue.authoring._comparison import Change, Inserted, Replaced, Returned
from patchlock.catalogue.authoring.drafts import (
    TELLING,
    Draft,
    NamedEnsure,
    ensures,
    is_telling,
    longest_word,
    op,
    slug,
)
from patchlock.model.patch import Op
from patchlock.patches.ops.syntax import Module

_TOO_MANY = 40
"""Lines of a statement that are no insertion but a piece of a program."""
_TOO_LONG = 160
"""Characters of a pattern that nobody would want to read."""


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """What could be said of a file's changes."""

    drafts: tuple[Draft, ...]
    is_complete: bool
    """Every change is said by a draft."""


def recognise(before: Module, after: Module) -> Recognised:
    """Give the ops that change one file's code into the other's."""
    guarded = _guards.added(before.tree, after.tree)
    old, new = (_guards.without(tree, guarded) if guarded else tree for tree in (before.tree, after.tree))
    changes = tuple(_comparison.compare(old, new))
    drafts = [draft for package in sorted(guarded) for draft in _optional(before, package)]
    sayer = _Sayer(before=before, after=after)
    replaced = [change for change in changes if isinstance(change, Replaced)]
    others = [change for change in changes if not isinstance(change, Replaced)]
    # What a guard moves is no new statement.
    said = [None if guarded and isinstance(change, Inserted) else sayer.other(change) for change in others]
    drafts += [draft for draft in said if draft is not None]
    of_expressions, left = sayer.replaced(replaced)
    # Where comments and blank lines go beside a new statement is said hunk by hunk.
    is_complete = len(drafts) == len(guarded) + len(others) and not left
    is_complete = is_complete and not any(isinstance(change, Inserted) for change in others)
    return Recognised(drafts=(*drafts, *of_expressions), is_complete=is_complete)


def _optional(module: Module, package: str) -> Iterator[Draft]:
    made = op("optional-import", package=package)
    if made is not None:
        yield Draft(
            op_name="optional-import",
            op=made,
            slug=slug(package, "optional"),
            literal=(package,),
            ensures=ensures(("imports-without", {"package": package})),
            sites=len(made.locate(module.source).sites),
        )


@dataclass(frozen=True, kw_only=True)
class _Sayer:
    """Finds an op for a change, and the fewest words that mean no other place of the file."""

    before: Module
    after: Module

    def other(self, change: Change) -> Draft | None:
        match change:
            case Returned(name=name, value=value):
                returns = ast.unparse(value) if value is not None else "None"
                made = op("disable-function", function=name, returns=returns)
                checks = ensures(("disabled", {"function": name, "returns": returns}))
                return self._draft("disable-function", made, (name,), checks)
            case Inserted():
                return self._guard(change) or self._insertion(change)
            case _:
                return None

    def _guard(self, change: Inserted) -> Draft | None:
        """Say that a function leaves early on a condition."""
        match change.statements:
            case [ast.If(test=test, body=[ast.Return(value=value)], orelse=[])]:
                fields = {"returns": self._text(self.after, value) if value is not None else ""}
            case [ast.If(test=test, body=[ast.Raise(exc=ast.expr() as error, cause=None)], orelse=[])]:
                fields = {"raises": self._text(self.after, error)}
            case _:
                return None
        is_entry = change.below is None or _is_docstring(change.below)
        if not change.scope or not is_entry:
            return None
        condition = self._text(self.after, test)
        made = op("guard-entry", function=change.scope, condition=condition, **fields)
        if made is None or self._count(made) != 1:
            return None
        checks = ensures(("guarded", {"function": change.scope, "condition": condition}))
        return self._draft("guard-entry", made, (change.scope,), checks)

    def _insertion(self, change: Inserted) -> Draft | None:
        """Say which statements stand beside which."""
        text = self._block(change.statements)
        within = (change.scope,) if change.scope else ()
        places: list[dict[str, str]] = [
            {key: self._line(anchor)}
            for key, anchor in (("below", change.below), ("above", change.above))
            if anchor is not None
        ]
        if change.scope:
            places += [{"at": "start"}] if change.below is None or _is_docstring(change.below) else []
            places += [{"at": "end"}] if change.above is None else []
        elif change.below is None or _is_docstring(change.below):
            places.append({"at": "top"})
        for place in places if text else ():
            made = op("insert-statement", statement=text, within=within, **place)
            if made is not None and self._count(made) == 1:
                checks = ensures(("has-statement", {"statement": text, "within": within}))
                anchor = place.get("below") or place.get("above") or change.scope
                name = f"add {text.partition(chr(10))[0]}"
                return self._draft("insert-statement", made, (anchor,), checks, name=name)
        return None

    def _block(self, statements: tuple[ast.stmt, ...]) -> str:
        """Give the lines of statements without their indentation; "" where they share lines or are many."""
        first, last = statements[0], statements[-1]
        decorators = getattr(first, "decorator_list", [])
        start = self.after.line_start(self.after.start(first))
        if decorators:
            start = self.after.line_start(self.after.start(decorators[0]))
        end = self.after.end(last)
        text = self.after.source.text[start : self.after.line_end(end)]
        lead = text[: len(text) - len(text.lstrip())]
        is_alone = not lead.strip() and self.after.source.text[start:].lstrip()[:1] != ""
        lines = textwrap.dedent(text.replace("\r\n", "\n"))
        return lines.strip("\n") if is_alone and lines.count("\n") < _TOO_MANY else ""

    def _line(self, statement: ast.stmt) -> str:
        """Give a statement in one line, as it is written where that is possible."""
        text = self.before.segment(statement)
        return ast.unparse(statement) if "\n" in text or "\r" in text else text

    def replaced(self, changes: list[Replaced]) -> tuple[list[Draft], list[Replaced]]:
        """Say replaced expressions, first each by itself, then with what stands around it; and give what is left."""
        drafts, left = self._arguments(changes)
        for level in range(max((len(change.levels) for change in changes), default=0)):
            reachable = [change for change in left if len(change.levels) > level]
            for scoped in (False, True):
                for group in _groups(reachable, level, scoped):
                    draft = self._replacement(group, level)
                    if draft is not None:
                        drafts.append(draft)
                        inside = {id(change) for change in group}
                        reachable = [change for change in reachable if id(change) not in inside]
                        left = [change for change in left if id(change) not in inside]
        return drafts, left

    def _replacement(self, group: Sequence[Replaced], level: int) -> Draft | None:
        old, new = group[0].levels[level]
        scope, count = _scope(group), len({id(change.levels[level][0]) for change in group})
        if (
            isinstance(old, ast.Call)
            and isinstance(new, ast.Call)
            and (draft := self._argument(old, new, scope, count))
        ):
            return dataclasses.replace(draft, stands=self._stands(group, level))
        if isinstance(old, ast.Call) and not any(isinstance(node, ast.Call) for node in ast.walk(new)):
            call = self._call(old, self._text(self.after, new), scope, count)
            return call and dataclasses.replace(call, stands=self._stands(group, level))
        pattern, replacement = self._text(self.before, old), self._text(self.after, new)
        within = (scope,) if scope else ()
        made = op("replace-expression", pattern=pattern, replacement=replacement, within=within)
        if len(pattern) > _TOO_LONG or made is None or self._count(made) != count:
            return None
        checks = _string_checks(old) + (ensures(("lacks", {"text": pattern})) if len(pattern) >= TELLING else ())
        name = replacement if slug(replacement)[0].isalpha() else self._line_of(new)
        draft = self._draft("replace-expression", made, (pattern,), checks, sites=count, name=name)
        return draft and dataclasses.replace(draft, stands=self._stands(group, level))

    def _stands(self, group: Sequence[Replaced], level: int) -> tuple[tuple[NamedEnsure, ...], ...]:
        """Give ways to prove that the new expressions stand, each in its place: the fewest words first."""
        places = {id(change.levels[level][0]): change for change in group}.values()
        ways: list[list[tuple[str, dict[str, object]]]] = [
            [
                self._check("has-expression", one, change.scope)
                for change in places
                if _tells(one := change.levels[at][1])
            ]
            for at in range(level, min(len(change.levels) for change in places))
        ]
        news = [change.levels[level][1] for change in places]
        statements = [(self._statement(new), change.scope) for new, change in zip(news, places, strict=True)]
        ways.append([self._check("has-statement", one, scope) for one, scope in statements if one and _tells(one)])
        ways.append([("contains", {"text": text}) for text in map(self._line_of, news) if is_telling(text)])
        made = (ensures(*way) for way in ways)
        return tuple(way for way in made if len({repr(check) for check in way}) == len(places))

    def _check(self, name: str, node: ast.expr | ast.stmt, scope: str) -> tuple[str, dict[str, object]]:
        return name, {name.removeprefix("has-"): ast.unparse(node), "within": (scope,) if scope else ()}

    def _line_of(self, node: ast.expr) -> str:
        """Give the line in which an expression begins, with its end: a longer one would be another."""
        source, start = self.after.source.text, self.after.start(node)
        first, end = self.after.line_start(start), self.after.line_end(start)
        return source[first:end].lstrip() + "\n"[: len(source) - end]

    def _statement(self, new: ast.expr) -> ast.stmt | None:
        """Give the statement of an expression; None where that holds others."""
        statements = (node for node in ast.walk(self.after.tree) if isinstance(node, ast.stmt))
        simple = (node for node in statements if not isinstance(node, ast.Match) and not hasattr(node, "body"))
        return next((node for node in simple if new in ast.walk(node)), None)

    def _arguments(self, changes: list[Replaced]) -> tuple[list[Draft], list[Replaced]]:
        """Say which calls of a function got a keyword argument, or another value of it, whatever else is in them."""
        groups: dict[tuple[str, str, str], list[Replaced]] = {}
        for change in changes:
            for old, new in change.levels[:2]:
                added = _added_keyword(old, new)
                if added is not None and isinstance(old, ast.Call):
                    key = (self._callee(old.func), added.arg or "", self._text(self.after, added.value))
                    groups.setdefault(key, []).append(change)
                    break
        drafts: list[Draft] = []
        for (function, argument, value), group in groups.items():
            within = (scope,) if (scope := _scope(group)) else ()
            made = op("set-argument", call=f"{function}($*arguments)", argument=argument, value=value, within=within)
            if made is not None and self._count(made) == len(group):
                name = f"{argument} of {function}"
                callee = function.replace("$object", "*")
                checks = ensures(("argument", {"callee": callee, "argument": argument, "value": value}))
                word = function.removeprefix("$object.")
                draft = self._draft("set-argument", made, (word,), checks, sites=len(group), name=name)
                drafts += [draft] if draft is not None else []
                changes = [change for change in changes if change not in group]
        return drafts, changes

    def _callee(self, function: ast.expr) -> str:
        """Write what is called; of a method of something computed, its name alone."""
        match function:
            case ast.Attribute(value=ast.Call() | ast.Subscript(), attr=name):
                return f"$object.{name}"
            case _:
                return self._text(self.before, function)

    def _argument(self, old: ast.Call, new: ast.Call, scope: str, count: int) -> Draft | None:
        """Say that one call, told by all that is in it, got a keyword argument."""
        added = _added_keyword(old, new)
        if added is None:
            return None
        value, call = self._text(self.after, added.value), self._text(self.before, old)
        within = (scope,) if scope else ()
        made = op("set-argument", call=call, argument=added.arg, value=value, within=within)
        if made is None or self._count(made) != count:
            return None
        function = self._text(self.before, old.func)
        return self._draft("set-argument", made, (function,), sites=count, name=f"{added.arg} of {function}")

    def _call(self, call: ast.Call, returns: str, scope: str, count: int) -> Draft | None:
        text = self._text(self.before, call)
        for within in ((scope,), ()) if scope else ((),):
            made = op("neutralise-call", call=text, returns=returns, within=within)
            if made is not None and self._count(made) == count and len(text) <= _TOO_LONG:
                name = ast.unparse(call.func)
                strings = [n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                checks = ensures(
                    ("no-call", {"callee": name}),
                    ("no-call", {"callee": name, "mentions": tuple(strings)}),
                    ("lacks", {"text": text}),
                )
                slugs = f"no {name}"
                return self._draft("neutralise-call", made, (text,), checks, sites=count, name=slugs)
        return None

    def _draft(
        self,
        op_name: str,
        made: Op | None,
        texts: Iterable[str],
        checks: tuple[NamedEnsure, ...] = (),
        *,
        sites: int = 1,
        name: str = "",
    ) -> Draft | None:
        if made is None:
            return None
        texts = tuple(texts)
        return Draft(
            op_name=op_name,
            op=made,
            slug=slug(name or f"{op_name} {texts[0]}"),
            literal=longest_word(texts, self.before.source.text),
            ensures=checks,
            sites=sites,
        )

    def _count(self, made: Op) -> int:
        located = made.locate(self.before.source)
        return 0 if located.refusals else len(located.sites)

    def _text(self, module: Module, node: ast.expr) -> str:
        """Give an expression in one line, as it is written where that is possible."""
        text = module.segment(node) if _is_of(module, node) else ast.unparse(node)
        return ast.unparse(node) if "\n" in text or "\r" in text else text


def _added_keyword(old: ast.expr, new: ast.expr) -> ast.keyword | None:
    """Give the one keyword argument that a call got, or has with another value; `None` where more changed."""
    if not isinstance(old, ast.Call) or not isinstance(new, ast.Call) or ast.dump(old.func) != ast.dump(new.func):
        return None
    given = {keyword.arg: ast.dump(keyword.value) for keyword in old.keywords}
    changed = [keyword for keyword in new.keywords if given.get(keyword.arg) != ast.dump(keyword.value)]
    is_kept = set(given) <= {keyword.arg for keyword in new.keywords}
    is_same = [ast.dump(item) for item in old.args] == [ast.dump(item) for item in new.args]
    return changed[0] if len(changed) == 1 and changed[0].arg and is_kept and is_same else None


def _is_of(module: Module, node: ast.expr) -> bool:
    return node.end_lineno is not None and node.end_lineno <= len(module.starts)


def _tells(node: ast.expr | ast.stmt) -> bool:
    """Tell whether code has a name beside a value: a lone constant or name may come to stand anywhere."""
    is_bare = all(isinstance(one, ast.Name | ast.Attribute | ast.expr_context) for one in ast.walk(node))
    return not is_bare and any(isinstance(one, ast.Name) for one in ast.walk(node))


def _groups(changes: list[Replaced], level: int, scoped: bool) -> list[list[Replaced]]:
    """Put together the changes that say the same, where wanted only those of one function."""
    found: dict[tuple[str, str, str], list[Replaced]] = {}
    for change in changes:
        old, new = change.levels[level]
        scope = change.scope if scoped else ""
        found.setdefault((ast.dump(old), ast.dump(new), scope), []).append(change)
    return list(found.values())


def _scope(group: Sequence[Replaced]) -> str:
    """Give the one function in which something was replaced; "" where it was in several: it is meant for the file."""
    scopes = {change.scope for change in group}
    return scopes.pop() if len(scopes) == 1 else ""


def _is_docstring(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def _string_checks(old: ast.expr) -> tuple[NamedEnsure, ...]:
    values = [node.value for node in ast.walk(old) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return tuple(one for value in values for one in ensures(("no-string", {"value": value})))
