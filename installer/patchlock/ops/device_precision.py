"""Turn half precision into single precision, which every device bears; part of `device-literals`."""

from __future__ import annotations

import ast

from patchlock.ops import device_changes
from patchlock.ops.device_changes import Change
from patchlock.ops.device_walk import Spot
from patchlock.ops.syntax import Module

_NAMES = {"compute_type", "dtype", "torch_dtype", "weight_dtype", "data_type", "precision"}
_HALVES = {"float16", "half"}


def to_single_precision(module: Module, spot: Spot) -> Change | None:
    """Give the change for `x.half()`, `torch.float16` or `compute_type="float16"`; `None` for anything else."""
    match spot.node, spot.parent:
        case ast.Attribute(attr="half") as attribute, ast.Call(args=[], keywords=[]) if spot.field == "func":
            return device_changes.renamed(module, attribute, "float")
        case ast.Attribute(value=ast.Name(id="torch"), attr=name, ctx=ast.Load()) as attribute, parent:
            is_used = name in _HALVES and not _is_compared(spot) and not isinstance(parent, ast.Attribute)
            return device_changes.renamed(module, attribute, "float32") if is_used else None
        case ast.Constant(value="float16") as constant, ast.keyword(arg=name) if name in _NAMES:
            return device_changes.text(module, constant, "float32")
        case ast.Constant(value="float16") as constant, ast.Assign(targets=[ast.Name(id=name)]) if name in _NAMES:
            return device_changes.text(module, constant, "float32")
        case ast.Constant(value="float16") as constant, ast.arguments() as arguments:
            positional = [*arguments.posonlyargs, *arguments.args]
            last = zip(reversed(positional), reversed(arguments.defaults), strict=False)
            only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            is_named = any(value is constant and argument.arg in _NAMES for argument, value in (*last, *only))
            return device_changes.text(module, constant, "float32") if is_named else None
        case _:
            return None


def _is_compared(spot: Spot) -> bool:
    """Tell whether a type is compared, or looked up, and not given to anything."""
    here: Spot | None = spot.around
    while here and isinstance(here.node, ast.List | ast.Tuple | ast.Set | ast.Dict):
        here = here.around
    return here is not None and isinstance(here.node, ast.Compare | ast.Dict | ast.Subscript)
