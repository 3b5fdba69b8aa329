"""The op device-literals and half precision: what is only stored in it stays, what is computed in it becomes single."""

from __future__ import annotations

import pytest
from applied_ops import locate, patched
from test_device_literals import PATH, SINGLE, ensure_of

STORED = [
    pytest.param('a = x.to(dtype=torch.float16, device="cpu").numpy()\n', id="array"),
    pytest.param("a = x.cpu().half().numpy()\n", id="array-from-the-cpu"),
    pytest.param("a = x.half().detach().cpu().numpy().tobytes()\n", id="bytes"),
    pytest.param("def f(x):\n    return x.half().cpu()\n", id="then-on-the-cpu"),
    pytest.param("kept.append(x.detach().cpu().to(torch.float16))\n", id="on-the-cpu-before"),
    pytest.param("x = x.cpu().half()\ny = x + 1\n", id="on-the-cpu-under-a-name"),
    pytest.param("torch.save(x.half(), p)\n", id="file"),
    pytest.param("torch.save({k: v.half() for k, v in d.items()}, p)\n", id="file-of-a-mapping"),
    pytest.param('torch.save({"model": dict(a=x.half())}, p)\n', id="file-of-mappings"),
    pytest.param("torch.save(m.half().state_dict(), p)\n", id="state"),
    pytest.param("m.half().save_pretrained(p)\n", id="folder-of-a-model"),
    pytest.param("np.savez(p, a=x.type(torch.half))\n", id="archive"),
    pytest.param("x = x.half()\nsave_file(x, p)\n", id="file-by-a-name"),
    pytest.param("m = m.half() if small else m\ntorch.save(m.state_dict(), p)\n", id="state-by-a-name"),
    pytest.param("s = {k: v.half() for k, v in s.items()}\nprint(len(s))\ntorch.save(s, p)\n", id="mapping-by-a-name"),
    pytest.param('o = {}\no["w"] = {}\nfor k in a:\n    o["w"][k] = a[k].half()\ntorch.save(o, p)\n', id="filled"),
    pytest.param("for k, v in m.state_dict().items():\n    s[k] = v.half()\n", id="copy-of-a-state-in-a-loop"),
    pytest.param("s = {k: v.half() for k, v in m.state_dict().items()}\n", id="copy-of-a-state"),
    pytest.param(
        "def f(m, half):\n    dtype = torch.half if half else None\n"
        "    return {k: v.data.to(device='cpu', dtype=dtype) for k, v in m.state_dict().items()}\n",
        id="type-by-a-name",
    ),
]


@pytest.mark.parametrize("text", STORED)
def test_what_is_stored_stays_in_half_precision(text: str) -> None:
    assert not locate(SINGLE, text).sites
    assert not ensure_of(SINGLE).problems(PATH, text.encode())


COMPUTED = [
    pytest.param("m.half().to(device)\n", "m.float().to(device)\n", id="moved"),
    pytest.param('m = m.half().to("cpu")\n', 'm = m.float().to("cpu")\n', id="moved-to-what-was-cuda"),
    pytest.param("m = m.cpu().half().to(device)\n", "m = m.cpu().float().to(device)\n", id="moved-from-the-cpu"),
    pytest.param("y = x.cpu().half()[0].to(d)\n", "y = x.cpu().float()[0].to(d)\n", id="moved-in-part"),
    pytest.param("y = m(x.half()).cpu().numpy()\n", "y = m(x.float()).cpu().numpy()\n", id="only-its-result-is-stored"),
    pytest.param("torch.save(m(x.half()), p)\n", "torch.save(m(x.float()), p)\n", id="only-its-result-goes-to-a-file"),
    pytest.param(
        "self.m = m.half().cpu()\nself.m.to(d)\n", "self.m = m.float().cpu()\nself.m.to(d)\n", id="moved-by-its-name"
    ),
    pytest.param(
        "x = x.half()\ny = m(x)\ntorch.save(x, p)\n", "x = x.float()\ny = m(x)\ntorch.save(x, p)\n", id="used-before"
    ),
    pytest.param(
        "while t:\n    y = m(x)\n    x = y.half()\n    torch.save(x, p)\n",
        "while t:\n    y = m(x)\n    x = y.float()\n    torch.save(x, p)\n",
        id="used-in-the-next-turn",
    ),
    pytest.param(
        "t = torch.half\nm = m.to(t)\nnp.save(p, x.to(t).numpy())\n",
        "t = torch.float32\nm = m.to(t)\nnp.save(p, x.to(t).numpy())\n",
        id="type-of-both",
    ),
    pytest.param(
        "while t:\n    a = b.half()\n    b = a\n", "while t:\n    a = b.float()\n    b = a\n", id="names-in-a-circle"
    ),
    pytest.param("b = {k: v.half() for k, v in b.items()}\ny = m(**b)\n",
                 "b = {k: v.float() for k, v in b.items()}\ny = m(**b)\n", id="mapping-of-inputs"),
    pytest.param("s = {k: v.to(d, torch.half) for k, v in m.state_dict().items()}\n",
                 "s = {k: v.to(d, torch.float32) for k, v in m.state_dict().items()}\n", id="state-on-the-device"),
    pytest.param("j = j.half()\ntorch.jit.save(j, p)\n", "j = j.float()\ntorch.jit.save(j, p)\n", id="program"),
    pytest.param("p = P.from_pretrained(n, torch_dtype=torch.float16).cpu()\n",
                 "p = P.from_pretrained(n, torch_dtype=torch.float32).cpu()\n", id="loaded"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), COMPUTED)
def test_what_is_computed_becomes_single(before: str, after: str) -> None:
    assert patched(SINGLE, before.encode()).decode() == after
    assert ensure_of(SINGLE).problems(PATH, before.encode())
