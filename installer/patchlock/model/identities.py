"""What names a commit, and the bytes of a file; apart from the other values, as every start of patchlock needs them."""

from __future__ import annotations

from typing import NewType

CommitId = NewType("CommitId", str)
"""40 lower-case hexadecimal digits."""
Sha256 = NewType("Sha256", str)
"""64 lower-case hexadecimal digits."""
