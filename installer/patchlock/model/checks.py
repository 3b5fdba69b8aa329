"""The kinds of checks that a catalogue may ask for, as values; what runs them is in `checks`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from patchlock.model.backends import KERNELS
from patchlock.model.table_fields import OneOf, ProfilesIfAny


@dataclass(frozen=True, kw_only=True)
class SmokeImport:
    """What must hold in the app's environment after patching: modules import while packages are not there.

    Unlike an `Ensure` it runs upstream's code, so only `verify` runs it, contained.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    modules: tuple[str, ...]
    """Dotted names, as the app's folder has them."""
    blocked: tuple[str, ...] = ()
    """Top-level packages that look as if they were not installed."""
    timeout: int = 60
    """Seconds for each module."""

    def __post_init__(self) -> None:
        if not self.modules:
            raise ValueError("`modules` is empty")
        for module in self.modules:
            if not all(part.isidentifier() for part in module.split(".")):
                raise ValueError(f"`{module}` is not the name of a module")
        for package in self.blocked:
            if not package.isidentifier():
                raise ValueError(f"`{package}` is not the name of a top-level package")
        if self.timeout <= 0:
            raise ValueError("`timeout` must be a number of seconds above 0")


@dataclass(frozen=True, kw_only=True)
class ImportsCheck:
    """Modules that must import in the environment, and modules that must not be there."""

    id: str
    present: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether it names no module, and so proves nothing."""
        return not (self.present or self.absent)


@dataclass(frozen=True, kw_only=True)
class OnnxSessionCheck:
    """Tiny ONNX models must compute the right numbers on this provider, proved by ONNX Runtime's own profile."""

    id: str
    provider: str


@dataclass(frozen=True, kw_only=True)
class LayersPart:
    """One part of an app's models, which a function of the check's file makes."""

    name: str
    """Of the function."""
    needs: Annotated[tuple[str, ...], OneOf('there is no kernel "{}"', KERNELS)] = ()
    """Kernels that it rests on: where one of them is known to fail, so may the part."""


@dataclass(frozen=True, kw_only=True)
class LayersCheck:
    """Parts of an app's own models, with weights of chance, must compute on the device what they compute on the CPU."""

    id: str
    module: str
    """A file beside the app's, which makes the parts."""
    parts: tuple[LayersPart, ...]
    timeout: int
    """Seconds for each part, beside what the back end needs to compile."""
    library: Annotated[str, OneOf('no layers are computed by "{}"', ("torch", "onnxruntime"))] = "torch"
    """What computes them."""
    on_the_processor: ProfilesIfAny = ()
    """Profiles on which the app computes these on the processor, whatever the machine has."""
    memory_gb: int = 0
    """Gigabytes (10^9 bytes) for each part; 0: a share of the machine's memory."""
    code: str
    """Of that file; it is no key."""


@dataclass(frozen=True, kw_only=True)
class SoundCheck:
    """The app must speak or sing once by its own code, and make a sound; `bench` measures the same job."""

    id: str
    what: str
    """The job, as a clause."""
    module: str
    """A file beside the app's."""
    job: str
    """The function of that file that makes the job."""
    timeout: int
    """Seconds to load all of it, and again for each run of `bench`, beside what the back end needs to compile."""
    runs: int = 5
    """How often `bench` does it, after one warm-up run."""
    on_the_processor: ProfilesIfAny = ()
    """Profiles on which the app computes this on the processor, whatever the machine has."""
    memory_gb: int = 0
    """Gigabytes (10^9 bytes) that it may have with all that it starts; 0: a share of the machine's memory."""
    code: str
    """Of that file; it is no key."""


@dataclass(frozen=True, kw_only=True)
class CommandCheck:
    """A command of the app must end with exit code 0 and print a text."""

    id: str
    command: tuple[str, ...]
    prints: str
    """Must occur in stdout; "" asks for nothing."""
    timeout: int
    """Seconds."""
    memory_gb: int = 0
    """Gigabytes (10^9 bytes) that it may have with all that it starts; 0: a share of the machine's memory."""


@dataclass(frozen=True, kw_only=True)
class PythonCheck:
    """A few lines of Python that compute with the app's own modules must end well and print a text."""

    id: str
    code: str
    """Runs in the app's folder, which is first on `sys.path`."""
    prints: str
    """Must occur in stdout."""
    timeout: int
    """Seconds."""
    memory_gb: int = 0
    """Gigabytes (10^9 bytes) that it may have with all that it starts; 0: a share of the machine's memory."""


@dataclass(frozen=True, kw_only=True)
class ServesCheck:
    """A service of the app must answer with status 200 on the loopback address."""

    id: str
    command: tuple[str, ...]
    """`{port}` is replaced by a free port."""
    path: str
    prints: str
    """Must occur in the answer; "" asks for nothing."""
    timeout: int
    """Seconds until the first answer."""
    memory_gb: int = 0
    """Gigabytes (10^9 bytes) that it may have with all that it starts; 0: a share of the machine's memory."""


@dataclass(frozen=True, kw_only=True)
class SmokeImportCheck:
    """The executed ensure of a patch that was needed."""

    id: str
    smoke: SmokeImport


LoadsCheck = ImportsCheck | SmokeImportCheck
"""What shows that libraries and the app's modules load; it runs before anything is computed."""
OwnCheck = CommandCheck | PythonCheck | ServesCheck
"""What the app computes or serves itself."""
Check = LoadsCheck | OnnxSessionCheck | LayersCheck | SoundCheck | OwnCheck
CHECKS: Mapping[str, type[Check]] = {
    "imports": ImportsCheck,
    "onnx-session": OnnxSessionCheck,
    "layers": LayersCheck,
    "sound": SoundCheck,
    "command": CommandCheck,
    "python": PythonCheck,
    "serves": ServesCheck,
}
"""`kind` of a `[[check]]` → dataclass whose fields are its keys."""
