"""Which kernels are known to fail on a back end, as the catalogue says with sources; reads no file and runs nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from patchlock.catalogue.table_reader import Table, specifiers
from patchlock.model.backends import KERNELS
from patchlock.model.errors import nearest
from patchlock.model.kernel_results import KernelResult, Verdict


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """A kernel that is known not to work on a back end."""

    kernel: str
    outcomes: tuple[Verdict, ...]
    """What was seen of it; any other failure is a failure."""
    why: str
    source: str
    versions: SpecifierSet = dataclasses.field(default_factory=SpecifierSet)
    """Of torch, or of ONNX Runtime; empty: of all."""


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
    proofs: Iterable[KernelResult], expectations: Iterable[Expectation], version: str
) -> tuple[ComparedResult, ...]:
    """Put each proof beside what is expected of it.

    Args:
        proofs: of one library.
        expectations: of the back end.
        version: of the library; "" where nobody could say.
    """
    there = [one for one in expectations if _concerns(one, version)]
    return tuple(
        ComparedResult(proof=proof, expectation=next((one for one in there if one.kernel == proof.kernel), None))
        for proof in proofs
    )


def _concerns(expectation: Expectation, version: str) -> bool:
    try:
        return not version or expectation.versions.contains(Version(version).public, prereleases=True)
    except InvalidVersion:  # a build of somebody's own
        return True


def expectations(root: Table) -> tuple[Expectation, ...]:
    """Read the `[[expect]]` tables of a file of `profiles/expectations/`."""
    found: list[Expectation] = []
    words = {one.value: one for one in Verdict if one is not Verdict.WORKS}
    for table in root.tables("expect"):
        names = table.texts("outcomes")
        for name in names:
            if name not in words:
                table.problem("outcomes", f'there is no outcome "{name}" that is a failure', nearest(name, words))
        if table.has("outcomes") and not names:
            table.problem("outcomes", "it is empty")
        one = Expectation(
            kernel=table.text("kernel"),
            outcomes=tuple(words[name] for name in names if name in words),
            why=table.text("why"),
            source=table.text("source"),
            versions=table.parse("versions", specifiers, SpecifierSet(), ""),
        )
        if one.kernel and one.kernel not in KERNELS:
            table.problem("kernel", f'there is no kernel "{one.kernel}"', nearest(one.kernel, KERNELS))
        if any(one.kernel == other.kernel and one.versions == other.versions for other in found):
            table.problem("kernel", f'"{one.kernel}" is expected twice', "make one table of them")
        found.append(one)
        table.finish()
    return tuple(found)
