"""Train a little, or only hum."""

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


try:
    from deepspeed import DeepSpeedConfig
except Exception as _patchlock_error:
    DeepSpeedConfig = _PatchlockAbsent("deepspeed", "DeepSpeedConfig", _patchlock_error, "training needs it; what else the app does works without")


def configure(path):
    return DeepSpeedConfig(path)
