"""Gives the package index a README whose links lead to the repository, as relative ones lead nowhere there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_REPOSITORY = "https://github.com/patchlock/patchlock"


class ReadmeHook(MetadataHookInterface):
    """Writes the field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Take README.md, with a whole address in each link and picture."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        relative = r"(?!https?:|#)([^)\s]+)\)"
        text = re.sub(rf"(!\[[^\]]*\]\(){relative}", rf"\g<1>{_REPOSITORY}/raw/main/\g<2>)", text)
        text = re.sub(rf"(\]\(){relative}", rf"\g<1>{_REPOSITORY}/blob/main/\g<2>)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
