"""What LangSegment must have for those who import it.

Each `case_` fails where the patch is needed; each `control_` gives the same value before and after.
"""

import importlib.util
from pathlib import Path


def case_filters_are_kept() -> None:
    import LangSegment

    LangSegment.setfilters(["en", "zh"])
    assert LangSegment.getfilters() == ["en", "zh"]


def case_class_is_there() -> None:
    from LangSegment import LangSegment

    assert LangSegment.setfilters


def control_names() -> list[str]:
    folder = Path(importlib.util.find_spec("LangSegment").origin).parent
    spec = importlib.util.spec_from_file_location("inner", folder / "LangSegment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return sorted(name for name, value in vars(module).items() if getattr(value, "__module__", "") == "inner")
