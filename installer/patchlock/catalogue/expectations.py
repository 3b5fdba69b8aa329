"""Which kernels are known to fail on a back end, as the catalogue says with sources; reads no file and runs nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from patchlock.catalogue.table_reader import Table
from patchlock.model.backends import KERNELS
from patchlock.model.kernel_results import KernelResult, Verdict
from patchlock.model.table_fields import Filled, OneOf, Parsed

_FAILURES = tuple(one.value for one in Verdict if one is not Verdict.WORKS)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A kernel that is known not to work on a back end."""

    kernel: Annotated[str, OneOf('there is no kernel "{}"', KERNELS)]
    outcomes: Annotated[
        tuple[Verdict, ...], OneOf('there is no outcome "{}" that is a failure', _FAILURES), Parsed(Verdict), Filled()
    ]
    """What was seen of it; any other failure is a failure."""
    why: str
    source: str
    versions: SpecifierSet = dataclasses.field(default_factory=SpecifierSet)
    """Of torch, or of ONNX Runtime; empty: of all."""
    archs: tuple[str, ...] = ()
    """What the driver calls the device's architecture, such as `gfx1201`; empty: all."""


@dataclass(frozen=True, kw_only=True)
class ComparedResult:
    """A proof beside what was expected."""

    proof: KernelResult
    expectation: Expectation | None
    """None where the kernel was expected to work."""

    @property
    def is_failure(self) -> bool:
        """Whether it neither works nor fails as is known."""
        known = self.expectation.outcomes if self.expectation is not None else ()
        return self.proof.verdict is not Verdict.WORKS and self.proof.verdict not in known

    @property
    def is_better(self) -> bool:
        """Whether it works although it was expected not to."""
        return self.proof.verdict is Verdict.WORKS and self.expectation is not None


def compare_results(
    proofs: Iterable[KernelResult], expectations: Iterable[Expectation], version: str, arch: str = ""
) -> tuple[ComparedResult, ...]:
    """Put each proof beside what is expected of it.

    Args:
        proofs: of one library.
        expectations: of the back end.
        version: of the library; "" where nobody could say.
        arch: of the device; "" where it has none, or nobody could say.
    """
    family = arch.partition(":")[0]  # AMD's has features after it: gfx90a:sramecc+:xnack-
    there = [one for one in expectations if _concerns(one, version) and (not one.archs or family in one.archs)]
    return tuple(
        ComparedResult(proof=proof, expectation=_nearest(proof, [one for one in there if one.kernel == proof.kernel]))
        for proof in proofs
    )


def _nearest(proof: KernelResult, known: Sequence[Expectation]) -> Expectation | None:
    """Give the one that a failure is known by, or else any of its kernel."""
    return next((one for one in known if proof.verdict in one.outcomes), known[0] if known else None)


def _concerns(expectation: Expectation, version: str) -> bool:
    try:
        return not version or expectation.versions.contains(Version(version).public, prereleases=True)
    except InvalidVersion:  # a build of somebody's own
        return True


def expectations(root: Table) -> tuple[Expectation, ...]:
    """Read the `[[expect]]` tables of a file of `profiles/expectations/`."""
    found: list[Expectation] = []
    for table, one in root.rows("expect", Expectation):
        if any((one.kernel, one.versions, one.archs) == (other.kernel, other.versions, other.archs) for other in found):
            table.problem("kernel", f'"{one.kernel}" is expected twice', "make one table of them")
        found.append(one)
    return tuple(found)
