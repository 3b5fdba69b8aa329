"""What a name may stand for where it is read, in the functions of a file: bindings, branches, loops, parameters, imports."""

from __future__ import annotations

import ast

import pytest

from patchlock.patches.ops._run_time_pip.scopes import Call, Scopes, lookup, read
from patchlock.patches.ops.syntax import last_name


def found(text: str, callee: str = "use") -> tuple[Scopes, Call]:
    """Read a file; give it with its last call of a function."""
    scopes = read(ast.parse(text))
    return scopes, [call for call in scopes.calls if last_name(call.node.func) == callee][-1]


def reaching(text: str) -> tuple[list[str], bool]:
    """Say what the name in `use(name)` may stand for, sorted, and whether it may be what its function was given."""
    scopes, call = found(text)
    (name,) = call.node.args
    assert isinstance(name, ast.Name)
    bound = lookup(name, call.scope, scopes)
    assert bound is not None
    return sorted(f"{one.kind} {ast.unparse(one.value)}" for one in bound.bindings), bound.is_parameter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # how a name is bound
        pytest.param("c = 1\nuse(c)", ["is 1"], id="assigned"),
        pytest.param("a = c = 1\nuse(c)", ["is 1"], id="two-targets"),
        pytest.param("c: int = 1\nuse(c)", ["is 1"], id="annotated"),
        pytest.param("if (c := 1): use(c)", ["is 1"], id="walrus"),
        pytest.param("c = 1\nc += 2\nuse(c)", ["extend 2", "is 1"], id="added"),
        pytest.param("c = 1\nc -= 2\nuse(c)", ["is 1"], id="taken-away"),
        pytest.param("c = []\nc.append(1)\nuse(c)", ["append 1", "is []"], id="append"),
        pytest.param("c = []\nc.extend(a)\nuse(c)", ["extend a", "is []"], id="extend"),
        pytest.param("c = []\nc.insert(0, 1)\nuse(c)", ["is []", "prepend 1"], id="insert"),
        pytest.param("c = {}\nc['a'] = 1\nuse(c)", ["append 1", "is {}"], id="item"),
        pytest.param("for c in a: use(c)", ["each a"], id="loop"),
        pytest.param("async def f():\n  async for c in a: use(c)", ["each a"], id="async-loop"),
        pytest.param("[use(c) for c in a]", ["each a"], id="comprehension"),
        pytest.param("b, c = 1, 2\nuse(c)", ["is 2"], id="pair"),
        pytest.param("[b, c] = [1, 2]\nuse(c)", ["is 2"], id="list-of-targets"),
        pytest.param("b, c = a\nuse(c)", ["each a"], id="unpacked"),
        pytest.param("b, c = 1, 2, 3\nuse(c)", ["each (1, 2, 3)"], id="unpacked-with-another-length"),
        pytest.param("for b, c in (1, 2): use(c)", ["each (1, 2)"], id="unpacked-in-a-loop"),
        # what has happened to it before
        pytest.param("c = 1\nc = 2\nuse(c)", ["is 2"], id="overwritten"),
        pytest.param("c = 1\nuse(c)\nc = 2", ["is 1"], id="later"),
        pytest.param("c = []\nc.append(1)\nc = 2\nuse(c)", ["is 2"], id="overwritten-with-what-was-added"),
        pytest.param("if a: c = 1\nuse(c)", ["is 1"], id="perhaps"),
        pytest.param("c = 1\nif a: c = 2\nuse(c)", ["is 1", "is 2"], id="perhaps-overwritten"),
        pytest.param("if a: c = 1\nelse: c = 2\nuse(c)", ["is 1", "is 2"], id="either"),
        pytest.param("if a: c = 1\nelse:\n  c = 2\n  use(c)", ["is 2"], id="own-branch"),
        pytest.param("c = 0\nif a: c = 1\nelse: use(c)", ["is 0"], id="other-branch"),
        pytest.param("if a: c = 1\nif b: use(c)", ["is 1"], id="branch-of-another-question"),
        pytest.param("if a:\n  if b: c = 1\n  else: use(c)\nc = 2", [], id="other-branch-inside"),
        pytest.param("try: c = 1\nexcept E: use(c)", ["is 1"], id="handler"),
        pytest.param("with a: c = 1\nuse(c)", ["is 1"], id="with"),
        pytest.param("for b in a:\n  use(c)\n  c = 1", ["is 1"], id="next-round"),
        pytest.param("while a:\n  use(c)\n  c = 1", ["is 1"], id="next-round-of-while"),
        pytest.param("for b in a:\n  c = 1\n  use(c)\n  c = 2", ["is 1"], id="overwritten-in-each-round"),
        pytest.param("for b in a:\n  if b: c = 1\n  else: use(c)", ["is 1"], id="other-branch-of-the-round-before"),
        pytest.param("c = 1\nfor b in a:\n  use(c)\n  c = 2", ["is 1", "is 2"], id="first-and-next-round"),
        # where its function stands
        pytest.param("c = 1\ndef f(): use(c)\nc = 2", ["is 1", "is 2"], id="of-the-module"),
        pytest.param("def f():\n  global c\n  c = 1\ndef g(): use(c)", ["is 1"], id="global"),
        pytest.param("c = 1\ndef f():\n  c = 2\n  use(c)", ["is 2"], id="own-name"),
        pytest.param("c = 1\ndef f():\n  def g(): use(c)\n  c = 3\n  g()", ["is 3"], id="function-around"),
    ],
)
def test_what_a_name_may_stand_for(text: str, expected: list[str]) -> None:
    assert reaching(text) == (expected, False)


@pytest.mark.parametrize(
    ("text", "expected", "is_parameter"),
    [
        pytest.param("def f(c): use(c)", [], True, id="given"),
        pytest.param("def f(c, /): use(c)", [], True, id="by-position"),
        pytest.param("def f(*, c=1): use(c)", [], True, id="by-keyword"),
        pytest.param("def f(*c): use(c)", [], True, id="any-number"),
        pytest.param("def f(**c): use(c)", [], True, id="any-keywords"),
        pytest.param("lambda c: use(c)", [], True, id="lambda"),
        pytest.param("def f(c):\n  c = 1\n  use(c)", ["is 1"], False, id="overwritten"),
        pytest.param("def f(c):\n  if a: c = 1\n  use(c)", ["is 1"], True, id="perhaps-overwritten"),
        pytest.param("def f(c):\n  c += a\n  use(c)", ["extend a"], True, id="added-to"),
        pytest.param("def f(c):\n  for c in a: use(c)", ["each a"], False, id="loop"),
        pytest.param("def f(c): return [use(c) for c in a]", ["each a"], True, id="comprehension"),
        pytest.param("def f(c):\n  c = 1\n  def g(): use(c)", ["is 1"], True, id="seen-from-a-function-inside"),
    ],
)
def test_what_a_parameter_may_stand_for(text: str, expected: list[str], is_parameter: bool) -> None:
    assert reaching(text) == (expected, is_parameter)


def test_name_that_nothing_binds_is_unknown() -> None:
    scopes, call = found("use(c)")
    (name,) = call.node.args
    assert isinstance(name, ast.Name)
    assert lookup(name, call.scope, scopes) is None


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("import a.b", {"a": {"a"}}),
        ("import a.b as c", {"c": {"a.b"}}),
        ("from a import b", {"b": {"a.b"}}),
        ("from a import b as c", {"c": {"a.b"}}),
        ("from a import *", {"*": {"a"}}),
        ("from . import b", {"b": {"..b"}}),
        ("from ..a import b", {"b": {"..a.b"}}),
        ("try: from a import c\nexcept ImportError: from b import c", {"c": {"a.c", "b.c"}}),
    ],
)
def test_imports(text: str, imports: dict[str, set[str]]) -> None:
    assert read(ast.parse(text)).module.imports == imports


CHAIN = "b = a\nc = b\nd = c\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("import os\nuse(os.system)", {"os.system"}, id="attribute"),
        pytest.param("from os import system as s\nuse(s)", {"os.system"}, id="another-name"),
        pytest.param("from os import *\nuse(system)", {"system", "os.system"}, id="star"),
        pytest.param("import os\nc = os.system\nuse(c)", {"os.system"}, id="assigned"),
        pytest.param("import os\nc = os.system\nd = c\nuse(d)", {"os.system"}, id="assigned-twice"),
        pytest.param("import os\nuse(getattr(os, 'system'))", {"os.system"}, id="getattr"),
        pytest.param("use(__import__('os').system)", {"os.system"}, id="dunder-import"),
        pytest.param("import importlib\nuse(importlib.import_module('os').system)", {"os.system"}, id="import-module"),
        pytest.param("use(make(c))", {"make()"}, id="made-by-a-function"),
        pytest.param("use(make()(c))", set(), id="made-by-what-a-function-made"),
        pytest.param("def c(): pass\nuse(c)", set(), id="function-of-the-file"),
        pytest.param("use(1)", set(), id="no-name"),
        pytest.param("from functools import partial\nuse(partial(c, check=True))", {"c"}, id="partial"),
        pytest.param("import functools\nuse(getattr(functools, 'partial')(c))", set(), id="partial-by-getattr"),
        pytest.param(f"import os\na = os.system\n{CHAIN}use(d)", {"os.system"}, id="four-names"),
        pytest.param(f"import os\no = os.system\na = o\n{CHAIN}use(d)", {"o"}, id="five-names-are-too-many"),
        pytest.param("c = d\nd = c\nuse(c)", {"c"}, id="names-in-a-circle"),
        pytest.param(
            f"from functools import partial as p\na = p(o)\n{CHAIN}use(d)", {"p()"}, id="partial-too-far-away"
        ),
        pytest.param(
            "from functools import partial as p\nq = p\nr = q\ns = r\nuse(s(c))", {"c"}, id="partial-of-three-names"
        ),
        pytest.param("p = p(c)\nuse(p)", {"p()"}, id="made-by-itself"),
        pytest.param("import functools as f\nuse(f.partial(c))", {"c"}, id="partial-of-the-module"),
        *(
            pytest.param(
                f"from functools import partial\nuse(partial(c, {given}))", {"partial()"}, id=f"partial-{given}"
            )
            for given in (
                *("text=True", "universal_newlines=True", "encoding='x'", "errors='x'", "stdout=1", "stderr=1"),
                *("capture_output=True", "args=a", "**a"),
            )
        ),
    ],
)
def test_dotted_names_of_an_expression(text: str, names: set[str]) -> None:
    scopes, call = found(text)
    assert scopes.dotted(call.node.args[0], call.scope) == names


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("def w(): pass\nw(use())", ast.FunctionDef, id="function"),
        pytest.param("async def w(): pass\nw(use())", ast.AsyncFunctionDef, id="coroutine"),
        pytest.param("w = lambda: 1\nw(use())", ast.Lambda, id="lambda"),
        pytest.param("class A:\n  def w(self): pass\na.w(use())", ast.FunctionDef, id="only-method-of-the-name"),
        pytest.param(
            "class A:\n  def w(self): pass\nclass B:\n  def w(self): pass\na.w(use())", None, id="two-methods"
        ),
        pytest.param("import a\nclass A:\n  def w(self): pass\na.w(use())", None, id="of-an-import"),
        pytest.param("import a\nclass A:\n  def w(self): pass\na.b.w(use())", None, id="of-a-part-of-an-import"),
        pytest.param("class A:\n  def w(self): pass\nw(use())", None, id="method-by-its-bare-name"),
        pytest.param("def w(): pass\ndef f(w): w(use())", None, id="parameter-of-the-name"),
        pytest.param("def w(): pass\ndef f():\n  import w\n  w(use())", None, id="import-of-the-name"),
        pytest.param("def w(): pass\ndef f():\n  w = 1\n  w(use())", None, id="value-of-the-name"),
        pytest.param("def w(): pass\n(w or x)(use())", None, id="no-name"),
    ],
)
def test_function_that_a_call_reaches(text: str, kind: type[ast.AST] | None) -> None:
    scopes, call = found(text, callee="w" if "(w or x)" not in text else "")
    reached = scopes.function(call.node.func, call.scope)
    assert (type(reached.node) if reached is not None else None) == kind


def test_what_functions_return_and_make() -> None:
    scopes = read(ast.parse("def f():\n  return 1\ndef g():\n  yield 2\nh = lambda: 3\ndef i():\n  return\n"))
    functions = scopes.module.functions
    assert [ast.unparse(value) for value in functions["f"].returns] == ["1"]
    assert [functions[name].is_generator for name in "fgi"] == [False, True, False]
    assert functions["i"].returns == []
    (made,) = scopes.lambdas.values()
    assert [ast.unparse(value) for value in made.returns] == ["3"]


def test_attributes_of_classes_and_of_self() -> None:
    scopes = read(ast.parse("class A:\n  a = 1\n  def f(self):\n    self.b = 2\n    c = 3\n"))
    assert {name: [ast.unparse(one.value) for one in bound] for name, bound in scopes.attributes.items()} == {
        "a": ["1"],
        "b": ["2"],
    }
    assert scopes.classes == {"A"}


def test_awaits_are_known_by_their_calls() -> None:
    scopes, call = found("async def f(): await use()")
    assert isinstance(scopes.awaits[id(call.node)].node, ast.Await)


def test_each_parameter_has_a_character_of_its_own() -> None:
    scopes = read(ast.parse("def f(a, *b, c, **d): pass\nlambda a: a\n"))
    functions = {id(function): function for function in scopes.owners.values()}.values()
    marks = [mark for function in functions for mark in function.parameters.values()]
    assert sorted(marks) == sorted(scopes.owners)
    assert len(set(marks)) == 5
