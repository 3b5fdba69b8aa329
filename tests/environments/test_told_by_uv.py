"""What uv says while it fills an environment, as a person hears it."""

from __future__ import annotations

from patchlock.environments import fill


def test_what_uv_does_is_told_as_what_it_is() -> None:
    told: list[str] = []
    tell = fill._of_uv(told.append)
    for line in ("Downloading av (34.1MiB)", "Building jieba==0.42.1", "warning: x", "Downloaded av (34.1MiB)"):
        tell(f"   {line}")
    tell("   Built jieba==0.42.1")
    assert told == [
        "downloading av (34.1MiB)",
        "downloading av (34.1MiB); building jieba==0.42.1",
        "building jieba==0.42.1",
        "unpacking",
    ]
