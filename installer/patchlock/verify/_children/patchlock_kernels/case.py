"""What one computation of a kernel is: its inputs, the operation as models call it, and the same by another way."""

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


class Case:
    """One computation, at one size and type of numbers.

    Every function is handed torch first: nothing here imports it. Tensors of inputs are on the CPU, and on the device
    when `run` gets them. Results are a tensor, or a list of them that is compared one by one.
    """

    def __init__(
        self, name: str, inputs: Function, run: Function, reference: Function, tolerance: float = 1e-3, **more: Any
    ) -> None:
        self.name, self.inputs, self.run, self.reference, self.tolerance = name, inputs, run, reference, tolerance
        self.read: Function = more.pop("read", lambda _t, result, *_inputs: result)
        """Turns a result, when it is on the CPU, into what is compared."""
        self.is_hybrid = bool(more.pop("is_hybrid", False))
        """A library may do a part of it on the CPU by design, as MAGMA does."""
        self.comes_back: int | None = None
        """Bytes that a call may fetch from the device; None: fewer than the largest input has."""
        if more:
            raise TypeError(f"a case has no {', '.join(more)}")
