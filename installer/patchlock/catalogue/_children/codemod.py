"""Run LibCST codemods, each over one file: a question is a line of JSON on standard input, an answer one on the output.

It runs in patchlock's own Python, and imports nothing of patchlock. The codemod can read files, but not write any,
start a program or reach the network: that catches mistakes, not malice, for the catalogue is trusted.

The question has `module` (name), `code` (of the codemod), `command`, `arguments`, `path`, `text` (of the file) and
`timeout` (seconds). The answer has `failed`, a clause, or `text` with `settled`, the 1-based lines in
`context.scratch["settled"]`, and `warnings`, what the command said by `self.warn`; `is_last` where a codemod left
something running, with which the process ends; and `lacks_memory` where that is why it failed.
"""

import contextlib
import io
import json
import os
import sys
import threading
from typing import Any

_DEPTH = 20_000
_STACK = 512 * 1024 * 1024
"""For `_DEPTH`; where the process may have little address space, both are smaller."""
_SMALLEST = 16 * 1024 * 1024
_MEMORY = 8 * 1024 * 1024 * 1024
"""Bytes of address space; the stack is part of it."""
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.startfile", "pty.")
_ALSO = frozenset(
    (
        *("os.system", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
        *("os.chmod", "os.chown", "os.kill", "os.putenv", "shutil.rmtree", "shutil.move", "ctypes.dlopen"),
    )
)


def main() -> None:
    """Answer each question; where a codemod went on after its answer, the process ends with it."""
    import libcst.codemod  # noqa: F401 - before writing is refused

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what C code prints is no answer
    _contain()
    _set_depth(_largest_stack())
    for line in sys.stdin.buffer:
        question = json.loads(line)
        answer: dict[str, object] = {}
        worker = _started(question, answer)
        worker.join(question["timeout"])
        if worker.is_alive():
            answer = {"failed": f"it did not end within {question['timeout']} seconds"}
        is_last = threading.active_count() > 1
        answers.write(json.dumps({**answer, "is_last": is_last}).encode() + b"\n")
        answers.flush()
        if is_last:
            break
    os._exit(0)


def _largest_stack() -> int:
    """Leave three quarters of the address space to the code and its data."""
    size = _STACK
    with contextlib.suppress(ImportError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        while limit != resource.RLIM_INFINITY and size > max(limit // 4, _SMALLEST):
            size //= 2
    return size


def _set_depth(stack: int) -> None:
    threading.stack_size(stack)
    sys.setrecursionlimit(max(_DEPTH * stack // _STACK, 1000))


def _started(question: dict[str, Any], answer: dict[str, object]) -> threading.Thread:
    """Start a thread with as large a stack as there is room for."""
    while True:
        worker = threading.Thread(target=_answer_into, args=(question, answer), daemon=True)
        try:
            worker.start()
        except RuntimeError:
            size = threading.stack_size() // 2
            if size < _SMALLEST:
                raise
            _set_depth(size)
        else:
            return worker


def _answer_into(question: dict[str, Any], answer: dict[str, object]) -> None:
    answer.update(_answer(question))


def _answer(question: dict[str, Any]) -> dict[str, object]:
    import libcst
    from libcst import codemod

    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            text, original = question["text"], libcst.parse_module(question["text"])
            if original.code != text:
                return {"failed": "LibCST does not give the file's text back, so that nothing can be changed safely"}
            names: dict[str, Any] = {"__name__": question["module"]}
            exec(compile(question["code"], question["module"], "exec", dont_inherit=True), names)  # noqa: S102
            command = names.get(question["command"])
            if not (isinstance(command, type) and issubclass(command, codemod.CodemodCommand)):
                return {"failed": f"it has no CodemodCommand of the name {question['command']}"}
            context = codemod.CodemodContext(filename=question["path"])
            changed = command(context, **question["arguments"]).transform_module(original).code
            settled = sorted({int(line) for line in context.scratch.get("settled", ())})
    except codemod.SkipFile:
        return {"text": text, "settled": [], "warnings": []}
    except libcst.ParserSyntaxError as error:
        return {"failed": f"LibCST cannot parse: {error.message}"}
    except MemoryError:
        return {"failed": "it raised MemoryError", "lacks_memory": True}
    except BaseException as error:  # noqa: BLE001 - a codemod may end in any way, SystemExit included
        return {"failed": f"it raised {type(error).__name__}{_clause(str(error))}"}
    if printed.getvalue():
        return {"failed": f"it printed{_clause(printed.getvalue())}"}
    return {"text": changed, "settled": settled, "warnings": [" ".join(text.split()) for text in context.warnings]}


def _clause(text: str) -> str:
    line = " ".join(text.split())
    return f": {line[:200]}" if line else ""


def _contain() -> None:
    """Refuse from here on what a codemod has no use for; an audit hook cannot be taken away again."""
    sys.dont_write_bytecode = True
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event.startswith(_FORBIDDEN) or event in _ALSO:
            raise PermissionError(f"a codemod may not do `{event}`")
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & writing:
            raise PermissionError(f"a codemod may not write {arguments[0]}")

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
