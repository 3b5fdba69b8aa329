"""A card that is none: torch for the processor says that it has one, computes on the processor, and makes one mistake.

It is put into an environment that has the real torch, and imported when that Python starts; see `kernel_faults.py`. The
file that PATCHLOCK_FAULT names says which mistake, as JSON; it is read at the first call of a process, and what is
called is written to PATCHLOCK_CALLED. Calls are seen as a program makes them (`torch.overrides.TorchFunctionMode`), so
that a mistake can be one of a whole LSTM, and only for some sizes.

The card has an allocator and a profiler of its own: what is computed on it counts as a kernel, what is copied from it
as that.
"""

import contextlib
import functools
import json
import os
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._pytree import tree_map

HOME, CARD = torch.device("cpu"), torch.device("cuda:0")
_ALIASES = {
    **dict.fromkeys(("__matmul__", "__rmatmul__", "mm", "addmm"), "matmul"),
    **dict.fromkeys(("__add__", "__radd__"), "add"),
    **dict.fromkeys(("__mul__", "__rmul__"), "mul"),
    "__sub__": "sub",
    "__truediv__": "div",
    "__pow__": "pow",
    "masked_fill_": "masked_fill",
}
_VIEWS = {
    *(
        "shape",
        "dtype",
        "device",
        "is_cuda",
        "size",
        "dim",
        "numel",
        "element_size",
        "stride",
        "data_ptr",
        "is_floating_point",
    ),
    *(
        "reshape",
        "view",
        "transpose",
        "permute",
        "t",
        "T",
        "__getitem__",
        "unsqueeze",
        "squeeze",
        "expand",
        "chunk",
        "unbind",
    ),
    *(
        "view_as_real",
        "real",
        "imag",
        "flatten",
        "__len__",
        "ndim",
        "layout",
        "is_sparse",
        "requires_grad",
        "__format__",
        "__repr__",
    ),
    *(
        "data",
        "copy_",
        "_has_compatible_shallow_copy_type",
        "detach",
        "set_",
        "is_contiguous",
        "names",
        "grad",
        "is_leaf",
    ),
}
_HOME = {"tolist", "item", "numpy", "__bool__", "__float__", "__int__", "__index__", "cpu"}

events: list = []
"""What the profiler would see."""
allocated = [0]


class Card(torch.Tensor):
    """A tensor that says that it is on the card."""


def _is_card(one):
    return type(one) is Card


def _plain(one):
    return (
        one.as_subclass(torch.Tensor)
        if _is_card(one)
        else HOME
        if isinstance(one, torch.device) and one.type == "cuda"
        else one
    )


def _wrapped(one):
    if isinstance(one, torch.Tensor) and not _is_card(one):
        allocated[0] += one.numel() * one.element_size()
        return one.as_subclass(Card)
    return one


def _copied(name, one):
    events.append({"cat": "gpu_memcpy", "name": f"Memcpy {name}", "args": {"bytes": one.numel() * one.element_size()}})


@functools.cache
def _name(func):
    name = (resolve_name(func) or getattr(func, "__name__", "")).rpartition(".")[2]
    return func.__self__.__name__ if name == "__get__" else name


def _given(args, kwargs):
    """Give all arguments, and what is in lists of them."""
    for one in (*args, *kwargs.values()):
        if isinstance(one, list | tuple):
            yield from one
        else:
            yield one


class Device(TorchFunctionMode):
    """Takes every call of torch."""

    def __init__(self):
        super().__init__()
        self.fault, self.calls, self.called = None, 0, set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.tensor:
            place = str(kwargs.get("device") or "")
            made = func(*args, **(kwargs | ({"device": HOME} if place.startswith("cuda") else {})))
            return _wrapped(made) if place.startswith("cuda") else made
        name, given = _name(func), list(_given(args, kwargs))
        cards = [one for one in given if _is_card(one)]
        if name == "device" and cards:
            return CARD
        if name == "is_cuda" and cards:
            return True
        goes = any(
            (isinstance(one, torch.device) and one.type == "cuda") or (isinstance(one, str) and one.startswith("cuda"))
            for one in given
        )
        comes = name in _HOME or (
            name == "to" and any(one in ("cpu", HOME) for one in given if isinstance(one, str | torch.device))
        )
        with torch._C.DisableTorchFunctionSubclass():
            plain = tree_map(
                lambda one: HOME if isinstance(one, str) and one.startswith("cuda") else _plain(one), (args, kwargs)
            )
            if cards and comes:
                _copied("DtoH (Device -> Pageable)", cards[0])
                return func(*plain[0], **plain[1])
            if not cards and not goes:
                return func(*plain[0], **plain[1])
            if name == "to" and goes:
                _copied("HtoD (Pageable -> Device)", given[0])
                return _wrapped(func(*plain[0], **plain[1]).clone())
            if name in _VIEWS:
                made = func(*plain[0], **plain[1])
                if isinstance(made, torch.Size):  # which tree_map would make a tuple of
                    return made
                return tree_map(lambda one: one.as_subclass(Card) if isinstance(one, torch.Tensor) else one, made)
            made = self.computed(_ALIASES.get(name, name), func, plain, cards)
            return tree_map(_wrapped, made)

    def computed(self, name, func, plain, cards):
        """Compute on the card, as well as it can."""
        if self.fault is None:
            self.fault = json.loads(Path(os.environ["PATCHLOCK_FAULT"]).read_text(encoding="utf-8"))
        if name not in self.called:
            self.called.add(name)
            with Path(os.environ["PATCHLOCK_CALLED"]).open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        inputs = [one for one in _given(*plain) if isinstance(one, torch.Tensor)]
        is_hit = name in self.fault.get("ops", ()) and self.is_hit(inputs)
        if is_hit and self.fault["does"] == "silent":
            for one in cards:
                _copied("DtoH (Device -> Pageable)", one)
            made = func(*plain[0], **plain[1])
            for one in made if isinstance(made, list | tuple) else [made]:
                if isinstance(one, torch.Tensor):
                    _copied("HtoD (Pageable -> Device)", one)
            return made
        events.append({"cat": "kernel", "name": name})
        if is_hit and self.fault["does"] in MEANINGS:
            return MEANINGS[self.fault["does"]](func, *plain[0], **plain[1])
        made = func(*plain[0], **plain[1])
        if not is_hit:
            return made
        if isinstance(made, torch.Tensor):
            return DOES[self.fault["does"]](made)
        kept = type(made)
        which = self.fault.get("result", 0)
        parts = [
            DOES[self.fault["does"]](one) if k == which and isinstance(one, torch.Tensor) else one
            for k, one in enumerate(made)
        ]
        return kept(parts) if kept in {list, tuple} else parts

    def is_hit(self, inputs):
        """Say whether the mistake is made at this call."""
        when, first = self.fault.get("when", "always"), inputs[0] if inputs else None
        if when == "second call":
            self.calls += 1
            return self.calls % 2 == 0
        if when == "third call":
            self.calls += 1
            return self.calls % 3 == 0
        if first is None:
            return when == "always"
        widest = max(max(one.shape, default=1) for one in inputs)  # of any dimension
        return {
            "always": True,
            "above 1000": widest > 1000,
            "above 4000": widest > 4000,
            "above 65536 numbers": max(one.numel() for one in inputs) > 65536,
            "batches": first.ndim > 1 and first.shape[0] > 1,
            "more than 100": first.ndim > 1 and first.shape[0] > 100,
            "one alone": first.shape[:1] == (1,),
            "odd": any(one.shape and one.shape[-1] % 2 for one in inputs),
            "float16": first.dtype == torch.float16,
            "bfloat16": first.dtype == torch.bfloat16,
            "int64": first.dtype == torch.int64,
        }[when]


def _changed(made, change):
    if made.dtype == torch.bool:
        return ~made
    flat = made.reshape(-1).clone()
    if len(flat):
        change(flat)
    return flat.reshape(made.shape)


def _last(flat):
    flat[-1] = flat[-1] + (1 if not (flat.is_floating_point() or flat.is_complex()) else 1 + abs(flat[-1]))


def _tail(flat):
    flat[-(flat.numel() % 32 or 32) :] = 0


def _nan(flat):
    flat[flat.numel() // 2] = float("nan") if flat.is_floating_point() or flat.is_complex() else -1


def _swap(flat):
    flat.copy_(flat.roll(1).clone())


def _scaled(made):
    return made + 1 if not (made.is_floating_point() or made.is_complex()) else made * 1.03


DOES = {
    "last number wrong": lambda made: _changed(made, _last),
    "tail is zero": lambda made: _changed(made, _tail),
    "not a number": lambda made: _changed(made, _nan),
    "off by one": lambda made: _changed(made, _swap),
    "3 percent more": _scaled,
    "as bfloat16": lambda made: made.bfloat16().to(made.dtype) if made.is_floating_point() else made,
    "zeros": torch.zeros_like,
    "noise": lambda made: (
        made + torch.randn(made.shape).to(made.dtype) * made.abs().max() * 0.02
        if made.is_floating_point()
        else made + 1
    ),
    "conjugate": lambda made: made.conj().resolve_conj(),
    "modulo 65536": lambda made: made % 65536,
}
"""What is done to a result."""


def _without(*names, **others):
    def call(func, *args, **kwargs):
        return func(*args, **{k: v for k, v in kwargs.items() if k not in names}, **others)

    return call


def _with(**others):
    return lambda func, *args, **kwargs: func(*args, **(kwargs | others))


def _undilated(func, x, w, *bias, **kwargs):
    dilation = kwargs.get("dilation", 1)
    shrunk = kwargs | {"dilation": 1, "padding": kwargs.get("padding", 0) - (dilation - 1) * (w.shape[-1] - 1) // 2}
    return func(x, w, *bias, **(shrunk if dilation > 1 else kwargs))


def _ungrouped(func, x, w, *bias, **kwargs):
    made = func(x, w, *bias, **kwargs)
    return made.roll(1, 1) if kwargs.get("groups", 1) > 1 else made


def _truncated(func, at, w, *args, **kwargs):
    return func(at % 65536, w, *args, **kwargs)


def _unbiased(func, x, w, *_bias, **kwargs):
    return func(x, w, **kwargs)


def _restarted(func, x, *args, **kwargs):
    made = func(x, *args, **kwargs).clone()
    if made.shape[-1] > 1024:
        made[..., 1024:] -= made[..., 1023:1024]
    return made


def _lost(func, x, *args, **kwargs):
    dim, at, source = args
    return x.clone().scatter(dim, at, source)


def _reflected(func, x, *args, **kwargs):
    return func(x, *args, **({} if kwargs.get("mode") == "reflect" else kwargs))


def _equal(func, weights, *args, **kwargs):
    return func(torch.ones_like(weights), *args, **kwargs)


def _narrow(func, *args, **kwargs):
    return func(*args, **kwargs) * 0.8


def _one_direction(func, *args, **kwargs):
    made = func(*args, **kwargs)
    half = made[0].shape[-1] // 2
    return (torch.cat([made[0][..., :half], made[0][..., half:].flip(-2)], -1), *made[1:])


def _unsorted(func, x, *args, **kwargs):
    values, places = func(x, *args, **kwargs)
    return values.flip(-1), places.flip(-1)


def _wrong_places(func, x, *args, **kwargs):
    values, places = func(x, *args, **kwargs)
    return values, places % 256


def _unlike(func, x, *args, **kwargs):
    return func(x.half().to(x.dtype), *args, **kwargs)


MEANINGS = {
    "mask ignored": _without("attn_mask"),
    "causal ignored": _without("is_causal"),
    "dilation ignored": _undilated,
    "groups mixed up": _ungrouped,
    "indices of 16 bits": _truncated,
    "bias ignored": _unbiased,
    "restarts at 1024": _restarted,
    "duplicates lost": _lost,
    "reflection ignored": _reflected,
    "weights ignored": _equal,
    "too narrow": _narrow,
    "second direction backwards": _one_direction,
    "unsorted": _unsorted,
    "places of 8 bits": _wrong_places,
    "corners aligned": lambda func, x, **kwargs: func(
        x, **(kwargs | ({"align_corners": True} if kwargs["mode"] == "linear" else {}))
    ),
    "computed in half precision": _unlike,
    "gelu by tanh": _with(approximate="tanh"),
    "not centred": lambda func, x, *a, **k: func(x.roll(1, -1), *a, **k),
}
"""What a call means instead."""


class Profile:
    """What `torch.profiler.profile` is, as far as `verify` uses it."""

    def __init__(self, **_more):
        pass

    def __enter__(self):
        events.clear()
        return self

    def __exit__(self, *_error):
        self.seen = list(events)

    def export_chrome_trace(self, path):
        """Write what was seen."""
        Path(path).write_text(json.dumps({"traceEvents": self.seen}), encoding="utf-8")


_module_to = torch.nn.Module.to


def _to(module, *args, **kwargs):
    """Bring a model to the card, whose parameters torch would make anew as the processor's."""
    if not args or not str(args[0]).startswith("cuda"):
        return _module_to(module, *args, **kwargs)
    for one in module.modules():
        for names in (one._parameters, one._buffers):
            for name, own in names.items():
                if own is not None:
                    names[name] = _wrapped(own.detach().clone())
                    names[name]._is_param = names is one._parameters
        if isinstance(one, torch.nn.RNNBase):
            one._flat_weights = [getattr(one, name) for name in one._flat_weights_names]
    return module


def _properties(_index=0):
    return type("Properties", (), {"name": "Pretended card", "total_memory": 8 << 30, "major": 9, "minor": 0})


torch.nn.Module.to, torch.nn.RNNBase.flatten_parameters = _to, lambda *_: None
torch.cuda.is_available, torch.cuda.device_count = lambda: True, lambda: 1
torch.cuda.get_device_properties, torch.cuda.synchronize = _properties, lambda *_: None
torch.cuda.get_device_name, torch.cuda.get_device_capability = lambda *_: "Pretended card", lambda *_: (9, 0)
torch.cuda.current_device, torch.cuda.is_bf16_supported = lambda: 0, lambda *_, **__: True
torch.cuda.memory_stats = lambda *_: {"allocated_bytes.all.allocated": allocated[0]}
torch.version.cuda = torch.version.cuda or "12.8"
with contextlib.suppress(ImportError):
    import torch.profiler

    torch.profiler.profile = Profile
Device().__enter__()
