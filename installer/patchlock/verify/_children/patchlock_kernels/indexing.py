"""What moves numbers: embeddings, gathering and scattering, masks, padding, sorting, the best of many and where."""

from typing import Any

from . import references
from .case import Case, Function
from .inputs import integers, normal, nothing, shuffled, together

_ROWS = 70001
"""More than 16 bits can name."""


def _best(count: int) -> Function:
    def run(t: Any, x: Any) -> "list[Any]":
        values, places = t.topk(x, count, dim=-1)
        return [values, places]

    return run


def _falling(row: "list[float]") -> "list[int]":
    return sorted(range(len(row)), key=lambda k: -row[k])


def _best_by_sorting(count: int) -> Function:
    def reference(t: Any, x: Any) -> "list[Any]":
        rows = x.tolist()
        places = [_falling(row)[:count] for row in rows]
        values = [[row[k] for k in at] for row, at in zip(rows, places, strict=True)]
        return [t.tensor(values, dtype=t.float64), t.tensor(places)]

    return reference


def _topk(name: str, count: int, *shape: int) -> Case:
    return Case(name, normal(shape), _best(count), _best_by_sorting(count), 1e-6)


def _sorted(t: Any, x: Any) -> "list[Any]":
    values, places = t.sort(x, dim=-1, descending=True)
    return [values, places]


def _scattered(t: Any, x: Any, at: Any) -> Any:
    rows = []
    for row, places in zip(x.tolist(), at.tolist(), strict=True):
        made = [0.0] * 64
        for value, place in zip(row, places, strict=True):
            made[place] += value
        rows.append(made)
    return t.tensor(rows, dtype=t.float64)


def _chosen(t: Any, x: Any, at: Any) -> Any:
    return t.tensor([[row[k] for k in places] for row, places in zip(x.tolist(), at.tolist(), strict=True)])


def _lists(function: Function) -> Function:
    return lambda t, *inputs: t.tensor(function(*(one.tolist() for one in inputs)))


def _reflected(row: "list[float]") -> "list[float]":
    return row[40:0:-1] + row + row[-2:-32:-1]


KERNELS: "dict[str, tuple[Case, ...]]" = {
    "embedding": (
        Case(
            f"{_ROWS} rows",
            together(normal((_ROWS, 16)), integers(0, _ROWS, (4, 300))),
            lambda t, w, at: t.nn.functional.embedding(at, w),
            lambda _t, w, at: w.double()[at],
            0.0,
        ),
        Case(
            "one of many, as truths",
            integers(0, 50, (7, 40)),
            lambda t, at: t.nn.functional.one_hot(at, 50),
            _lists(lambda rows: [[[int(k == v) for k in range(50)] for v in row] for row in rows]),
            0.0,
        ),
        Case(
            "rows by number",
            together(normal((5003, 8)), integers(0, 5003, (900,))),
            lambda t, x, at: t.index_select(x, 0, at),
            _lists(lambda rows, at: [rows[k] for k in at]),
            0.0,
        ),
    ),
    "gather": (
        Case(
            "from rows",
            together(normal((20, 300)), integers(0, 300, (20, 500))),
            lambda t, x, at: t.gather(x, 1, at),
            _chosen,
            0.0,
        ),
        Case(
            "from 40001",
            together(normal((2, 40001)), integers(0, 40001, (2, 900))),
            lambda t, x, at: t.gather(x, 1, at),
            _chosen,
            0.0,
        ),
    ),
    "scatter": (
        Case(
            "each to its place",
            together(normal((1, 64)), shuffled(64)),
            lambda t, x, at: t.zeros_like(x).scatter(1, at[None, :], x),
            lambda t, x, at: _scattered(t, x, at[None, :]),
            0.0,
        ),
        Case(
            "many to one place",
            together(normal((20, 400)), integers(0, 64, (20, 400))),
            lambda t, x, at: t.zeros((20, 64), device=x.device).scatter_add(1, at, x),
            _scattered,
            1e-5,
        ),
        Case(
            "rows to rows",
            together(normal((400, 3)), integers(0, 64, (400,))),
            lambda t, x, at: t.zeros((64, 3), device=x.device).index_add(0, at, x),
            lambda t, x, at: _scattered(t, x.T, at.expand(3, 400)).T,
            1e-5,
        ),
        Case(
            "how many of each",
            integers(0, 37, (50000,)),
            lambda t, at: t.bincount(at, minlength=40),
            _lists(lambda at: [at.count(k) for k in range(40)]),
            0.0,
        ),
    ),
    "masks": (
        Case(
            "filled",
            normal((30, 1333), (30, 1333)),
            lambda _t, x, y: x.masked_fill(y > 0.3, -7.0),
            references.by_number(lambda x, y: -7.0 if y > 0.3 else x),
            1e-6,
        ),
        Case(
            "chosen",
            normal((3001,), (3001,)),
            lambda t, x, y: t.masked_select(x, y > 0),
            _lists(lambda xs, ys: [x for x, y in zip(xs, ys, strict=True) if y > 0]),
            0.0,
        ),
        Case(
            "places of what is not zero",
            integers(0, 3, (2999,)),
            lambda t, x: t.nonzero(x).flatten(),
            _lists(lambda xs: [k for k, x in enumerate(xs) if x]),
            0.0,
        ),
        Case(
            "triangles",
            normal((70, 1090)),
            lambda t, x: t.triu(x, 1) * 2 + t.tril(x, -3),
            _lists(
                lambda rows: [
                    [v * 2 if j >= i + 1 else v if j <= i - 3 else 0.0 for j, v in enumerate(row)]
                    for i, row in enumerate(rows)
                ]
            ),
            1e-6,
        ),
        Case(
            "different ones",
            integers(0, 500, (3000,)),
            lambda t, x: t.unique(x),
            _lists(lambda xs: sorted(set(xs))),
            0.0,
        ),
    ),
    "shapes": (
        Case(
            "reflected at the ends",
            normal((2, 4500)),
            lambda t, x: t.nn.functional.pad(x[None], (40, 30), mode="reflect")[0],
            references.by_row(_reflected),
            0.0,
        ),
        Case(
            "zeros at the ends",
            normal((2, 4500)),
            lambda t, x: t.nn.functional.pad(x, (3, 5), value=0.5),
            references.by_row(lambda row: [0.5] * 3 + row + [0.5] * 5),
            0.0,
        ),
        Case(
            "backwards", normal((3, 3500)), lambda t, x: t.flip(x, (-1,)), references.by_row(lambda row: row[::-1]), 0.0
        ),
        Case(
            "turned",
            normal((3, 3500)),
            lambda t, x: t.roll(x, 13, dims=-1),
            references.by_row(lambda row: row[-13:] + row[:-13]),
            0.0,
        ),
        Case(
            "joined",
            normal((3, 3500), (3, 41)),
            lambda t, x, y: t.cat([x, y, x], dim=-1),
            references.by_row(lambda x, y: x + y + x),
            0.0,
        ),
        Case(
            "stacked",
            normal((3, 3500), (3, 3500)),
            lambda t, x, y: t.stack([x, y], dim=1),
            references.by_row(lambda x, y: [x, y]),
            0.0,
        ),
        Case("repeated", normal((3, 1070)), lambda _t, x: x.repeat(1, 4), references.by_row(lambda row: row * 4), 0.0),
        Case(
            "each repeated",
            normal((3, 1070)),
            lambda t, x: t.repeat_interleave(x, 4, dim=-1),
            references.by_row(lambda row: [v for v in row for _ in range(4)]),
            0.0,
        ),
        Case(
            "frames added where they lie",
            normal((1, 8, 50)),
            lambda t, x: t.nn.functional.fold(x, (1, 2 * 49 + 8), (1, 8), stride=(1, 2)).flatten(),
            lambda t, x: t.tensor(
                [sum(x[0, j, i].item() for j in range(8) for i in range(50) if 2 * i + j == k) for k in range(106)]
            ),
            1e-5,
        ),
        Case(
            "transposed and laid out anew",
            normal((70, 1130)),
            lambda _t, x: x.t().contiguous(),
            _lists(lambda rows: [list(one) for one in zip(*rows, strict=True)]),
            0.0,
        ),
    ),
    "ranges": (
        Case(
            "counted",
            nothing(5000),
            lambda t, x: t.arange(3, 15003, 3, device=x.device),
            lambda t, _x: t.tensor(list(range(3, 15003, 3))),
            0.0,
        ),
        Case(
            "evenly spaced",
            nothing(2001),
            lambda t, x: t.linspace(-2, 3, 2001, device=x.device),
            lambda t, _x: t.tensor([-2 + 5 * k / 2000 for k in range(2001)]),
            1e-5,
        ),
        Case(
            "of one number, and the unit matrix",
            nothing(30),
            lambda t, x: t.full((30, 30), 0.25, device=x.device) + t.eye(30, device=x.device) + t.ones_like(x),
            lambda t, _x: t.tensor([[2.25 if i == j else 1.25 for j in range(30)] for i in range(30)]),
            1e-6,
        ),
        Case(
            "crossed",
            normal((30,), (41,)),
            lambda t, x, y: [one.contiguous() for one in t.meshgrid(x, y, indexing="ij")],
            lambda _t, x, y: [x[:, None].expand(30, 41).double(), y[None, :].expand(30, 41).double()],
            0.0,
        ),
        Case(
            "places among the sorted",
            normal((3000,)),
            lambda t, x: t.searchsorted(t.linspace(-2, 2, 65, device=x.device), x),
            references.by_number(lambda x: sum(-2 + k / 16 < x for k in range(65))),
            0.0,
        ),
    ),
    "topk": (
        _topk("16 of 4096", 16, 64, 4096),
        _topk("50 of 30001", 50, 2, 30001),
        _topk("1 of 1025", 1, 30, 1025),
    ),
    "sort": (
        Case("200", normal((8, 200)), _sorted, _best_by_sorting(200), 1e-6),
        Case("5001", normal((2, 5001)), _sorted, _best_by_sorting(5001), 1e-6),
        Case(
            "places",
            normal((4, 1700)),
            lambda t, x: t.argsort(x, dim=-1),
            references.by_row(lambda row: sorted(range(len(row)), key=lambda k: row[k])),
            0.0,
        ),
    ),
}
