"""The op `device-literals`: a file takes the machine's device instead of CUDA, and calls nothing that fails there."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import lru_cache

from patchlock.model.patch import Located, OutcomeKind, Refusal
from patchlock.model.text_files import SourceText, splice
from patchlock.patches.ops._device import calls
from patchlock.patches.ops._device.for_ctranslate2 import only_for_ctranslate2
from patchlock.patches.ops._device.guards import KINDS, Bindings, bindings_of, guards_of
from patchlock.patches.ops._device.search import Found, Search
from patchlock.patches.ops._device.walk import Lines, Walk
from patchlock.patches.ops.syntax import Module, nodes_of, parse, parse_anew, same

_DEVICE = re.compile(r"([a-z]+)(:\d+)?")


@dataclass(frozen=True, kw_only=True)
class DeviceLiterals:
    """Make a file choose the machine's device where it assumes CUDA, and guard what fails without CUDA.

    Attributes:
        device: what PyTorch calls the machine's device: `cpu`, `privateuseone:0`, `xpu`, `mps`. ROCm and ZLUDA are
            `cuda`, for which there is nothing to do.
        always: also where the file takes CUDA only after it has asked whether CUDA is there; for machines that have
            CUDA, or something like it, and shall not use it.
        precision: `single` turns half precision (`.half()`, `torch.float16`, `compute_type="float16"`) into single, as
            the CPU bears half precision badly, but not what is only stored in it; empty: leave it.
        providers: what takes the place of ONNX Runtime's provider lists with `CUDAExecutionProvider`; empty: nothing.

    Raises:
        ValueError: a field is not what it should be; one clause.
    """

    device: str = "cpu"
    always: bool = False
    precision: str = ""
    providers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = _DEVICE.fullmatch(self.device)
        if not found or found[1] not in KINDS:
            raise ValueError(f"`{self.device}` is not a device of PyTorch")
        if found[1] == "cuda":
            raise ValueError("`cuda` is what the files assume already")
        if self.precision not in {"", "single"}:
            raise ValueError(f"the precision is `single` or nothing, not `{self.precision}`")
        if any(not name.endswith("ExecutionProvider") for name in self.providers):
            raise ValueError("a name of an execution provider ends in `ExecutionProvider`")
        if "CUDAExecutionProvider" in self.providers:
            raise ValueError("`CUDAExecutionProvider` is what the files assume already")

    def lines(self, source: SourceText) -> frozenset[int]:
        """Give all lines of which `locate` may tell; what it does tell takes a proof, and so more than twice the time.

        What is settled does not count.
        """
        module = parse(source)
        if isinstance(module, Refusal):
            return frozenset({module.line})
        try:
            found = _searched(self, module)
        except RecursionError:
            return frozenset({1})
        return frozenset([*(change.node.lineno for change in found.changes), *(one.line for one in found.refusals)])

    def locate(self, source: SourceText) -> Located:
        """Find what asks for CUDA; what runs only where CUDA is there, or is no device, is settled."""
        module = parse(source)
        if isinstance(module, Refusal):
            return Located(refusals=(module,))
        try:
            return self._checked(module, _searched(self, module))
        except RecursionError:
            why = "it is nested too deeply to be read"
            return Located(refusals=(Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why=why),))

    def search(self, module: Module) -> Found:
        """Find it in a parsed file, without a proof.

        Raises:
            RecursionError: the file is nested too deeply.
        """
        kind = self.device.partition(":")[0]
        bindings, names = _known(module)
        absent = guards_of(bindings, kind)
        unchosen = dataclasses.replace(absent, is_absent=False)
        search = Search(
            module=module,
            device=self.device,
            always=self.always,
            precision=self.precision,
            providers=self.providers,
            guards=absent,
            names=names,
            foreign=only_for_ctranslate2(module.tree, names) if kind != "cpu" else frozenset(),
        )
        lines = Lines(
            module.source.text, absent.flags | absent.counts | names.functions.keys() | names.cuda_or_cpu.keys()
        )
        for spot in Walk(absent=absent, unchosen=unchosen, lines=lines).spots(module.tree):
            search.look(spot)
        search.finish()
        return search.found

    def _checked(self, module: Module, found: Found) -> Located:
        """Prove that the edits give the tree that is meant, and that nothing is found in it again."""
        sites = tuple(module.site(change.node) for change in found.changes)
        edits = tuple(edit for change in found.changes for edit in change.edits)
        settled = tuple(map(module.site, found.settled))
        refusals = tuple(found.refusals)
        if edits:
            try:
                after = parse_anew(splice(module.source, edits))
            except ValueError:
                after = Refusal(line=1, kind=OutcomeKind.AMBIGUOUS, why="")
            meant = {id(change.node): change.meant for change in found.changes}
            if isinstance(after, Refusal) or not same(module.tree, after.tree, meant):
                why = f"`{self.device}` cannot be used there as it is"
            elif (again := self.search(after)).changes:
                why = "there is more to do after it was done"
            else:
                rest = Located(settled=tuple(map(after.site, again.settled)), refusals=tuple(again.refusals))
                companions = frozenset(one.node.lineno for one in found.changes if one.is_companion)
                return Located(
                    edits=edits, sites=sites, companions=companions, settled=settled, refusals=refusals, after=rest
                )
            refusals += (Refusal(line=sites[0].line, kind=OutcomeKind.AMBIGUOUS, why=why),)
            return Located(settled=settled, refusals=refusals)
        return Located(settled=settled, refusals=refusals)


@lru_cache(maxsize=16)
def _searched(op: DeviceLiterals, module: Module) -> Found:
    """Search a file once for `lines` and `locate`; the answer is never changed."""
    return op.search(module)


@lru_cache(maxsize=16)
def _known(module: Module) -> tuple[Bindings, calls.Names]:
    """Read what a file binds once for all devices that it is looked at for."""
    nodes = nodes_of(module.tree)
    return bindings_of(nodes), calls.names_of(nodes)
