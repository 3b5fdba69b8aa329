"""Each way to use a package at import, executed without it: what is imported once patched, and what is refused."""

from __future__ import annotations

import codecs
import sys
import types
from pathlib import PurePosixPath
from typing import Any

import pytest

from patchlock.model.patch import Located
from patchlock.model.text_files import SourceText, Undecodable, decode, encode, splice
from patchlock.patches.ops.optional_import._op import OptionalImport
from patchlock.patches.postconditions._python import ImportsWithout

OP = OptionalImport(package="deepspeed")
PATH = PurePosixPath("a.py")


@pytest.fixture(autouse=True)
def _no_deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every import of deepspeed fail, whatever is installed."""
    monkeypatch.setitem(sys.modules, "deepspeed", None)
    monkeypatch.setitem(sys.modules, "matrix", types.ModuleType("matrix"))  # dataclasses looks for the module


def located(data: bytes) -> Located:
    source = decode(PATH, data)
    assert isinstance(source, SourceText)
    return OP.locate(source)


def run(data: bytes) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "matrix"}
    exec(compile(data, "matrix.py", "exec", dont_inherit=True), names)
    return names


def fails(data: bytes) -> None:
    with pytest.raises((ImportError, NameError, AttributeError, TypeError, SystemExit, RuntimeError)):
        run(data)


IMPORTED = [
    # forms of the import
    pytest.param("import deepspeed", id="plain"),
    pytest.param("import deepspeed as ds", id="as"),
    pytest.param("import deepspeed.ops.adam", id="submodule"),
    pytest.param("import deepspeed.ops.adam as adam\nclass A(adam.Adam): pass", id="submodule-as"),
    pytest.param("from deepspeed import a", id="from"),
    pytest.param("from deepspeed.a.b import c as d, e", id="from-submodule-as"),
    pytest.param("import os, deepspeed, sys\nos.sep, sys.path", id="several-names"),
    pytest.param("from deepspeed import (  # all\n    a,  # one\n\n    b,\n)  # end", id="parentheses-with-comments"),
    pytest.param("from deepspeed \\\n    import a, \\\n    b", id="backslashes"),
    pytest.param("x = 1; import deepspeed; y = 2", id="semicolons"),
    pytest.param("x = 1\nif x: import deepspeed", id="one-line-if"),
    pytest.param("if True:\n    if True:\n        import deepspeed", id="nested-if"),
    pytest.param("class A:\n    import deepspeed\n    x = deepspeed.a", id="class-level"),
    pytest.param("match 1:\n    case 1:\n        import deepspeed", id="match"),
    pytest.param("import contextlib\nwith contextlib.nullcontext():\n    import deepspeed", id="with"),
    pytest.param("for x in (1, 2):\n    import deepspeed", id="for"),
    pytest.param("while True:\n    import deepspeed\n    break", id="while"),
    pytest.param("try:\n    import deepspeed\nfinally:\n    x = 1", id="try-finally"),
    pytest.param("try:\n    import deepspeed\nexcept ValueError:\n    x = 1", id="try-of-another-error"),
    pytest.param("'''Doc.'''\nfrom __future__ import annotations\nimport deepspeed\ndef f(x: deepspeed.undefined()): pass", id="future-annotations"),
    pytest.param("import deepspeed\nimport deepspeed.comm as dist\nfrom deepspeed import zero", id="three-imports"),
    # what it is used for
    pytest.param("import deepspeed\nclass A(deepspeed.E): pass", id="base-class"),
    pytest.param("from deepspeed import E\nclass A(E): pass\nclass B(A): pass", id="base-of-a-base"),
    pytest.param("from deepspeed import E\nclass M: pass\nclass A(M, E): pass\nclass B(E, M): pass", id="mixin-base"),
    pytest.param("import typing, deepspeed\nT = typing.TypeVar('T')\nclass A(deepspeed.E, typing.Generic[T]): pass\nclass B(deepspeed.E[T]): pass", id="generic-base"),
    pytest.param("import deepspeed\n@deepspeed.jit\ndef f(x): return x\nassert f(1) == 1", id="bare-decorator"),
    pytest.param("import deepspeed\nclass A:\n    @deepspeed.nvtx\n    def f(self): return 1\nassert A().f() == 1", id="bare-decorator-of-a-method"),
    pytest.param("import deepspeed\ndef f(x: deepspeed.E, *a: deepspeed.E, **k: deepspeed.E) -> deepspeed.E: pass", id="annotations"),
    pytest.param("from deepspeed import E\nx: E\ny: E | None\nz: None | E\ndef f(a: int | E): pass", id="union-annotations"),
    pytest.param("import typing\nfrom deepspeed import E\nx: typing.Optional[E]\ny: typing.Union[E, int]\nz: typing.List[E]", id="typing-annotations"),
    pytest.param("import typing, deepspeed\nT = typing.TypeVar('T', bound=deepspeed.E)\nU = typing.TypeVar('U', deepspeed.E, int)", id="typevar"),
    pytest.param("import dataclasses, deepspeed\n@dataclasses.dataclass\nclass A:\n    x: deepspeed.E\n    y: object = deepspeed.D\n    z: object = dataclasses.field(default=deepspeed.D)", id="dataclass-fields"),
    pytest.param("import typing, deepspeed\nclass A(typing.NamedTuple):\n    x: deepspeed.E = deepspeed.D", id="named-tuple"),
    pytest.param("import deepspeed\ndef f(x=deepspeed.DEFAULT, *, y=deepspeed.a.b): return x", id="defaults"),
    pytest.param("import deepspeed\nassert not isinstance(1, deepspeed.E)\nassert not issubclass(int, (deepspeed.E, str))", id="isinstance-and-issubclass"),
    pytest.param("import deepspeed\ntry: [][1]\nexcept (IndexError, deepspeed.E): x = 1\ntry: 1 / 0\nexcept deepspeed.E: pass\nexcept ZeroDivisionError: y = 1\nassert x == y", id="except-clause"),
    pytest.param("import functools, deepspeed\nf = functools.partial(deepspeed.f, 1)", id="partial"),
    pytest.param("import copy, deepspeed\nx = copy.copy(deepspeed.a), copy.deepcopy(deepspeed.b)", id="copy"),
    pytest.param("import deepspeed\nTABLE = {'a': deepspeed.A, deepspeed.B: 1}\nLIST = [deepspeed.A, (deepspeed.B,)]", id="containers"),
    pytest.param("import deepspeed\nAlias = deepspeed.runtime.Engine\nclass A(Alias): pass", id="alias-as-base"),
    pytest.param("import deepspeed\nx = 1 if deepspeed else 2\nassert x == 2", id="boolean-context"),
    pytest.param("import deepspeed\nif deepspeed is not None and deepspeed.a: raise RuntimeError", id="identity"),
    pytest.param("import deepspeed\nx = f'{deepspeed.__version__} {deepspeed}'", id="version-in-a-message"),
    pytest.param("import deepspeed\nx = hasattr(deepspeed, 'zero'), getattr(deepspeed, 'comm', None)", id="hasattr"),
    pytest.param("import deepspeed\ndeepspeed.flag = 1\ndeepspeed.a.b = deepspeed.c", id="monkeypatch"),
    pytest.param("import deepspeed\n__all__ = ['deepspeed', 'f']\ndef f(): return deepspeed.init()", id="use-in-a-function"),
    pytest.param("import deepspeed\nf = lambda: deepspeed.init()", id="use-in-a-lambda"),
    pytest.param("import deepspeed\nclass A:\n    def __init__(self): self.x = deepspeed.init()\n    @property\n    def y(self): return deepspeed.y()", id="use-in-methods"),
    pytest.param("import deepspeed\ntry:\n    deepspeed.init()\nexcept Exception:\n    x = 1\nassert x", id="use-in-a-try"),
    pytest.param("import deepspeed\nif False: deepspeed.init()\nx = deepspeed and deepspeed.init()\ny = deepspeed.init() if deepspeed else 1\nassert y == 1", id="use-that-is-not-reached"),
    pytest.param("import deepspeed\nif __name__ == '__main__':\n    deepspeed.init()", id="main-guard"),
    # handlers
    pytest.param("try:\n    import deepspeed\nexcept ImportError:\n    raise RuntimeError('install deepspeed')", id="handler-that-raises"),
    pytest.param("try:\n    import deepspeed\nexcept ImportError as error:\n    print('install deepspeed')\n    raise error", id="handler-that-says-and-raises"),
    pytest.param("import sys\ntry:\n    import deepspeed\nexcept ImportError:\n    sys.exit(1)", id="handler-that-exits"),
]  # fmt: skip

LAZY = [
    pytest.param("def f():\n    import deepspeed\n    return deepspeed.a\nx = f()", id="lazy-import-by-name"),
    pytest.param("def f():\n    import deepspeed\ng = f\ng()", id="lazy-import-by-an-alias"),
    pytest.param("class A:\n    def f(self):\n        import deepspeed\nA().f()", id="lazy-import-in-a-method"),
    pytest.param("class A:\n    def f(self):\n        self.g()\n    def g(self):\n        from deepspeed import x\na = A()\na.f()", id="lazy-import-in-a-method-of-a-method"),
    pytest.param("class A:\n    @classmethod\n    def f(cls):\n        import deepspeed\nclass B(A): pass\nB.f()", id="lazy-import-in-an-inherited-method"),
    pytest.param("class A:\n    def __init__(self):\n        import deepspeed\nA()", id="lazy-import-in-a-constructor"),
    pytest.param("def d(f):\n    import deepspeed\n    return f\n@d\ndef g(): pass", id="lazy-import-in-a-decorator"),
    pytest.param("def d(x):\n    def inner(f):\n        import deepspeed\n        return f\n    return inner\n@d(1)\ndef g(): pass", id="lazy-import-in-a-decorator-with-arguments"),
    pytest.param("import functools\ndef f(x):\n    import deepspeed\ng = functools.partial(f, 1)\ng()", id="lazy-import-by-a-partial"),
    pytest.param("def f():\n    import deepspeed\nx = [f() for _ in (1, 2)]\ny = (lambda: f())()", id="lazy-import-by-a-comprehension-and-a-lambda"),
]  # fmt: skip


@pytest.mark.parametrize("code", [*IMPORTED, *LAZY])
def test_is_imported_once_patched(code: str) -> None:
    data = f"{code}\n".encode()
    fails(data)
    found = located(data)
    assert not found.refusals
    source = decode(PATH, data)
    assert isinstance(source, SourceText)
    patched = encode(splice(source, found.edits))
    run(patched)
    again = located(patched)
    assert not again.edits
    assert not again.refusals
    assert ImportsWithout(package="deepspeed").problems(PATH, patched) == ()


@pytest.mark.parametrize("code", IMPORTED)
def test_the_ensure_sees_what_is_not_patched(code: str) -> None:
    assert ImportsWithout(package="deepspeed").problems(PATH, f"{code}\n".encode()) != ()


NEEDLESS = [
    pytest.param("try:\n    import deepspeed\n    OK = True\nexcept ImportError:\n    OK = False\nif OK:\n    deepspeed.init()\n    from deepspeed import x", id="flag"),
    pytest.param("OK = False\ntry:\n    import deepspeed\n    OK = True\nexcept ImportError:\n    pass\nif OK and deepspeed.a(): pass\nx = deepspeed.b() if OK else None", id="flag-set-before"),
    pytest.param("try:\n    import deepspeed\nexcept ImportError:\n    OK = False\nelse:\n    OK = True\n    import deepspeed.comm\nif not OK: pass\nelse: deepspeed.init()", id="flag-in-else"),
    pytest.param("try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\nif deepspeed is not None:\n    class A(deepspeed.E): pass\nelse:\n    class A: pass", id="none-that-is-asked"),
    pytest.param("try:\n    from deepspeed import E\nexcept ImportError:\n    class E: pass\nclass A(E): pass", id="fallback-class"),
    pytest.param("try:\n    from deepspeed import E\nexcept ImportError:\n    E = object\nclass A(E): pass\nE()", id="fallback-object"),
    pytest.param("try:\n    import deepspeed\n    deepspeed.init()\nexcept ImportError:\n    pass", id="use-beside-the-import"),
    pytest.param("import contextlib\nwith contextlib.suppress(ImportError):\n    import deepspeed\n    deepspeed.init()", id="suppress"),
    pytest.param("import importlib.util\nif importlib.util.find_spec('deepspeed_of_nobody'): pass\nOK = importlib.util.find_spec('deepspeed') is not None\nif OK:\n    import deepspeed\n    deepspeed.init()", id="find-spec"),
    pytest.param("import sys\nif 'deepspeed' in sys.modules and sys.modules['deepspeed']: pass\ndef is_deepspeed_available(): return False\nif is_deepspeed_available():\n    from deepspeed import E\n    class A(E): pass", id="availability"),
    pytest.param("import typing\nif typing.TYPE_CHECKING:\n    import deepspeed\ndef f(x: 'deepspeed.E'): pass", id="type-checking"),
    pytest.param("def f():\n    import deepspeed\nclass A:\n    def g(self): import deepspeed", id="functions-that-nobody-calls"),
    pytest.param("def f():\n    try: import deepspeed\n    except ImportError: return None\n    return deepspeed.init()\nx = f()", id="function-that-returns-before"),
    pytest.param("def f():\n    import deepspeed\ntry: f()\nexcept ImportError: pass", id="call-in-a-try"),
    pytest.param("try:\n    import importlib\n    ds = importlib.import_module('deepspeed')\nexcept ImportError:\n    ds = None", id="import-module-in-a-try"),
    pytest.param("try:\n    from deepspeed import *\nexcept ImportError:\n    pass", id="star-in-a-try"),
]  # fmt: skip


@pytest.mark.parametrize("code", NEEDLESS)
def test_needs_no_patch(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "deepspeed")  # or find_spec raises
    run(f"{code}\n".encode())
    found = located(f"{code}\n".encode())
    assert not found.edits
    assert not found.refusals
    assert ImportsWithout(package="deepspeed").problems(PATH, f"{code}\n".encode()) == ()


IN_TRY = "try:\n    import deepspeed\nexcept ImportError:\n    "
REFUSED = [
    pytest.param("import deepspeed\ndeepspeed.init()", 2, "`deepspeed.init` is called", id="call"),
    pytest.param("import deepspeed\nwith deepspeed.zero.Init: pass", 2, "`deepspeed.zero.Init` is entered by a `with`", id="with"),
    pytest.param("import deepspeed\na, b = deepspeed.pair", 2, "`deepspeed.pair` is unpacked", id="unpacking"),
    pytest.param("import deepspeed\ndef f(x=deepspeed.a()): pass", 2, "`deepspeed.a` is called", id="call-in-a-default"),
    pytest.param("import deepspeed\nclass A(metaclass=deepspeed.M): pass", 2, "`deepspeed.M` is a metaclass or an argument of a class", id="metaclass"),
    pytest.param("import deepspeed\n@deepspeed.jit(1)\ndef f(): pass", 2, "`deepspeed.jit` is called", id="decorator-with-arguments"),
    pytest.param("import deepspeed\nif deepspeed.__version__ >= '0.3': pass", 2, "`deepspeed.__version__` is compared", id="version"),
    pytest.param("import deepspeed\ndef f(): deepspeed.init()\nf()", 2, "`deepspeed.init` is called", id="call-in-a-function"),
    pytest.param("import deepspeed\nclass A:\n    def f(self): return deepspeed.init()\na = A()\na.f()", 3, "`deepspeed.init` is called", id="call-in-a-method"),
    pytest.param("def f():\n    import deepspeed\n    return deepspeed.init()\nf()", 3, "`deepspeed.init` is called", id="call-of-a-lazy-import"),
    pytest.param("import deepspeed\nN = len(deepspeed.items)", 2, "`deepspeed.items` is given to `len`", id="len"),
    pytest.param("import deepspeed\nmatch 3:\n    case deepspeed.B(): pass\n    case _: pass", 3, "`deepspeed.B` is the class of a pattern", id="pattern"),
    pytest.param("import deepspeed, functools\n@functools.singledispatch\ndef f(x): pass\n@f.register(deepspeed.T)\ndef g(x): pass", 4, "`deepspeed.T` is given to `register`", id="singledispatch"),
    pytest.param("import deepspeed, functools\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef g(x: deepspeed.T): pass", 5, "`deepspeed.T` is given to `register`", id="singledispatch-by-annotation"),
    pytest.param("from __future__ import annotations\nimport deepspeed, functools\n@functools.singledispatch\ndef f(x): pass\n@f.register\ndef g(x: list | deepspeed.T, y=1): pass", 6, "`list | deepspeed.T` is given to `register`", id="singledispatch-by-lazy-annotation"),
    pytest.param("import deepspeed, functools\nclass A:\n    @functools.singledispatchmethod\n    def f(self, x): pass\n    @f.register\n    def g(self, x: 'deepspeed.T'): pass", 6, "`deepspeed.T` is given to `register`", id="singledispatch-of-a-method"),
    pytest.param("import deepspeed, enum\nclass B(deepspeed.Base, enum.Enum): c = 1", 2, "`deepspeed.Base` is the base of an enumeration", id="enumeration"),
    pytest.param("import deepspeed\nfor x in deepspeed.a: pass", 2, "`deepspeed.a` is iterated over", id="loop"),
    pytest.param("from deepspeed import *\nclass A(Engine): pass", 1, "`from deepspeed import *` does not say what it binds", id="star"),
    pytest.param("import importlib\nds = importlib.import_module('deepspeed')", 2, "`importlib.import_module('deepspeed')` imports it", id="import-module"),
    pytest.param("ds = __import__('deepspeed.ops')", 1, "`__import__('deepspeed.ops')` imports it", id="dunder-import"),
    pytest.param("exec('import deepspeed')", 1, "`exec('import deepspeed')` imports it", id="exec"),
    pytest.param("exec('x = 1; from deepspeed.a import b')", 1, "`exec('x = 1; from deepspeed.a import b')` imports it", id="exec-from"),
    pytest.param("def f():\n    exec('import deepspeed')\nf()", 2, "`exec('import deepspeed')` imports it", id="exec-in-a-function"),
    pytest.param(f"{IN_TRY}deepspeed = None\nclass A(deepspeed.E): pass", 5, "`deepspeed.E` is used, which the handler in line 3 sets to None,", id="none-as-base"),
    pytest.param("try: from deepspeed import E\nexcept ImportError: E = None\nclass A(E): pass", 3, "`E` is used, which the handler in line 2 sets to None,", id="none-itself-as-base"),
    pytest.param(f"{IN_TRY}deepspeed = None\nx = deepspeed.init()", 5, "`deepspeed.init` is used, which the handler in line 3 sets to None,", id="none-that-is-called"),
    pytest.param(f"{IN_TRY}pass\nclass A(deepspeed.E): pass", 5, "`deepspeed.E` is read, which the handler in line 3 does not bind,", id="unbound-as-base"),
    pytest.param("try: import deepspeed\nexcept ImportError:\n    import fast as deepspeed\n    raise", 2, "its handler raises again where deepspeed is missing", id="handler-that-tries-another-way"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "line", "why"), REFUSED)
def test_is_refused_with_the_line(code: str, line: int, why: str) -> None:
    fails(f"{code}\n".encode())
    found = located(f"{code}\n".encode())
    assert not found.edits
    assert found.refusals[0].line == line
    assert found.refusals[0].why in {f"{why} while the file is imported", why}
    assert found.refusals[0].kind.value == "required at import"


UNREADABLE = [
    pytest.param(b"import deepspeed\nprint 'Python 2'\n", "it does not parse: ", id="python-2"),
    pytest.param(b"import deepspeed\n{% if x %}\ny = 1\n{% endif %}\n", "it does not parse: ", id="template"),
    pytest.param(b"import {{ cookiecutter.slug }}.deepspeed\n", "it does not parse: ", id="cookiecutter"),
    pytest.param(b"if 1:\n\timport deepspeed\n        x = 1\n", "it does not parse: ", id="tabs-and-spaces"),
    pytest.param(codecs.BOM_UTF16_LE + "import deepspeed\n".encode("utf-16-le"), "Python reads no utf-16-le", id="utf-16"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "why"), UNREADABLE)
def test_what_is_no_python_is_unparsable(data: bytes, why: str) -> None:
    found = located(data)
    assert not found.edits
    assert [refusal.kind.value for refusal in found.refusals] == ["unparsable upstream"]
    assert found.refusals[0].why.startswith(why)


def test_nul_bytes_are_no_text() -> None:
    assert isinstance(decode(PATH, b"import deepspeed\n\0"), Undecodable)


LAYOUTS = [
    pytest.param(b"import os\r\nimport deepspeed\r\nx = 1\r\n", id="crlf"),
    pytest.param(codecs.BOM_UTF8 + b"import deepspeed\n", id="bom"),
    pytest.param(b"# -*- coding: latin-1 -*-\nx = '\xe9'\nimport deepspeed\n", id="latin-1-cookie"),
    pytest.param("# coding: cp1251\nx = 'Ж'\nimport deepspeed\n".encode("cp1251"), id="cp1251-cookie"),
    pytest.param(b"import deepspeed  # caf\xe9 without a cookie\n", id="comment-that-is-not-utf-8"),
    pytest.param(b"if 1:\n\timport deepspeed\n\tx = 1\n", id="tabs"),
    pytest.param(b"import os\n\x0c\nimport deepspeed\n", id="form-feed"),
    pytest.param(b"import os\rimport deepspeed\rx = 1\r", id="lone-cr"),
    pytest.param(b"import os\nimport deepspeed", id="no-final-newline"),
    pytest.param(b"import os\nimport deepspeed\r\nx = 1\n", id="mixed-line-endings"),
    pytest.param(b"#!/usr/bin/env python\n\n'''Doc.'''\n\n\nimport deepspeed\n", id="shebang-and-docstring"),
]  # fmt: skip


@pytest.mark.parametrize("data", LAYOUTS)
def test_each_layout_is_imported_once_patched(data: bytes) -> None:
    source = decode(PATH, data)
    assert isinstance(source, SourceText)
    found = located(data)
    assert not found.refusals
    patched = encode(splice(source, found.edits))
    text = patched.decode("latin-1") if source.encoding == "latin-1" else None
    run(text.encode() if text else patched)
    for line in source.text.splitlines():
        assert line.strip() in decode(PATH, patched).text  # type: ignore[union-attr]
