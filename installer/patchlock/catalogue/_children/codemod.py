"""Run LibCST codemods, each over one file: a question is a line of JSON on standard input, an answer one on the output.

It runs in patchlock's own Python, and imports nothing of patchlock. The codemod can read files, but not write any,
start a program or reach the network: that catches mistakes, not malice, for the catalogue is trusted.

The question has `module` (name), `code` (of the codemod), `command`, `arguments`, `path`, `text` (of the file) and
`timeout` (seconds). The answer has `failed`, a clause, or `text` with `settled`, the 1-based lines in
`context.scratch["settled"]`, and `warnings`, what the command said by `self.warn`; and `is_last` where a codemod left
something running, with which the process ends.
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
    threading.stack_size(_STACK)
    sys.setrecursionlimit(_DEPTH)
    _contain()
    for line in sys.stdin.buffer:
        question = json.loads(line)
        answer: dict[str, object] = {}
        worker = threading.Thread(target=_answer_into, args=(question, answer), daemon=True)
        worker.start()
        worker.join(question["timeout"])
        if worker.is_alive():
            answer = {"failed": f"it did not end within {question['timeout']} seconds"}
        is_last = threading.active_count() > 1
        answers.write(json.dumps({**answer, "is_last": is_last}).encode() + b"\n")
        answers.flush()
        if is_last:
            break
    os._exit(0)


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
