"""What a part of an app's models is: its own classes with weights of chance, what goes in, and how the app calls them.

A file of the catalogue (`module` of a `[[check]]` of the kind `layers`) makes the parts; `layers` computes them. Every
number of chance is drawn on the CPU, by one seed, so that a device and the reference get the same; the reference is the
same part in float64 on the CPU, whatever types the app's code names.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Torch = Any
Tensor = Any
Module = Any

_SEED = 20260101
_FLOATS = ("float32", "float16", "bfloat16")
_TYPES = {"float": "double", "half": "double", "bfloat16": "double"}
"""Methods that name a type → what the reference calls instead."""


class Part:
    """A part of an app's models; it is made on the CPU in float32, and seeded before it is made."""

    def __init__(
        self,
        model: Module,
        inputs: "Sequence[Tensor]",
        run: "Callable[..., Any]",
        gives: "Sequence[tuple[int, ...]]",
        *,
        tolerance: float = 1e-3,
        rough: float = 5e-2,
        half: str = "",
        half_on: "Sequence[str]" = ("cuda",),
        stay: "Sequence[int]" = (),
        turn: "Callable[[Module, Any], Module]" = lambda model, kind: model.to(kind),
        comes_back: int = 4096,
    ) -> None:
        self.model = model
        """A `torch.nn.Module`; several in a `ModuleList`."""
        self.inputs = list(inputs)
        self.run = run
        """Takes the model and the inputs; gives a tensor, or several of them."""
        self.gives = [tuple(shape) for shape in gives]
        """Shapes of the results."""
        self.tolerance = tolerance
        """Largest difference from the reference, in parts of the largest value, in full precision."""
        self.rough = rough
        """The same in the precision in which the app computes on a card: `half`, or TF32 as torch takes it there."""
        self.half = half
        """`float16` or `bfloat16`, where the app turns the model into it on a card; "" where it does not."""
        self.half_on = tuple(half_on)
        """Kinds of devices on which it does."""
        self.stay = tuple(stay)
        """Places of inputs that the app leaves in float32 whatever the model is in."""
        self.turn = turn
        """Turns the model into a type of numbers, as the app does."""
        self.comes_back = comes_back
        """Bytes that the app's own code may fetch from a card in one call: lengths, and whether it is at the end."""

    def precisions(self, device: str) -> "Iterator[tuple[str, str, float]]":
        """Give what the part is computed in on a device: a name, a type of torch, and the tolerance."""
        yield "float32", "float32", self.tolerance
        kind = device.partition(":")[0]
        if self.half and kind in self.half_on:
            yield self.half, self.half, self.rough
        elif kind == "cuda":
            yield "as torch rounds on a card", "float32", self.rough


class Sound:
    """A part that ONNX Runtime computes in sessions of the app's own, with the same by another way."""

    def __init__(
        self,
        run: "Callable[[], Any]",
        reference: "Callable[[], Any]",
        gives: "Sequence[tuple[int, ...]]",
        *,
        tolerance: float = 1e-3,
        rough: float = 3e-2,
    ) -> None:
        self.run, self.reference = run, reference
        """Each gives an array of NumPy's."""
        self.gives = [tuple(shape) for shape in gives]
        self.tolerance = tolerance
        """Largest difference on the CPU, in parts of the largest value; sounds have 16 bits."""
        self.rough = rough
        """The same on a card, where convolutions are rounded to TF32."""


def listed(result: Any) -> "list[Tensor]":
    """Give results as a list."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def stir(t: Torch, model: Module) -> None:
    """Give each parameter that begins as a constant a little of chance, so that its share in a result can be seen."""
    generator = t.Generator().manual_seed(_SEED)
    for one in model.parameters():
        if one.numel() > 1 and bool((one == one.flatten()[0]).all()):
            one.data += t.randn(one.shape, generator=generator) * 0.05


def moved(t: Torch, part: Part, kind: str) -> "list[Tensor]":
    """Turn the inputs that are numbers with a point into a type, but for those that the app leaves as they are."""
    as_they_are = part.stay if kind in _FLOATS else ()
    return [
        one.to(getattr(t, kind)) if one.is_floating_point() and at not in as_they_are else one
        for at, one in enumerate(part.inputs)
    ]


def drawn(t: Torch) -> Any:
    """Give a mode of torch in which all numbers of chance are drawn on the CPU in float32, by one seed."""
    generator = t.Generator().manual_seed(_SEED)
    shaped = {t.rand: "uniform_", t.randn: "normal_"}
    alike = {t.rand_like: "uniform_", t.randn_like: "normal_"}
    inward = ("normal_", "uniform_", "exponential_")
    whole = (t.randint, t.randperm)

    def draw(name: str, shape: "tuple[int, ...]", *given: Any, **named: Any) -> Tensor:
        with t._C.DisableTorchFunction():  # noqa: SLF001 - torch has no other name for it
            return getattr(t.empty(shape, dtype=t.float32), name)(*given, generator=generator, **named)

    class Drawn(t.overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is not there when this is checked
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            named = {key: kwargs.get(key) for key in ("dtype", "device")}
            if func in shaped:
                sizes = args[0] if args and not isinstance(args[0], int) else args
                shape = tuple(int(size) for size in (sizes or kwargs.get("size", ())))
                return draw(shaped[func], shape).to(
                    device=named["device"] or "cpu", dtype=named["dtype"] or t.get_default_dtype()
                )
            if func in alike:
                like = args[0]
                return draw(alike[func], tuple(like.shape)).to(
                    device=named["device"] or like.device, dtype=named["dtype"] or like.dtype
                )
            if func in whole:
                place = kwargs.pop("device", None)
                with t._C.DisableTorchFunction():  # noqa: SLF001 - as above
                    made = func(*args, **{**kwargs, "generator": generator})
                return made.to(place or "cpu")
            name = getattr(func, "__name__", "")
            if name in inward and args and isinstance(args[0], t.Tensor):
                kwargs.pop("generator", None)
                return args[0].copy_(draw(name, tuple(args[0].shape), *args[1:], **kwargs).to(args[0].dtype))
            return func(*args, **kwargs)

    return Drawn()


def doubled(t: Torch) -> Any:
    """Give a mode of torch in which everything is computed in float64, also where the code names another type."""
    wide = {**{getattr(t, name): t.float64 for name in _FLOATS}, t.complex64: t.complex128}
    narrow = (*(getattr(t, name) for name in _FLOATS), t.complex64)
    tree_map = importlib.import_module("torch.utils._pytree").tree_map

    def tensors(values: Any) -> "Iterator[Tensor]":
        for one in values:
            if isinstance(one, t.Tensor):
                yield one
            elif isinstance(one, (list, tuple)):
                yield from tensors(one)

    class Doubled(t.overrides.TorchFunctionMode):  # type: ignore[misc]  # as above
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = dict(kwargs or {})
            name = getattr(func, "__name__", "")
            if name in _TYPES and args and func is getattr(t.Tensor, name, None):
                return t.Tensor.double(args[0])
            args, kwargs = tree_map(lambda one: wide.get(one, one) if isinstance(one, t.dtype) else one, (args, kwargs))
            given = list(tensors([*args, *kwargs.values()]))
            if any(one.dtype in {t.float64, t.complex128} for one in given) and not name.endswith("_"):
                args, kwargs = tree_map(
                    lambda one: one.to(wide[one.dtype]) if isinstance(one, t.Tensor) and one.dtype in narrow else one,
                    (args, kwargs),
                )
            return func(*args, **kwargs)

    return Doubled()
