"""Which texts an expression may come to: commands and argument lists, as far as the file itself tells; runs nothing."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable

from patchlock.patches.ops._run_time_pip.install_commands import BETWEEN, UNKNOWN, parameters
from patchlock.patches.ops._run_time_pip.scopes import Binding, Call, Function, Scopes, lookup
from patchlock.patches.ops.syntax import Place, last_name

_MOST = 24
"""Alternatives that are kept of one expression."""
_LONGEST = 2000
_DEEPEST = 40
_FIELD = re.compile(r"%(?:\((\w+)\))?[sdr]|\{(\w*)(?:![rsa])?(?::[^{}]*)?\}")
_TRANSPARENT = frozenset(
    {
        *("str", "list", "tuple", "reversed", "sorted", "filter", "copy", "Path", "PurePath", "which", "resolve"),
        *("quote", "split", "join", "list2cmdline", "format_map", "encode", "decode", "replace", "lower", "as_posix"),
        *("strip", "lstrip", "rstrip", "abspath", "expanduser", "expandvars", "fspath", "realpath", "normpath"),
    }
)
"""Functions and methods whose result is made of their receiver's and arguments' words."""

_NOWHERE = Place(node=ast.Pass())

Texts = tuple[str, ...]


class Reader:
    """Reads the expressions of one file."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._busy: set[int] = set()
        self._steps = 0

    def of(self, node: ast.expr, scope: Function) -> Texts:
        """Give the texts that an expression may come to, in no order that matters; at least one."""
        self._steps = 0
        return self._of(node, scope)

    def bound(self, texts: Iterable[str], call: Call, function: Function) -> Texts:
        """Put the arguments of a call for the parameters of its function."""
        if not self._busy:
            self._steps = 0
        found: list[str] = []
        for text in texts:
            mine = [name for name, mark in function.parameters.items() if mark in parameters(text)]
            values = [self.argument(name, call, function) for name in mine]
            for chosen in itertools.islice(itertools.product(*values), _MOST):
                filled = text
                for name, value in zip(mine, chosen, strict=True):
                    filled = filled.replace(function.parameters[name], value)
                found.append(filled[:_LONGEST])
        return _few(found)

    def argument(self, name: str, call: Call, function: Function) -> Texts:
        """Give the texts of the argument that a call hands to a parameter, or of its default."""
        if isinstance(function.node, ast.Module):
            return (UNKNOWN,)
        arguments = function.node.args
        positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        is_bound = function.is_method and isinstance(call.node.func, ast.Attribute)
        names = positional[1:] if is_bound and positional else positional
        for keyword in call.node.keywords:
            if keyword.arg == name:
                return self._of(keyword.value, call.scope)
        if any(isinstance(item, ast.Starred) for item in call.node.args) and name in names:
            return self._joined(call.node.args, call.scope)
        if name in names and names.index(name) < len(call.node.args):
            return self._of(call.node.args[names.index(name)], call.scope)
        if arguments.vararg is not None and name == arguments.vararg.arg:
            return self._joined(call.node.args[len(names) :], call.scope)
        defaults = dict(zip(reversed(positional), reversed(arguments.defaults), strict=False))
        defaults |= {
            argument.arg: default
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        }
        around = function.parent or function
        return self._of(defaults[name], around) if name in defaults else (UNKNOWN,)

    def _of(self, node: ast.expr, scope: Function) -> Texts:
        self._steps += 1
        if self._steps > 4000 or len(self._busy) > _DEEPEST or id(node) in self._busy:
            return (UNKNOWN,)
        self._busy.add(id(node))
        try:
            return _few(self._read(node, scope)) or (UNKNOWN,)
        finally:
            self._busy.discard(id(node))

    def _read(self, node: ast.expr, scope: Function) -> Iterable[str]:
        match node:
            case ast.Constant(value=bytes(data)):
                return (data.decode("latin-1"),)
            case ast.Constant(value=value):
                return (str(value),)
            case ast.JoinedStr(values=values):
                return self._product(values, scope)
            case ast.FormattedValue(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self._of(value, scope)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return self._joined(elements, scope)
            case ast.Dict(values=values):
                return self._joined(values, scope)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.SetComp(elt=element):
                return (f"{BETWEEN}{text}{BETWEEN}" for text in self._of(element, scope))
            case ast.BinOp(left=left, op=ast.Add() | ast.Div(), right=right):
                between = "/" if isinstance(node.op, ast.Div) else ""
                return (a + between + b for a, b in self._pairs(left, right, scope))
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                values = right.elts if isinstance(right, ast.Tuple) else [right]
                return self._filled(left, values, {}, scope)
            case ast.IfExp(body=body, orelse=orelse):
                return (*self._of(body, scope), *self._of(orelse, scope))
            case ast.BoolOp(values=values):
                return itertools.chain.from_iterable(self._of(value, scope) for value in values)
            case ast.Name():
                return self._name(node, scope)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript(value=value):
                return self._elements(value, scope)
            case ast.Call():
                return self._call(node, scope)
            case _:
                return (UNKNOWN,)

    def _pairs(self, left: ast.expr, right: ast.expr, scope: Function) -> Iterable[tuple[str, str]]:
        return itertools.islice(itertools.product(self._of(left, scope), self._of(right, scope)), _MOST)

    def _product(self, values: Iterable[ast.expr], scope: Function) -> Iterable[str]:
        alternatives = [self._of(value, scope) for value in values]
        return ("".join(chosen) for chosen in itertools.islice(itertools.product(*alternatives), _MOST))

    def _joined(self, elements: Iterable[ast.expr], scope: Function) -> Texts:
        alternatives = [self._of(element, scope) for element in elements]
        chosen = itertools.islice(itertools.product(*alternatives), _MOST)
        return _few("".join(f"{BETWEEN}{text}{BETWEEN}" for text in texts) for texts in chosen)

    def _elements(self, node: ast.expr, scope: Function) -> Iterable[str]:
        """Give the texts of each element of a container; of the whole, where its elements are not known."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return itertools.chain.from_iterable(self._of(element, scope) for element in elements)
            case ast.Dict(values=values):
                return itertools.chain.from_iterable(self._elements_or_whole(value, scope) for value in values)
            case ast.Name():
                found = lookup(node, scope, self._scopes)
                if found is None or found.is_parameter:
                    return self._of(node, scope)
                kinds = {"is": self._elements, "extend": self._elements, "each": self._elements}
                known = [b for b in found.bindings if id(b.value) not in self._busy]
                return itertools.chain.from_iterable(kinds.get(b.kind, self._of)(b.value, b.scope) for b in known)
            case ast.Call(func=ast.Attribute(value=value, attr="items" | "values")):
                return self._elements(value, scope)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._of(element, scope)
            case _:
                return self._of(node, scope)

    def _elements_or_whole(self, node: ast.expr, scope: Function) -> Iterable[str]:
        return (*self._of(node, scope), *(self._elements(node, scope) if isinstance(node, ast.List) else ()))

    def _name(self, node: ast.Name, scope: Function) -> Iterable[str]:
        found = lookup(node, scope, self._scopes)
        if found is None:
            return (UNKNOWN,)
        return self._together(found.bindings, (found.function.parameters[node.id],) if found.is_parameter else ())

    def _attribute(self, node: ast.Attribute) -> Iterable[str]:
        base = node.value
        is_own = isinstance(base, ast.Name) and (base.id in {"self", "cls"} or base.id in self._scopes.classes)
        bindings = self._scopes.attributes.get(node.attr, []) if is_own else []
        if bindings:
            return self._together(bindings, ())
        return ("python",) if node.attr == "executable" else (UNKNOWN,)

    def _together(self, bindings: list[Binding], first: Texts) -> Iterable[str]:
        """Give what a name may be after all that happens to it, whatever the order in which it happens."""
        bases, more, before = list(first), "", ""
        for binding in bindings:
            if id(binding.value) in self._busy:
                continue
            if binding.kind == "each":
                bases += self._elements(binding.value, binding.scope)
                continue
            texts = self._of(binding.value, binding.scope)
            match binding.kind:
                case "is":
                    bases += texts
                case "append":
                    more += f"{BETWEEN}{' '.join(texts)}{BETWEEN}"
                case "extend":
                    more += " ".join(texts)
                case "prepend":
                    before += f"{BETWEEN}{' '.join(texts)}{BETWEEN}"
        if not bases and not (more or before):
            return (UNKNOWN,)
        whole = [before + base + more for base in bases or [""]] if more or before else []
        return (*whole, *bases)

    def _call(self, node: ast.Call, scope: Function) -> Iterable[str]:
        name = last_name(node.func)
        if isinstance(node.func, ast.Attribute) and name in {"format", "join"}:
            if name == "format":
                keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
                return self._filled(node.func.value, node.args, keywords, scope)
            if isinstance(node.func.value, ast.Constant):
                glue = str(node.func.value.value)
                return (_glued(text, glue) for argument in node.args for text in self._of(argument, scope))
        function = self._scopes.function(node.func, scope)
        if function is not None and function.returns:
            texts = (text for value in function.returns for text in self._of(value, function))
            # Its own parameters become this call's arguments; the place of the call does not matter here.
            return self.bound(_few(texts), Call(node, _NOWHERE, scope), function)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name in {"get", "getenv", "pop", "setdefault"} and arguments:
            receiver = node.func.value if isinstance(node.func, ast.Attribute) else node
            known = [text for text in self._elements(receiver, scope) if text != UNKNOWN] if name != "getenv" else []
            return (*known, *(text for default in arguments[1:] for text in self._of(default, scope)))
        if name in _TRANSPARENT:
            parts = [node.func.value, *arguments] if isinstance(node.func, ast.Attribute) else arguments
            known = [text for part in parts for text in self._of(part, scope) if text != UNKNOWN]
            return ("/".join(known),) if name in {"join", "joinpath"} else known
        if re.search(r"(?:^|_)pip(?:_|$)", name):
            verb = " install" if "install" in name else ""
            return (f"{BETWEEN}pip{verb}{BETWEEN}{text}" for text in self._joined(arguments, scope))
        return (UNKNOWN,)

    def _filled(
        self, template: ast.expr, values: list[ast.expr], named: dict[str, ast.expr], scope: Function
    ) -> Iterable[str]:
        """Fill the fields of `"…%s…" % values` and `"…{}…".format(values)`."""
        for text in self._of(template, scope):
            rest = iter(values)

            def fill(match: re.Match[str], rest: Iterable[ast.expr] = rest) -> str:
                name = match[1] or match[2] or ""
                value = named.get(name) or next(iter(rest), None)
                return UNKNOWN if value is None else "".join(self._of(value, scope)[:1])

            yield _FIELD.sub(fill, text)


def _glued(text: str, glue: str) -> str:
    """Join the elements of a list, as `glue.join` does."""
    return re.sub(f"{BETWEEN}+", lambda _: glue, text).strip(glue)


def _few(texts: Iterable[str]) -> Texts:
    """Keep some alternatives: each once, those that say something first."""
    kept = dict.fromkeys(text[:_LONGEST] for text in itertools.islice(texts, 4 * _MOST))
    return tuple(sorted(kept, key=lambda text: text == UNKNOWN)[:_MOST])
