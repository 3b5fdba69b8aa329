"""The op optional-import: what must change, what must not, and what is refused."""

from __future__ import annotations

import pytest
from without_package import locate, no_deepspeed, patched, without_class

from patchlock.model.patch import Located, OutcomeKind, Refusal, Site

__all__ = ["no_deepspeed"]

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
