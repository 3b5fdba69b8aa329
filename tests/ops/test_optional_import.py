"""The op optional-import: what must change, what must not, what is refused; and the results are executed."""

from __future__ import annotations

import codecs
import copy
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchlock.model import Located, OutcomeKind, Refusal, Site
from patchlock.ops.guarding import is_only_guarded
from patchlock.ops.python import OptionalImport
from patchlock.ops.syntax import Module, parse
from patchlock.sources import Edit, SourceText, decode, encode, splice

DEEPSPEED = OptionalImport(package="deepspeed")
MESSAGE = "training needs it; inference does not"


@pytest.fixture(autouse=True)
def _no_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every import of deepspeed fail, whatever is installed."""
    monkeypatch.setitem(sys.modules, "deepspeed", None)


def read(data: bytes) -> SourceText:
    source = decode(PurePosixPath("a.py"), data)
    assert isinstance(source, SourceText)
    return source


def locate(text: str) -> Located:
    return DEEPSPEED.locate(read(text.encode()))


def patched(data: bytes, op: OptionalImport = DEEPSPEED) -> bytes:
    """Apply the op, and see that it settles: the second time there is nothing to edit."""
    source = read(data)
    located = op.locate(source)
    assert not located.refusals
    assert located.edits
    result = encode(splice(source, located.edits))
    again = op.locate(read(result))
    assert not again.edits
    assert not again.sites
    assert not again.refusals
    assert len(again.settled) >= len(located.sites)
    return result


def without_class(text: str) -> str:
    """Put `<class>` for the class that was inserted, and `Absent` for its name."""
    shortened, count = re.subn(
        r"class _PatchlockAbsent:.*?: False((?:\r\n|\n|\r){3})", "<class>", text, flags=re.DOTALL
    )
    assert count == 1
    return shortened.replace("_PatchlockAbsent", "Absent").replace("_patchlock_error", "error")


def run(data: bytes) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "patched"}
    exec(compile(data, "patched.py", "exec", dont_inherit=True), names)
    return names


def fails_unpatched(data: bytes) -> None:
    with pytest.raises(ImportError):
        run(data)


GUARDED = '\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\n'

CHANGES = [
    pytest.param("import deepspeed\n", "<class>try:\n    import deepspeed" + GUARDED, id="plain"),
    pytest.param("import deepspeed.comm\n", "<class>try:\n    import deepspeed.comm" + GUARDED, id="submodule-binds-the-package"),
    pytest.param("import deepspeed.comm as dist  # noqa\n", '<class>try:\n    import deepspeed.comm as dist  # noqa\nexcept ImportError as error:\n    dist = Absent("deepspeed", "deepspeed.comm", error)\n', id="as"),
    pytest.param("from deepspeed.a.b import C, D as E\n", '<class>try:\n    from deepspeed.a.b import C, D as E\nexcept ImportError as error:\n    C = Absent("deepspeed", "C", error)\n    E = Absent("deepspeed", "D", error)\n', id="from"),
    pytest.param("from deepspeed import (  # all\n    A,  # a\n\n    B,\n)  # end\nx = 1\n", '<class>try:\n    from deepspeed import (  # all\n        A,  # a\n\n        B,\n    )  # end\nexcept ImportError as error:\n    A = Absent("deepspeed", "A", error)\n    B = Absent("deepspeed", "B", error)\nx = 1\n', id="parentheses-and-comments"),
    pytest.param("from deepspeed \\\n  import A\n", '<class>try:\n    from deepspeed \\\n      import A\nexcept ImportError as error:\n    A = Absent("deepspeed", "A", error)\n', id="backslash"),
    pytest.param("import os, deepspeed\n", "<class>import os\ntry:\n    import deepspeed" + GUARDED, id="several-names-last"),
    pytest.param("import deepspeed, os as o, sys  # c\n", "<class>try:\n    import deepspeed" + GUARDED + "import os as o, sys  # c\n", id="several-names-first"),
    pytest.param("import os, \\\n  deepspeed, \\\n  sys\n", "<class>import os\ntry:\n    import deepspeed" + GUARDED + "import sys\n", id="several-names-and-backslashes"),
    pytest.param("import deepspeed, deepspeed.comm as c\n", "<class>try:\n    import deepspeed" + GUARDED + 'try:\n    import deepspeed.comm as c\nexcept ImportError as error:\n    c = Absent("deepspeed", "deepspeed.comm", error)\n', id="several-names-of-the-package"),
    pytest.param("x = 1; import deepspeed; y = 2  # c\n", "<class>x = 1\ntry:\n    import deepspeed" + GUARDED + "y = 2  # c\n", id="semicolons"),
    pytest.param("import os; import deepspeed;  # c\n", "<class>import os\ntry:\n    import deepspeed;  # c" + GUARDED, id="semicolon-at-the-end"),
    pytest.param("import os; \\\nimport deepspeed\n", "<class>import os\ntry:\n    import deepspeed" + GUARDED, id="semicolon-and-backslash"),
    pytest.param("if x: import deepspeed\nelse: y()\n", '<class>if x:\n    try:\n        import deepspeed\n    except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\nelse: y()\n', id="one-line-if"),
    pytest.param("class A: x = 1; import deepspeed  # c\n", '<class>class A:\n    x = 1\n    try:\n        import deepspeed  # c\n    except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="one-line-class"),
    pytest.param("try:\n  import deepspeed\nfinally:\n  x()\n", '<class>try:\n  try:\n    import deepspeed\n  except ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\nfinally:\n  x()\n', id="try-that-ends-nothing"),
    pytest.param("try:\n    import fast as deepspeed\nexcept ImportError:\n    import deepspeed\n", '<class>try:\n    import fast as deepspeed\nexcept ImportError:\n    try:\n        import deepspeed\n    except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="in-a-handler"),
    pytest.param("if not TYPE_CHECKING:\n    import deepspeed\n", '<class>if not TYPE_CHECKING:\n    try:\n        import deepspeed\n    except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="not-type-checking"),
    pytest.param("if TYPE_CHECKING:\n    import deepspeed\nelse:\n    import deepspeed\n", '<class>if TYPE_CHECKING:\n    import deepspeed\nelse:\n    try:\n        import deepspeed\n    except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="else-of-type-checking"),
    pytest.param("with a, b:\n  for c in d:\n    while e:\n      import deepspeed\n", '<class>with a, b:\n  for c in d:\n    while e:\n      try:\n        import deepspeed\n      except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="with-for-while"),
    pytest.param("match a:\n  case 1: import deepspeed\n", '<class>match a:\n  case 1:\n      try:\n          import deepspeed\n      except ImportError as error:\n          deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="one-line-case"),
    pytest.param("from deepspeed import E\ntry: pass\nexcept (E, ValueError): pass\n", '<class>try:\n    from deepspeed import E\nexcept ImportError as error:\n    E = Absent("deepspeed", "E", error)._patchlock_class(Exception)\ntry: pass\nexcept (E, ValueError): pass\n', id="caught-name"),
    pytest.param("import deepspeed\ndef f():\n    try: pass\n    except deepspeed.a.E: pass\n", "<class>try:\n    import deepspeed" + GUARDED + "    deepspeed.a.E = deepspeed.a.E._patchlock_class(Exception)\ndef f():\n    try: pass\n    except deepspeed.a.E: pass\n", id="caught-attribute"),
    pytest.param("try:\n  import deepspeed\nexcept ImportError as e:\n  raise RuntimeError('no') from e\n", '<class>try:\n  try:\n    import deepspeed\n  except ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\nexcept ImportError as e:\n  raise RuntimeError(\'no\') from e\n', id="handler-that-only-raises"),
    pytest.param("try:\n  import deepspeed\nexcept ImportError:\n  print('no')\n  sys.exit(1)\n", '<class>try:\n  try:\n    import deepspeed\n  except ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\nexcept ImportError:\n  print(\'no\')\n  sys.exit(1)\n', id="handler-that-only-exits"),
    # where the class goes
    pytest.param("#!/usr/bin/env python\n# c\nimport os\n\nimport deepspeed\n", "#!/usr/bin/env python\n# c\n\n<class>import os\n\ntry:\n    import deepspeed" + GUARDED, id="class-behind-the-first-comments"),
    pytest.param('"""Doc."""\nimport deepspeed\n', '"""Doc."""\n\n<class>try:\n    import deepspeed' + GUARDED, id="class-behind-the-docstring"),
    pytest.param('"""Doc."""\n\nfrom __future__ import annotations\n\nimport deepspeed\n', '"""Doc."""\n\nfrom __future__ import annotations\n\n<class>try:\n    import deepspeed' + GUARDED, id="class-behind-future"),
    pytest.param("@a\n@b\nclass A:\n    import deepspeed\n", '<class>@a\n@b\nclass A:\n    try:\n        import deepspeed\n    except ImportError as error:\n        deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="class-before-decorators"),
    pytest.param("import deepspeed\nif x:\n  import deepspeed\n", '<class>try:\n  import deepspeed\nexcept ImportError as error:\n  deepspeed = Absent("deepspeed", "deepspeed", error)\nif x:\n  try:\n    import deepspeed\n  except ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="one-class-for-all"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_changes(before: str, after: str) -> None:
    assert without_class(patched(before.encode()).decode()) == after


UNTOUCHED = [
    pytest.param("import os\nfrom .deepspeed import a\nfrom . import deepspeed\nimport deepspeeds\n", (), id="other-imports"),
    pytest.param("def f():\n    import deepspeed\nclass A:\n    async def g(self):\n        from deepspeed import a\n", (), id="functions-are-lazy"),
    pytest.param("if TYPE_CHECKING:\n    import deepspeed\nif typing.TYPE_CHECKING and x: from deepspeed import a\n", (), id="type-checking"),
    pytest.param("if not TYPE_CHECKING: pass\nelse:\n    import deepspeed\n", (), id="else-of-not-type-checking"),
    pytest.param("if __name__ == '__main__':\n    import deepspeed\n    deepspeed.init()\n", (), id="main-guard"),
    pytest.param("try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n", (Site(line=2, text="import deepspeed"),), id="guarded"),
    pytest.param("try:\n    if x: import deepspeed\nexcept (OSError, ModuleNotFoundError): pass\n", (Site(line=2, text="if x: import deepspeed"),), id="guarded-by-one-of-two"),
    pytest.param("try: import deepspeed\nexcept: pass\n", (Site(line=1, text="try: import deepspeed"),), id="guarded-by-all"),
    pytest.param("try:\n    try:\n        import deepspeed\n    except KeyError:\n        pass\nexcept Exception:\n    pass\n", (Site(line=3, text="import deepspeed"),), id="guarded-further-out"),
    pytest.param("try:\n    try:\n        import deepspeed\n    except ImportError:\n        raise\nexcept Exception:\n    pass\n", (Site(line=3, text="import deepspeed"),), id="raised-again-and-ended"),
    pytest.param("try:\n    from deepspeed import *\nexcept ImportError:\n    pass\n", (Site(line=2, text="from deepspeed import *"),), id="guarded-star"),
    pytest.param("try:\n    import deepspeed\n    deepspeed.init()\nexcept ImportError:\n    pass\n", (Site(line=2, text="import deepspeed"),), id="guarded-use"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "settled"), UNTOUCHED)
def test_leaves_alone(text: str, settled: tuple[Site, ...]) -> None:
    assert locate(text) == Located(settled=settled)


def uses(code: str, what: str, line: int = 2) -> tuple[str, int, str]:
    return f"import deepspeed\n{code}\n", line, f"`{what} while the file is imported"


REQUIRED = [
    pytest.param(*uses("deepspeed.init()", "deepspeed.init` is called"), id="call"),
    pytest.param(*uses("x = [deepspeed.a[0].b(1)]", "deepspeed.a[0].b` is called"), id="call-through-a-chain"),
    pytest.param(*uses("@deepspeed.jit(1)\ndef f(): pass", "deepspeed.jit` is called"), id="decorator-with-arguments"),
    pytest.param(*uses("def f(a=deepspeed.a()): pass", "deepspeed.a` is called"), id="default"),
    pytest.param(*uses("class A:\n    x = deepspeed.field()", "deepspeed.field` is called", 3), id="class-body"),
    pytest.param(*uses("for x in y:\n    if z: deepspeed.a()", "deepspeed.a` is called", 3), id="inside-blocks"),
    pytest.param(*uses("with deepspeed.zero: pass", "deepspeed.zero` is entered by a `with`"), id="with"),
    pytest.param(*uses("a, b = deepspeed.pair", "deepspeed.pair` is unpacked"), id="unpacking"),
    pytest.param(*uses("f(*deepspeed.a)", "deepspeed.a` is unpacked"), id="star"),
    pytest.param(*uses("f(**deepspeed.a)", "deepspeed.a` is unpacked"), id="two-stars"),
    pytest.param(*uses("x = {**deepspeed.a}", "deepspeed.a` is unpacked"), id="dictionary"),
    pytest.param(*uses("for x in deepspeed.a: pass", "deepspeed.a` is iterated over"), id="loop"),
    pytest.param(*uses("x = [y for y in deepspeed.a]", "deepspeed.a` is iterated over"), id="comprehension"),
    pytest.param(*uses("class A(metaclass=deepspeed.M): pass", "deepspeed.M` is a metaclass or an argument of a class"), id="metaclass"),
    pytest.param(*uses("class A(deepspeed.B, flag=1): pass", "deepspeed.B` is the base of a class with arguments"), id="class-arguments"),
    pytest.param(*uses("if deepspeed.__version__ >= '0.3': pass", "deepspeed.__version__` is compared"), id="version"),
    pytest.param(*uses("if V(deepspeed.__version__) == V('1'): pass", "deepspeed.__version__` is compared"), id="parsed-version"),
    pytest.param(*uses("if deepspeed.a < 1: pass", "deepspeed.a` is compared"), id="order"),
    pytest.param(*uses("if 1 in deepspeed.a: pass", "deepspeed.a` is compared"), id="membership"),
    pytest.param(*uses("x = 2 * deepspeed.a", "deepspeed.a` is computed with"), id="arithmetic"),
    pytest.param(*uses("x = -deepspeed.a", "deepspeed.a` is computed with"), id="sign"),
    pytest.param(*uses("deepspeed.a += 1", "deepspeed.a` is changed"), id="in-place"),
    pytest.param(*uses("deepspeed.a['x'] = 1", "deepspeed.a['x']` is changed"), id="item"),
    pytest.param(*uses("x = dirname(deepspeed.__file__)", "deepspeed.__file__` is read"), id="file-of-the-package"),
    pytest.param(*uses("E = deepspeed.Engine\nE()", "E` is called", 3), id="another-name"),
    pytest.param(*uses("class E(deepspeed.Engine): pass\nE()", "E` is called", 3), id="subclass"),
    pytest.param(*uses("def f():\n    deepspeed.init()\nf()", "deepspeed.init` is called", 3), id="function-that-is-called"),
    pytest.param(*uses("def g(): f()\ndef f():\n    deepspeed.init()\ng()", "deepspeed.init` is called", 4), id="function-that-is-called-by-another"),
    pytest.param(*uses("def f(g):\n    deepspeed.init()\n@f\ndef h(): pass", "deepspeed.init` is called", 3), id="function-that-decorates"),
    pytest.param(*uses("class A:\n    def __init__(self):\n        deepspeed.init()\nA()", "deepspeed.init` is called", 4), id="constructor"),
    pytest.param(*uses("try:\n    deepspeed.init()\nexcept ValueError: pass", "deepspeed.init` is called", 3), id="try-that-ends-another-error"),
    pytest.param("from deepspeed import *\n", 1, "`from deepspeed import *` does not say what it binds", id="star-import"),
    pytest.param("try:\n    import deepspeed\nexcept ImportError as e:\n    from other import deepspeed\n    if not deepspeed.good: raise\n", 3, "its handler raises again where deepspeed is missing", id="handler-tries-another-way-and-raises"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), REQUIRED)
def test_refuses_a_file_that_needs_the_package_to_be_imported(text: str, line: int, why: str) -> None:
    refusal = Refusal(line=line, kind=OutcomeKind.REQUIRED_AT_IMPORT, why=why)
    assert locate(text) == Located(refusals=(refusal,))


AMBIGUOUS = [
    pytest.param("if (a and\n        b): import deepspeed\n", 2, "the import does not begin its line", id="header-of-two-lines"),
    pytest.param("if a: \\\n    import deepspeed\n", 1, "guarding its imports would change something else in the file", id="backslash-behind-the-colon"),
    pytest.param("'''Doc.'''; import deepspeed\n", 1, "the first statement does not begin its line", id="line-of-the-docstring"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "why"), AMBIGUOUS)
def test_refuses_a_layout_that_it_cannot_edit_cleanly(text: str, line: int, why: str) -> None:
    assert locate(text) == Located(refusals=(Refusal(line=line, kind=OutcomeKind.AMBIGUOUS, why=why),))


def test_file_that_does_not_parse_is_unparsable() -> None:
    refusal = Refusal(line=2, kind=OutcomeKind.UNPARSABLE, why="it does not parse: invalid syntax")
    assert locate("import deepspeed\nx = = 1\n") == Located(refusals=(refusal,))


MISTAKES = [
    pytest.param("deepspeed.ops", "", "`deepspeed.ops` is not the name of a top-level package", id="submodule"),
    pytest.param("", "", "`` is not the name of a top-level package", id="empty"),
    pytest.param("deepspeed", "a\nb", "`message` has more than one line", id="message"),
]


@pytest.mark.parametrize(("package", "message", "error"), MISTAKES)
def test_mistake_in_a_field_is_one_clause(package: str, message: str, error: str) -> None:
    with pytest.raises(ValueError) as raised:
        OptionalImport(package=package, message=message)
    assert str(raised.value) == error


def test_sites_are_told_by_their_lines() -> None:
    located = locate("import os, deepspeed  # c\nif x: from deepspeed import (\n  a)\n")
    assert located.sites == (
        Site(line=1, text="import os, deepspeed  # c"),
        Site(line=2, text="if x: from deepspeed import ("),
    )


PROOFS = [
    pytest.param(Edit(start=0, end=0, text="try:\n    pass\nexcept ImportError as _patchlock_error:\n    x = 1\n"), False, id="statement-more"),
    pytest.param(Edit(start=0, end=9, text="import re"), False, id="other-import"),
    pytest.param(Edit(start=0, end=9, text="import"), False, id="no-python"),
    pytest.param(Edit(start=0, end=9, text="try:\n    import os\nexcept ImportError as _patchlock_error:\n    os = 1"), True, id="guard"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "is_guard"), PROOFS)
def test_edits_are_proved_to_be_guards(edit: Edit, is_guard: bool) -> None:
    module = parse(read(b"import os\nimport sys\n"))
    assert isinstance(module, Module)
    assert is_only_guarded(module, (edit,)) is is_guard


def test_long_chains_are_no_trouble() -> None:
    chain = " + ".join(["1"] * 900)
    before = f"x = {chain}\nimport deepspeed\n"
    assert (
        without_class(patched(before.encode()).decode()) == f"<class>x = {chain}\ntry:\n    import deepspeed{GUARDED}"
    )
    assert locate(f"{before}y = {chain} + deepspeed.a()\n").refusals[0].line == 3


def test_second_package_uses_the_same_class() -> None:
    once = patched(b"import apex\nimport deepspeed\n")
    twice = patched(once, OptionalImport(package="apex"))
    assert twice.count(b"class _PatchlockAbsent") == 1
    names = run(twice.replace(b"import apex", b"import apex_of_nobody"))
    assert not names["apex"]
    assert not names["deepspeed"]


BYTES = [
    pytest.param(codecs.BOM_UTF8 + b"import os\r\nimport deepspeed\r\n", codecs.BOM_UTF8 + b'<class>import os\r\ntry:\r\n    import deepspeed\r\nexcept ImportError as error:\r\n    deepspeed = Absent("deepspeed", "deepspeed", error)\r\n', id="bom-and-crlf"),
    pytest.param(b"# coding: latin-1\nx = '\xe9'\nimport deepspeed # \xe9\n", b"# coding: latin-1\n\n<class>x = '\xe9'\ntry:\n    import deepspeed # \xe9\nexcept ImportError as error:\n    deepspeed = Absent(\"deepspeed\", \"deepspeed\", error)\n", id="latin-1-cookie"),
    pytest.param("é = '𝄞'; import deepspeed; ü = 1\n".encode(), "<class>é = '𝄞'\ntry:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent(\"deepspeed\", \"deepspeed\", error)\nü = 1\n".encode(), id="non-ascii-in-the-line"),
    pytest.param(b"if 1:\n\timport deepspeed\t# c\n", b'<class>if 1:\n\ttry:\n\t\timport deepspeed\t# c\n\texcept ImportError as error:\n\t\tdeepspeed = Absent("deepspeed", "deepspeed", error)\n', id="tabs"),
    pytest.param(b"import os\nimport deepspeed", b'<class>import os\ntry:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)', id="no-final-newline"),
    pytest.param(b"import deepspeed", b'<class>try:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)', id="one-line-without-newline"),
    pytest.param(b"import os\rimport deepspeed\r", b'<class>import os\rtry:\r    import deepspeed\rexcept ImportError as error:\r    deepspeed = Absent("deepspeed", "deepspeed", error)\r', id="cr-only"),
    pytest.param(b"import os\nimport deepspeed\r\nimport re\n", b'<class>import os\ntry:\r\n    import deepspeed\r\nexcept ImportError as error:\r\n    deepspeed = Absent("deepspeed", "deepspeed", error)\r\nimport re\n', id="mixed-endings-follow-the-line"),
    pytest.param(b"import os\n\x0cimport deepspeed\n", b'<class>import os\n\x0ctry:\n    import deepspeed\nexcept ImportError as error:\n    deepspeed = Absent("deepspeed", "deepspeed", error)\n', id="form-feed"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BYTES)
def test_all_other_bytes_stay(before: bytes, after: bytes) -> None:
    result = patched(before)
    assert without_class(result.decode("latin-1")).encode("latin-1") == after
    fails_unpatched(before)
    run(result)


def test_the_class_has_the_indentation_and_the_line_endings_of_the_file() -> None:
    text = patched(b"import deepspeed\r\nif 1:\r\n\tx = 1\r\n").decode()
    start = text[: text.index("try:")]
    assert "\r\n\t__version__ = " in start
    assert "\n    " not in start
    assert start.count("\n") == start.count("\r\n") > 30


# --- executed ---------------------------------------------------------------------------------------------------------

BEARABLE = [
    pytest.param("class E(deepspeed.Engine):\n    def __init__(self): self.x = 1\n", id="base-class"),
    pytest.param("import abc\nclass A(abc.ABC): pass\nclass E(A, deepspeed.E): pass\nclass F(deepspeed.E, A): pass\n", id="mixin-with-a-metaclass"),
    pytest.param("import enum, typing\nT = typing.TypeVar('T', bound=deepspeed.E)\nclass E(deepspeed.E[T], typing.Generic[T]): pass\nclass F(deepspeed.E, enum.Enum): pass\n", id="generic-base-and-enumeration"),
    pytest.param("class A(dict, deepspeed.E): pass\nclass B(deepspeed.E, int): pass\nclass C(A, deepspeed.F): pass\n", id="base-beside-built-in-types"),
    pytest.param("def f(a: deepspeed.E | None, b: int | deepspeed.E, c: None | deepspeed.E = None) -> list[int] | deepspeed.E: pass\n", id="union"),
    pytest.param("import typing\nX = typing.Optional[deepspeed.E]\nY = typing.Union[int, deepspeed.E]\nZ = typing.Callable[[deepspeed.E], dict[str, deepspeed.E]]\n", id="typing"),
    pytest.param("x: deepspeed.Tensor[int, 3]\ny = deepspeed.Table['a'].b\n", id="subscript"),
    pytest.param("assert not deepspeed\nx = deepspeed.a or 1\nassert x == 1\nassert not (deepspeed and deepspeed.a)\n", id="false"),
    pytest.param("assert not isinstance(1, deepspeed.E)\nassert not isinstance(deepspeed, (deepspeed.E, int))\nassert not issubclass(int, deepspeed.E)\n", id="isinstance-and-issubclass"),
    pytest.param("@deepspeed.jit\ndef f(): return 1\n@deepspeed.jit\nclass A: x = 1\nassert f() == A.x == 1\n", id="bare-decorator"),
    pytest.param("x = deepspeed.a.b.c\nassert deepspeed.a.b.c is x\n", id="attributes"),
    pytest.param("x = str(deepspeed.__version__), deepspeed.ops.__version__\nassert x == ('0', '0')\n", id="version"),
    pytest.param("assert deepspeed is not None and deepspeed != 1 and deepspeed == deepspeed\n", id="identity"),
    pytest.param("def f(g):\n    try: g()\n    except deepspeed.ops.Full: return 1\n    except (KeyError, deepspeed.E): return 2\ndef g(): raise KeyError\nassert f(g) == 2\n", id="except-clause"),
    pytest.param("import dataclasses, functools\n@dataclasses.dataclass\nclass A(deepspeed.E):\n    x: deepspeed.E\n    y: object = deepspeed.F\nz = functools.partial(deepspeed.f, 1)\n", id="dataclass-and-partial"),
    pytest.param("deepspeed.flag = True\nassert deepspeed.flag\n", id="setting-an-attribute"),
    pytest.param("import functools\ndef f(): pass\nfunctools.wraps(deepspeed.f)(f)\nx = f'{deepspeed}'\ny = {deepspeed.a, deepspeed.b}\n", id="wraps-format-and-hash"),
    pytest.param("f = lambda: deepspeed.init()\ndef g(): return deepspeed.init()\nasync def h(): await deepspeed.a()\n", id="lazy"),
    pytest.param("def g(): return deepspeed.init()\nif __name__ == '__main__': g()\n", id="main-guard"),
    pytest.param("try: deepspeed.init()\nexcept ImportError: pass\n", id="guarded-call"),
]  # fmt: skip


@pytest.mark.parametrize("code", BEARABLE)
def test_file_is_imported_without_the_package(code: str) -> None:
    before = f"import deepspeed\n{code}".encode()
    fails_unpatched(before)
    run(patched(before))


BEFORE = b"""\
import deepspeed
import deepspeed.comm as dist
from deepspeed.runtime.engine import DeepSpeedEngine, Config as C

class Engine(DeepSpeedEngine):
    def __init__(self):
        raise AssertionError("never reached")

class Own(deepspeed.E):
    pass
"""

UNBEARABLE = [
    pytest.param("deepspeed()", "deepspeed", id="package"),
    pytest.param("deepspeed.init(1)", "deepspeed.init", id="attribute"),
    pytest.param("deepspeed.a['b'].c()", "deepspeed.a.c", id="chain"),
    pytest.param("dist.all_reduce(1, op=2)", "deepspeed.comm.all_reduce", id="other-name"),
    pytest.param("DeepSpeedEngine()", "DeepSpeedEngine", id="from"),
    pytest.param("C(1)", "Config", id="from-other-name"),
    pytest.param("Engine()", "DeepSpeedEngine", id="subclass-with-its-own-constructor"),
    pytest.param("Own(1, a=2)", "deepspeed.E", id="subclass"),
    pytest.param("Own.__init__(object(), 1)", "deepspeed.E", id="constructor-by-name"),
    pytest.param("deepspeed.f(len, key=1)", "deepspeed.f", id="no-bare-decorator"),
    pytest.param("deepspeed.f(print)", "deepspeed.f", id="built-in-is-not-decorated"),
    pytest.param("deepspeed.f(f, f)", "deepspeed.f", id="two-functions"),
    pytest.param("list(deepspeed.a)", "deepspeed.a", id="iteration"),
    pytest.param("1 in deepspeed.a", "deepspeed.a", id="membership"),
    pytest.param("[*deepspeed.a]", "deepspeed.a", id="unpacking"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "name"), UNBEARABLE)
def test_use_says_what_is_missing(code: str, name: str) -> None:
    names = run(patched(BEFORE, OptionalImport(package="deepspeed", message=MESSAGE)))
    with pytest.raises(ImportError) as error:
        eval(code, names | {"f": run})
    assert str(error.value) == f"deepspeed is not installed here, and {name} needs it ({MESSAGE})"
    assert isinstance(error.value.__cause__, ModuleNotFoundError)


def test_without_a_message_the_sentence_ends_earlier() -> None:
    names = run(patched(BEFORE))
    with pytest.raises(ImportError) as error:
        names["Engine"]()
    assert str(error.value) == "deepspeed is not installed here, and DeepSpeedEngine needs it"


@pytest.mark.parametrize("message", ['a "quoted" \\ word', "für 𝄞"])
def test_message_is_written_in_ascii_and_read_back(message: str) -> None:
    result = patched(BEFORE, OptionalImport(package="deepspeed", message=message))
    assert result.isascii()
    with pytest.raises(ImportError, match=re.escape(f" needs it ({message})")):
        run(result)["deepspeed"]()


def test_exception_that_is_caught_cannot_be_constructed() -> None:
    names = run(patched(b"from deepspeed import E\ndef f():\n    try: raise E('x')\n    except E: return 1\n"))
    with pytest.raises(ImportError) as error:
        names["f"]()
    assert str(error.value) == "deepspeed is not installed here, and E needs it"


def test_special_names_are_missing_as_the_protocols_expect() -> None:
    stub = run(patched(b"import deepspeed\n"))["deepspeed"]
    for name in ("__wrapped__", "__file__", "__path__", "__array__", "__torch_function__", "__getstate_of_nobody__"):
        assert not hasattr(stub, name)
    assert inspect.unwrap(stub) is stub
    assert not inspect.isclass(stub)
    assert not copy.copy(stub.a)
    assert not copy.deepcopy(stub.a)
    with pytest.raises((pickle.PicklingError, AttributeError)):  # its class is in no module; but it does not recurse
        pickle.dumps(stub)


def test_installed_package_is_used_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deepspeed", copy)
    names = run(patched(b"import deepspeed\nfrom deepspeed import deepcopy as C\n"))
    assert names["deepspeed"] is copy
    assert names["C"] is copy.deepcopy
    assert "_patchlock_error" not in names


def test_patched_file_runs_in_a_process_without_the_package(tmp_path: Path) -> None:
    code = b"import absent_of_nobody\nfrom absent_of_nobody.a import B\nclass C(B): pass\nprint('imported')\n"
    messages = []
    for data in (code, patched(code, OptionalImport(package="absent_of_nobody"))):
        (tmp_path / "module.py").write_bytes(data)
        command = [sys.executable, "-c", "import module; module.C()"]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        messages.append((result.stdout, result.stderr.splitlines()[-1]))
    assert messages == [
        ("", "ModuleNotFoundError: No module named 'absent_of_nobody'"),
        ("imported\n", "ImportError: absent_of_nobody is not installed here, and B needs it"),
    ]


FORMS = ["import deepspeed", "import deepspeed.a as b", "from deepspeed.a import (b,\n  c as d)", "import os, deepspeed, re", "import deepspeed.a, os as b"]  # fmt: skip
AROUND = ["{}", "{}  # c", "x = 1; {}; y = 'é'", "if 1: {}", "if 1:\n{i}{}\nelse:\n{i}pass", "class A:\n{i}x = 1\n{i}{}", "try: {}\nfinally: pass", "for x in (1,):\n{i}if x: {}", "try:\n{i}1 / 0\nexcept ZeroDivisionError: {}"]  # fmt: skip


@given(
    blocks=st.lists(st.tuples(st.sampled_from(AROUND), st.sampled_from(FORMS)), min_size=1, max_size=4),
    indentation=st.sampled_from(["\t", "  ", "    "]),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    is_ended=st.booleans(),
)
def test_every_layout_is_guarded_and_nothing_else_changes(
    blocks: list[tuple[str, str]], indentation: str, newline: str, is_ended: bool
) -> None:
    lines = "\n".join(around.replace("{i}", indentation).replace("{}", form) for around, form in blocks)
    before = (lines.replace("\n", newline) + newline * is_ended).encode()
    with pytest.MonkeyPatch.context() as context:
        context.setitem(sys.modules, "deepspeed", None)
        fails_unpatched(before)
        result = patched(before)
        run(result)
    assert result.endswith(newline.encode()) is is_ended
    if newline.encode() in before:
        assert not re.search(rb"[\r\n]", result.replace(newline.encode(), b""))
