"""What reads sequences: recurrent networks, also of many sequences at once, and attention, with masks and without."""

from typing import Any

from . import references
from .case import Case, Function
from .inputs import mask, normal, together, weights


def _network(name: str, size: int, **how: Any) -> Function:
    def run(t: Any, x: Any, *given: Any) -> Any:
        layers = {"lstm": t.nn.LSTM, "gru": t.nn.GRU}[name](size, size, batch_first=True, **how).to(x.device)
        for own, one in zip(layers.parameters(), given, strict=True):
            own.data.copy_(one)
        return layers(x)[0]

    return run


def _sdpa(**how: Any) -> Function:
    def run(t: Any, q: Any, k: Any, v: Any, *masks: Any) -> Any:
        given = {"attn_mask": masks[0]} if masks else {}
        return t.nn.functional.scaled_dot_product_attention(q, k, v, **given, **how)

    return run


def _attending(name: str, shape: "tuple[int, ...]", *, kind: str = "float32", causal: bool = False) -> Case:
    tolerance = {"float32": 1e-3, "float16": 2e-2, "bfloat16": 5e-2}[kind]
    run, want = _sdpa(is_causal=True) if causal else _sdpa(), references.attention(causal=causal)
    return Case(name, normal(shape, shape, shape, kind=kind), run, want, tolerance)


def _heads(t: Any, x: Any, inward: Any, bias: Any, outward: Any, last: Any) -> Any:
    return t.nn.functional.multi_head_attention_forward(
        x, x, x, x.shape[-1], 4, inward, bias, None, None, False, 0.0, outward, last, False, None, False
    )[0]


KERNELS: "dict[str, tuple[Case, ...]]" = {
    "sdpa": (
        _attending("128, causal", (4, 8, 128, 64), causal=True),
        _attending("1100 of one head", (1, 1, 1100, 32)),
        _attending("200, causal, a batch of 1", (1, 6, 200, 96), causal=True),
    ),
    "sdpa-mask": (
        Case("hidden keys", mask, _sdpa(), references.attention()),
        Case("numbers added", normal(*[(2, 4, 90, 32)] * 3, (2, 1, 90, 90)), _sdpa(), references.attention()),
    ),
    "sdpa-f16": (
        _attending("128, causal", (2, 4, 128, 64), kind="float16", causal=True),
        _attending("1100 of one head", (1, 1, 1100, 64), kind="float16"),
    ),
    "sdpa-bf16": (_attending("96", (2, 4, 96, 64), kind="bfloat16"),),
    "multihead-attention": (
        Case(
            "4 heads",
            together(
                normal((60, 2, 64)),
                normal((192, 64), scale=0.2),
                normal((192,), scale=0.1),
                normal((64, 64), scale=0.2),
                normal((64,), scale=0.1),
            ),
            _heads,
            references.heads(4),
        ),
    ),
    "lstm": (
        Case("2 layers", weights(64, 4, 2, 1, 4, 32), _network("lstm", 64, num_layers=2), references.long_memory),
        Case(
            "both ways",
            weights(96, 4, 1, 2, 2, 50),
            _network("lstm", 96, bidirectional=True),
            references.long_memory_both_ways,
        ),
    ),
    "lstm-many": (
        Case("130 sequences", weights(48, 4, 1, 1, 130, 12), _network("lstm", 48), references.long_memory),
        Case(
            "515 sequences, both ways",
            weights(32, 4, 1, 2, 515, 6),
            _network("lstm", 32, bidirectional=True),
            references.long_memory_both_ways,
        ),
    ),
    "gru": (
        Case(
            "both ways",
            weights(64, 3, 1, 2, 4, 40),
            _network("gru", 64, bidirectional=True),
            references.gated_both_ways,
        ),
        Case(
            "130 sequences, both ways",
            weights(32, 3, 1, 2, 130, 8),
            _network("gru", 32, bidirectional=True),
            references.gated_both_ways,
        ),
    ),
}
