"""Compute parts of an app's own models on one device, and compare each with itself in float64 on the CPU.

Arguments: the file that the answer goes to, a file that makes the parts, the device as torch calls it or a provider of
ONNX Runtime, and the names of parts, joined by commas. The answer is that of `compute`, and so is the evidence of where
something was computed, for torch; for ONNX Runtime it is the placement of nodes in the app's own sessions.
This runs in the app's folder: what the app can import can be imported. See `patchlock_layers` for what a part is.
"""

import contextlib
import copy
import importlib
import importlib.util
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

Torch = Any

_OURS = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - one import less in a child
_SEED = 20260101


def _parts(script: str) -> Any:
    """Import the file that makes the parts; the app's folder and its own paths come first, as they do when it runs."""
    own = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:0] = [os.getcwd(), *(os.path.abspath(path) for path in own)]  # noqa: PTH100, PTH109 - as above
    description = importlib.util.spec_from_file_location("parts_of_the_app", script)
    if description is None or description.loader is None:
        raise ImportError(f"{script} is no Python")
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


class _Computed:
    """A part in one precision on one device, as a case of `compute`."""

    is_hybrid = False

    def __init__(
        self, t: Torch, ours: Any, part: Any, wants: "list[Any]", device: object, how: "tuple[str, str, float]"
    ) -> None:
        self.name, self._kind, self.tolerance = how
        self._t, self._ours, self._part, self._wants = t, ours, part, wants
        self.comes_back = part.comes_back
        self._models = {"cpu": part.model, str(device).partition(":")[0]: self._made().to(device)}

    def _made(self) -> Any:
        return self._part.turn(copy.deepcopy(self._part.model), getattr(self._t, self._kind))

    def inputs(self, _t: Torch, _generator: Any) -> "list[Any]":
        """Give the inputs in this precision."""
        made: list[Any] = self._ours.moved(self._t, self._part, self._kind)
        return made

    def run(self, t: Torch, *inputs: Any) -> Any:
        """Compute on the device where the inputs are."""
        with _rounding(t, exact=self.name == "float32"), self._ours.drawn(t):
            return self._ours.listed(self._part.run(self._models[inputs[0].device.type], *inputs))

    def reference(self, t: Torch, *_inputs: Any) -> "list[Any]":
        """Give what is computed in float64 on the CPU, from the inputs as they are before they are rounded."""
        if not self._wants:
            self._wants += self._exact(t)
        return self._wants

    def _exact(self, t: Torch) -> "list[Any]":
        model = copy.deepcopy(self._part.model).double()
        default = t.get_default_dtype()
        t.set_default_dtype(t.float64)
        try:
            with self._ours.doubled(t), self._ours.drawn(t):
                made: list[Any] = self._ours.listed(self._part.run(model, *self._ours.moved(t, self._part, "float64")))
        finally:
            t.set_default_dtype(default)
        shapes = [tuple(one.shape) for one in made]
        if shapes != self._part.gives:
            raise ValueError(f"it gives {shapes}, and should give {self._part.gives}")
        return made

    def read(self, _t: Torch, results: "list[Any]", *_inputs: Any) -> "list[Any]":
        """Give what is compared: the results as they are."""
        return results


@contextlib.contextmanager
def _rounding(t: Torch, *, exact: bool) -> Iterator[None]:
    """Keep cards from rounding to TF32 where exact numbers are asked for; otherwise torch does as it does for the app.

    Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere
    """
    places = (t.backends.cudnn, t.backends.cuda.matmul)
    before = [place.allow_tf32 for place in places]
    try:
        if exact:
            for place in places:
                place.allow_tf32 = False
        yield
    finally:
        for place, was in zip(places, before):  # noqa: B905 - some apps have Python 3.9
            place.allow_tf32 = was


def cases(t: Torch, script: str, name: str, device: object) -> "list[_Computed]":
    """Make a part, and the cases that it is computed in."""
    ours = importlib.import_module("patchlock_layers")
    make = getattr(_parts(script), name)
    t.manual_seed(_SEED)
    part = make()
    part.model.eval()
    ours.stir(t, part.model)
    wants: list[Any] = []
    return [_Computed(t, ours, part, wants, device, how) for how in part.precisions(str(device))]


# --- ONNX Runtime -----------------------------------------------------------------------------------------------------

_CPU = "CPUExecutionProvider"
_HEAVY = frozenset({"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU"})
"""Operations that a provider has to compute itself; it may leave what is small to the CPU."""


@contextlib.contextmanager
def _watched(ort: Any, folder: str) -> "Iterator[list[Any]]":
    """Let each session that is made write down which provider computes its nodes."""
    made: list[Any] = []
    real = ort.InferenceSession

    class Watched(real):  # type: ignore[misc,valid-type]  # onnxruntime is not there when this is checked
        def __init__(self, model: Any, sess_options: Any = None, *more: Any, **named: Any) -> None:
            options = sess_options or ort.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, f"session{len(made)}")  # noqa: PTH118 - as above
            super().__init__(model, options, *more, **named)
            made.append(self)

    ort.InferenceSession = Watched
    try:
        yield made
    finally:
        ort.InferenceSession = real


def _placed(sessions: "list[Any]") -> "set[str]":
    """Name the providers that computed the heavy nodes of the sessions that ran."""
    found = set()
    for session in sessions:
        with open(session.end_profiling(), encoding="utf-8") as file:  # noqa: PTH123 - as above
            events = json.load(file)
        for event in events:
            told = event.get("args", {})
            if event.get("cat") == "Node" and told.get("op_name") in _HEAVY and "provider" in told:
                found.add(str(told["provider"]))
    return found


def sounded(script: str, name: str, provider: str, answer: Any) -> "dict[str, object]":
    """Compute a part in the app's own sessions, and say how far it is from the truth, and where it ran."""
    ort, np = importlib.import_module("onnxruntime"), importlib.import_module("numpy")
    if provider not in ort.get_available_providers():
        raise ImportError(f"onnxruntime {ort.__version__} has no {provider}")
    make = getattr(_parts(script), name)
    answer.stage("build")
    with tempfile.TemporaryDirectory() as folder, _watched(ort, folder) as sessions:
        part = make(folder)
        want = part.reference()
        answer.stage("compute")
        taken, made = [], []
        for _ in range(3):
            started = time.perf_counter()
            made.append(part.run())
            taken.append((time.perf_counter() - started) * 1000)
        answer.stage("profile")
        placed = _placed(sessions)
    shapes = [tuple(one.shape) for one in made]
    if set(shapes) != set(part.gives) or want.shape != part.gives[0]:
        raise ValueError(f"it gives {shapes[0]}, and should give {part.gives[0]}")
    return {
        "error": float(np.abs(np.stack(made).astype(np.float64) - want).max() / np.abs(want).max()),
        "tolerance": part.tolerance if provider == _CPU else part.rough,
        "zeros": not all(bool((one != 0).any()) for one in made),
        "on": ", ".join(sorted(placed)),
        "wanted": provider,
        "shown": "node placement",
        "first": taken[0],
        "ms": min(taken),
        "version": ort.__version__,
    }


# --- both -------------------------------------------------------------------------------------------------------------


def where(reason: BaseException) -> str:
    """Say in which line of the app's, or of its libraries', something was raised."""
    frames = [one for one in traceback.extract_tb(reason.__traceback__) if not one.filename.startswith((_OURS, "<"))]
    if not frames:
        return str(reason)
    path = frames[-1].filename
    for folder in sorted((one for one in sys.path if one), key=len, reverse=True):
        if path.startswith(folder + os.sep):
            path = path[len(folder) + 1 :]
            break
    return f"{reason} ({path}:{frames[-1].lineno})"


def main(arguments: "Iterable[str]") -> None:
    """Do what the arguments say, and write what came of it."""
    path, script, device, names = arguments
    sys.path.insert(0, _OURS)
    compute = importlib.import_module("compute")
    if not device.endswith("ExecutionProvider"):
        compute.respond((path, device, names), lambda t, name, place: cases(t, script, name, place), where)
        return
    compute.answer_each(path, names, lambda name, answer: sounded(script, name, device, answer), where)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # what a driver does when it is unloaded is no part of the proof
