"""The class that `optional-import` puts into a file of upstream: what stands for a name of a package that is absent.

It helps a module to be imported, and nothing more: it can be a base class, an annotation, a bare decorator, a default
or what an `except` clause names. Whoever calls it, constructs it or a subclass, or iterates over it gets an
`ImportError` that names the package, raised from the original one.
"""

from __future__ import annotations

NAME = "_PatchlockAbsent"
ERROR = "_patchlock_error"
"""What the `except` clauses call the original error; Python deletes the name at their end."""

AS_CLASS = "_patchlock_class"
"""The method that gives a stand-in as a class, for `except` clauses."""

_CODE = '''\
class _PatchlockAbsent:
    """Stands for a name of a package that is not installed here; patchlock's optional-import put it here."""

    __version__ = "0"

    def __init__(self, package, name, error, message=""):
        self._patchlock_about = (package, name, error, message)

    def _patchlock_refuse(self, *args, **kwargs):
        package, name, error, message = self._patchlock_about
        because = " (" + message + ")" if message else ""
        state = " is not installed here" if isinstance(error, ImportError) else " cannot be imported here"
        raise ImportError(package + state + ", and " + name + " needs it" + because) from error

    def _patchlock_class(self, *bases):  # neither it nor a subclass can be constructed
        name = self._patchlock_about[1].rpartition(".")[2]
        return type(name, bases, dict.fromkeys(("__new__", "__init__"), self._patchlock_refuse))

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], (type, type(lambda: None))):
            return args[0]  # a bare decorator
        self._patchlock_refuse()

    def __getattr__(self, name):
        if name.startswith(("__", "_patchlock")):
            raise AttributeError(name)
        package, parent, error, message = self._patchlock_about
        setattr(self, name, _PatchlockAbsent(package, parent + "." + name, error, message))
        return self.__dict__[name]

    __iter__ = _patchlock_refuse  # or __getitem__ would make it an endless sequence
    __mro_entries__ = lambda self, bases: (self._patchlock_class(),)
    __getitem__ = __or__ = __ror__ = lambda self, other: self
    __bool__ = __instancecheck__ = __subclasscheck__ = lambda self, *others: False
'''


def code(unit: str, newline: str) -> str:
    """Give the class with a file's own indentation and line ending; ASCII, for every encoding."""
    return _CODE.replace("    ", unit).replace("\n", newline)


def binding(bound: str, package: str, name: str, message: str, caught: frozenset[str]) -> tuple[str, ...]:
    """Give the statements that bind a name to its stand-in.

    Args:
        bound: the name that the import binds.
        package: the distribution's top-level package.
        name: what the import calls it, for the message.
        message: added to the message, or "".
        caught: dotted names that `except` clauses of the file mention, which must be exception classes.
    """
    arguments = [_literal(package), _literal(name), ERROR, *([_literal(message)] if message else [])]
    value = f"{NAME}({', '.join(arguments)})"
    if bound in caught:
        return (f"{bound} = {value}.{AS_CLASS}(Exception)",)
    attributes = sorted(name for name in caught if name.startswith(f"{bound}."))
    return (f"{bound} = {value}", *(f"{name} = {name}.{AS_CLASS}(Exception)" for name in attributes))


def _literal(text: str) -> str:
    """Write a string literal in ASCII with double quotes."""
    return '"' + text.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
