"""Recognise changes of a Python file, and say them as ops; what is not recognised is left to a diff."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchlock.catalogue.authoring import _comparison, _guards
from patchlock.catalogue.authoring._comparison import Change, Removed, Replaced, Returned
from patchlock.catalogue.authoring.drafts import Draft, NamedEnsure, ensures, longest_word, op, slug
from patchlock.model.patch import Op
from patchlock.patches.ops.syntax import Module

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
    said = [sayer.other(change) for change in others]
    drafts += [draft for draft in said if draft is not None]
    of_expressions, left = sayer.replaced(replaced)
    is_complete = len(drafts) == len(guarded) + len(others) and not left
    return Recognised(drafts=(*drafts, *of_expressions), is_complete=is_complete)


def _optional(module: Module, package: str) -> Iterator[Draft]:
    made = op("optional-import", package=package)
    if made is not None:
        yield Draft(
            op_name="optional-import",
            op=made,
            slug=slug(package, "optional"),
            is_exact=False,
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
            case Removed(call=call, scope=scope):
                return self._call(call, "None", scope, count=1)
            case Returned(name=name, value=value):
                returns = ast.unparse(value) if value is not None else "None"
                made = op("disable-function", function=name, returns=returns)
                return self._draft("disable-function", made, (name,), is_exact=False)
            case _:
                return None

    def replaced(self, changes: list[Replaced]) -> tuple[list[Draft], list[Replaced]]:
        """Say replaced expressions, first each by itself, then with what stands around it; and give what is left."""
        drafts, left = self._arguments(changes)
        for level in range(max((len(change.levels) for change in changes), default=0)):
            reachable = [change for change in left if len(change.levels) > level]
            for scoped in (False, True):
                for group in _groups(reachable, level, scoped):
                    draft = self._replacement(
                        group[0], level, group[0].scope if scoped else "", len(_distinct(group, level))
                    )
                    if draft is not None:
                        drafts.append(draft)
                        inside = {id(change) for change in group}
                        reachable = [change for change in reachable if id(change) not in inside]
                        left = [change for change in left if id(change) not in inside]
        return drafts, left

    def _replacement(self, change: Replaced, level: int, scope: str, count: int) -> Draft | None:
        old, new = change.levels[level]
        if isinstance(old, ast.Call) and isinstance(new, ast.Call) and (draft := self._argument(old, new, count)):
            return draft
        if isinstance(old, ast.Call) and not any(isinstance(node, ast.Call) for node in ast.walk(new)):
            return self._call(old, self._text(self.after, new), scope, count, is_exact=True)
        pattern, replacement = self._text(self.before, old), self._text(self.after, new)
        within = (scope,) if scope else ()
        made = op("replace-expression", pattern=pattern, replacement=replacement, within=within)
        if len(pattern) > _TOO_LONG or made is None or self._count(made) != count:
            return None
        checks = _string_checks(old) + ensures(("lacks", {"text": pattern}), ("contains", {"text": replacement}))
        return self._draft("replace-expression", made, (pattern,), checks, sites=count, name=replacement)

    def _arguments(self, changes: list[Replaced]) -> tuple[list[Draft], list[Replaced]]:
        """Say which calls of a function got a keyword argument, whatever else is in them."""
        groups: dict[tuple[str, str, str], list[Replaced]] = {}
        for change in changes:
            old, new = change.levels[0]
            added = _added_keyword(old, new)
            if added is not None and isinstance(old, ast.Call):
                key = (self._text(self.before, old.func), added.arg or "", self._text(self.after, added.value))
                groups.setdefault(key, []).append(change)
        drafts: list[Draft] = []
        for (function, argument, value), group in groups.items():
            made = op("set-argument", call=f"{function}($*arguments)", argument=argument, value=value)
            if made is not None and self._count(made) == len(group):
                name = f"{argument} of {function}"
                draft = self._draft("set-argument", made, (function,), sites=len(group), name=name)
                drafts += [draft] if draft is not None else []
                changes = [change for change in changes if change not in group]
        return drafts, changes

    def _argument(self, old: ast.Call, new: ast.Call, count: int) -> Draft | None:
        """Say that one call, told by all that is in it, got a keyword argument."""
        added = _added_keyword(old, new)
        if added is None:
            return None
        value, call = self._text(self.after, added.value), self._text(self.before, old)
        made = op("set-argument", call=call, argument=added.arg, value=value)
        if made is None or self._count(made) != count:
            return None
        function = self._text(self.before, old.func)
        return self._draft("set-argument", made, (function,), sites=count, name=f"{added.arg} of {function}")

    def _call(self, call: ast.Call, returns: str, scope: str, count: int, is_exact: bool = False) -> Draft | None:
        text = self._text(self.before, call)
        for within in ((), (scope,)) if scope else ((),):
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
                return self._draft("neutralise-call", made, (text,), checks, is_exact=is_exact, sites=count, name=slugs)
        return None

    def _draft(
        self,
        op_name: str,
        made: Op | None,
        texts: Iterable[str],
        checks: tuple[NamedEnsure, ...] = (),
        *,
        is_exact: bool = True,
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
            is_exact=is_exact,
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


def _groups(changes: list[Replaced], level: int, scoped: bool) -> list[list[Replaced]]:
    """Put together the changes that say the same, where wanted only those of one function."""
    found: dict[tuple[str, str, str], list[Replaced]] = {}
    for change in changes:
        old, new = change.levels[level]
        scope = change.scope if scoped else ""
        found.setdefault((ast.dump(old), ast.dump(new), scope), []).append(change)
    return list(found.values())


def _distinct(group: list[Replaced], level: int) -> set[int]:
    return {id(change.levels[level][0]) for change in group}


def _string_checks(old: ast.expr) -> tuple[NamedEnsure, ...]:
    values = [node.value for node in ast.walk(old) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return tuple(one for value in values for one in ensures(("no-string", {"value": value})))
