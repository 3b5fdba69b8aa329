"""The patch for one line of a requirement file; pure."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName

from patchlock.catalogue.authoring.assembly import Written
from patchlock.catalogue.authoring.drafts import Draft, ensures, op, slug
from patchlock.catalogue.proposals.findings import Finding, ProposedPatch
from patchlock.model.text_files import SourceText
from patchlock.patches import requirement_sources
from patchlock.patches.pip_requirements import Line, RequirementLine

_ITEM = re.compile(r"(\s*-\s+)\S")
"""What stands before a YAML list's item that has a line of its own."""


@dataclass(frozen=True, kw_only=True)
class MissingModule:
    """A top-level module that is not there on some profiles any more."""

    name: str
    why: str
    """A clause."""
    profiles: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Repair:
    """One line, what is wrong with it, and what is proposed."""

    kind: str
    finding: Finding
    section: ProposedPatch | None = None
    module: MissingModule | None = None
    remark: str = ""
    name: NormalizedName | None = None
    """Of the distribution, where the line says it."""


@dataclass(frozen=True, kw_only=True)
class LinePatcher:
    """Makes the patches of one line of a requirement file."""

    source: SourceText
    line: Line
    finding: Finding
    link: str

    def dropped(self, kind: str, comment: str, *, remark: str = "") -> Repair:
        """Take the line out of its file."""
        if self._raw() is None:
            return Repair(kind=kind, finding=self.finding, remark=remark or f"{self.finding}: edit this line by hand")
        return self._text(kind, "", comment, remark)

    def replaced(self, kind: str, name: NormalizedName, comment: str, *, remark: str = "") -> Repair:
        """Write the name of a distribution in the place of the line."""
        if self._raw() is None:
            return Repair(kind=kind, finding=self.finding, remark=remark or f"{self.finding}: edit this line by hand")
        return self._text(kind, name, comment, remark)

    def _raw(self) -> str | None:
        """Give the line as it stands in its file; None where it shares a line with others, or its list has no other."""
        text = self.source.text.replace("\r\n", "\n").replace("\r", "\n")
        if requirement_sources.is_pip(self.finding.path):
            span = self.source.text[self.line.span.start : self.line.span.end]
            return span.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.splitlines(keepends=True)
        found = _ITEM.match(lines[self.line.line - 1]) if self.line.line <= len(lines) else None
        beside = lines[self.line.line - 2 : self.line.line - 1] + lines[self.line.line : self.line.line + 1]
        is_yaml = self.finding.path.suffix in {".yml", ".yaml"}
        if not is_yaml or found is None or not any(one.startswith(found[1]) for one in beside):
            return None
        return lines[self.line.line - 1]

    def _text(self, kind: str, new: str, comment: str, remark: str) -> Repair:
        text = self.source.text.replace("\r\n", "\n").replace("\r", "\n")
        raw = self._raw() or ""
        item = "" if requirement_sources.is_pip(self.finding.path) else (_ITEM.match(raw) or ["", ""])[1]
        whole = raw.strip("\n")
        fields = {"old": raw if not new else whole, "new": f"{item}{new}" if new else ""}
        if not new and not raw.endswith("\n") and f"\n{raw}" in text:
            fields = {"old": f"\n{raw}", "new": ""}
        check = ("lacks", {"text": whole.strip()})
        return self._repair(kind, "replace-text", f"no-{kind}-{self.line.line}", fields, comment, check, remark=remark)

    def set(
        self, kind: str, name: NormalizedName, specifier: SpecifierSet, comment: str, *, remark: str = ""
    ) -> Repair:
        """Give the distribution another specifier, and no address."""
        fields: dict[str, object] = {"name": name, "specifier": specifier}
        word = f"{name}-of-the-index"
        if marker := self._own_marker():
            fields, word = fields | {"marker": marker}, f"{word}-{self.line.line}"
        return self._repair(kind, "set-requirement", word, fields, comment, ("requirement", fields), remark=remark)

    def _own_marker(self) -> str:
        every = [one for one in requirement_sources.lines(self.source) if isinstance(one, RequirementLine)]
        if not isinstance(self.line, RequirementLine):
            return ""
        return requirement_sources.own_marker(self.line.requirement, [one.requirement for one in every])

    def without(
        self,
        kind: str,
        name: NormalizedName,
        comment: str,
        *,
        remark: str = "",
        profiles: tuple[str, ...] = (),
        module: MissingModule | None = None,
    ) -> Repair:
        """Take the distribution out of the file, for some profiles or all."""
        fields: dict[str, object] = {"name": name}
        check = ("no-requirement", fields)
        made = self._repair(kind, "drop-requirement", f"no-{name}", fields, comment, check, profiles, remark=remark)
        return dataclasses.replace(made, module=module, name=name)

    def without_key(self, kind: str, key: str, comment: str) -> Repair:
        """Take a key of a TOML file out of it."""
        fields = {"key": tuple(key.split("."))}
        word = f"no-{key.removeprefix('tool.')}"
        return self._repair(kind, "delete-key", word, fields, comment, ("no-key", fields))

    def renamed(
        self,
        kind: str,
        name: NormalizedName,
        to: Requirement,
        profiles: tuple[str, ...],
        *,
        comment: str,
        remark: str = "",
    ) -> Repair:
        """Take another distribution, on some profiles or all."""
        fields: dict[str, object] = {"name": name, "to": to}
        check: tuple[str, dict[str, object]] = ("no-requirement", {"name": name})
        return self._repair(
            kind, "rename-requirement", f"{to.name}-for-{name}", fields, comment, check, profiles, remark=remark
        )

    def _repair(
        self,
        kind: str,
        op_name: str,
        word: str,
        fields: Mapping[str, object],
        comment: str,
        check: tuple[str, Mapping[str, object]],
        profiles: tuple[str, ...] = (),
        *,
        remark: str = "",
    ) -> Repair:
        made = op(op_name, **fields)
        if made is None:
            raise ValueError(f"{op_name} does not take {fields}")  # a mistake of this module
        draft = Draft(op_name=op_name, op=made, slug=slug(word), ensures=ensures((check[0], dict(check[1]))))
        patch = dataclasses.replace(
            draft.patch(draft.slug, [self.finding.path]),
            why=comment.rstrip(".")[:1].lower() + comment.rstrip(".")[1:],
            source=self.link,
            profiles=profiles,
        )
        section = ProposedPatch(comment=f"{self.finding}", written=Written(patch=patch, ensures=draft.ensures))
        return Repair(kind=kind, finding=self.finding, section=section, remark=remark)
