"""Files that optional-import patched, executed without the package: they are imported, and a use says what is missing."""

from __future__ import annotations

import copy
import importlib.abc
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from without_package import fails_unpatched, no_deepspeed, patched, run

from patchlock.patches.ops.optional_import._op import OptionalImport

__all__ = ["no_deepspeed"]

MESSAGE = "training needs it; inference does not"

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
    pytest.param("ERRORS = (ValueError, deepspeed.Err)\nALL = [*ERRORS, deepspeed.a.B]\ndef f(g):\n    try: g()\n    except ERRORS: return 1\n    except tuple(ALL): return 2\ndef g(): raise ValueError\nassert f(g) == 1\ntry: {}['a']\nexcept (*ALL, KeyError): pass\n", id="except-clause-through-a-name"),
    pytest.param("class Mine(deepspeed.Problem): pass\nclass Other(Mine, OSError): pass\ntry: {}['a']\nexcept (Other, Mine): raise AssertionError\nexcept KeyError: pass\n", id="except-clause-with-a-subclass"),
    pytest.param("class A:\n    ERRORS = (KeyError,)\n    ERRORS += (deepspeed.Err,)\n    def f(self):\n        try: {}['a']\n        except self.ERRORS: return 1\nassert A().f() == 1\n", id="except-clause-through-an-attribute"),
    pytest.param("def errors(): return (KeyError, deepspeed.Err)\ntry: {}['a']\nexcept errors(): pass\n", id="except-clause-through-a-function"),
    pytest.param("class MyError(deepspeed.Base): pass\nclass Mine(deepspeed.SomeError): pass\nassert issubclass(MyError, Exception) and issubclass(Mine, Exception)\n", id="errors-that-other-files-catch"),
    pytest.param("import functools\n@functools.singledispatch\ndef f(x): return 1\n@f.register\ndef _(x: int, y: deepspeed.E = None): return 2\nassert f(1) == 2\n", id="dispatch-by-another-annotation"),
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


class _Breaks(importlib.abc.MetaPathFinder):
    """Finds a package whose import ends as that of one whose libraries are missing."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] == "deepspeed":
            raise OSError("libcudart.so.12: cannot open shared object file")


def test_broken_package_is_a_stub_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "deepspeed", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Breaks(), *sys.meta_path])
    with pytest.raises(OSError, match="libcudart"):
        run(patched(BEFORE))
    names = run(patched(BEFORE, OptionalImport(package="deepspeed", broken=True)))
    with pytest.raises(ImportError) as error:
        names["Engine"]()
    assert str(error.value) == "deepspeed cannot be imported here, and DeepSpeedEngine needs it"
    assert isinstance(error.value.__cause__, OSError)


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
