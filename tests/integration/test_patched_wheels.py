"""Patched distributions in locks: the lock names our wheel and what it is made from, and is refused where that differs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from conftest import Said
from miniature import World
from patched_alpha import CASES, PATCH, RULE, alpha_of, declare, edit, lock_file, lock_of, platform_name, sha256_of

from patchlock.model import lockfile

Face = Callable[..., Said]


def test_lock_names_our_wheel_and_what_it_is_made_from(patched: World) -> None:
    alpha = alpha_of(patched)
    original = patched.wheels / "alpha-1.0-py3-none-any.whl"
    assert alpha.original is not None
    assert (str(alpha.original.version), alpha.original.sha256) == ("1.0", sha256_of(original))
    assert alpha.original.patches == ("says-so",)
    assert str(alpha.version).startswith("1.0+patchlock.")
    text = lock_file(patched).read_text()
    assert f"\nalpha=={alpha.version} --hash=sha256:{alpha.sha256} # requirements.txt:2" in text
    assert f'# [patched.alpha]\n# version = "1.0"\n# sha256 = "{alpha.original.sha256}"\n' in text
    assert "# `patchlock patch wheel alpha --version 1.0 --output wheels`\n" in text
    assert lockfile.render(lock_of(patched)) == text


def test_lock_is_fresh_and_the_same_again(patched: World, face: Face) -> None:
    before = lock_file(patched).read_bytes()
    assert face("lock", "mini", "--platform", platform_name()).returncode == 0
    assert lock_file(patched).read_bytes() == before
    said = face("lock", "mini", "--check", "--platform", platform_name())
    assert (said.returncode, "fresh" in said.stdout) == (0, True), said.stdout


def test_lock_without_the_rule_has_no_word_of_it(locked: World) -> None:
    assert "patched" not in lock_file(locked).read_text()


@pytest.mark.parametrize("file", ["patch.toml", "cases.py"])
def test_change_of_the_patches_makes_the_lock_stale(patched: World, face: Face, file: str) -> None:
    path = patched.catalogue / "patches" / "distributions" / "alpha" / file
    path.write_text(path.read_text() + "# seen\n")
    said = face("lock", "mini", "--check", "--platform", platform_name())
    assert said.returncode == 1
    assert f"stale      patches/distributions/alpha/{file} has changed since the lock was made" in said.stdout


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (
            ("old = '__version__ = \"1.0\"'", "old = 'nowhere'"),
            "it finds nothing to change there, and what it promises does not hold: the text `patched` is missing",
        ),
        (('versions = ">=1,<3"', 'versions = "<1"'), "the patches of alpha are for <1, not for 1.0"),
        (('name = "alpha"\nwhy', 'name = "delta"\nwhy'), 'there is no patch for a distribution "delta"'),
        (('name = "alpha"\nwhy', 'name = "alhpa"\nwhy'), 'did you mean "alpha"?'),
    ],
    ids=["patches that do not hold", "another version", "unknown", "misspelt"],
)
def test_lock_is_refused_where_the_patches_cannot_be_had(
    locked: World, face: Face, change: tuple[str, str], detail: str
) -> None:
    path = declare(locked)
    edit(path if change[0] in path.read_text() else locked.app, *change)
    said = face("lock", "mini", "--platform", platform_name())
    assert said.returncode != 0
    assert detail in said.stdout + said.stderr


def test_distribution_that_nobody_asks_for_is_an_error(locked: World, face: Face) -> None:
    folder = declare(locked, rule=RULE.replace("alpha", "delta")).parent
    shutil.copytree(folder, folder.with_name("delta"))
    said = face("lock", "mini", "--platform", platform_name())
    assert "nobody asks for delta, which is to be patched (patches/mini/app.toml:" in said.stdout
    assert "remove that [[distribution]]" in said.stdout


def test_rule_for_another_profile_changes_nothing(locked: World, face: Face) -> None:
    before = lock_file(locked).read_text()
    (locked.catalogue / "profiles" / "other.toml").write_text(locked.profile.read_text())
    declare(locked, rule=RULE + 'profiles = ["other"]\n')
    assert face("lock", "mini", "--profile", "tiny", "--platform", platform_name()).returncode == 0
    lines = lambda text: [line for line in text.splitlines() if not line.startswith("#")]  # noqa: E731
    assert lines(lock_file(locked).read_text()) == lines(before)
    assert "distributions/alpha" not in lock_file(locked).read_text()


@pytest.mark.parametrize(
    ("text", "cases", "told"),
    [
        (PATCH, "import alpha\n\ndef case_fixed():\n    alpha.__version__\n", "alpha 1.0 has it fixed upstream"),
        (PATCH.replace(">=1,<3", "<1").replace('"2.5"', '"1.0"'), CASES, "alpha 1.0 enters as it is: fixed upstream"),
    ],
    ids=["by its cases", "beyond the range"],
)
def test_fixed_upstream_enters_as_it_is_and_that_is_told(
    locked: World, face: Face, text: str, cases: str, told: str
) -> None:
    declare(locked, text=text, cases=cases)
    said = face("lock", "mini", "--platform", platform_name())
    assert (said.returncode, told in said.stdout + said.stderr) == (0, True), said.stdout + said.stderr
    assert (str(alpha_of(locked).version), alpha_of(locked).original) == ("1.0", None)


def test_diff_and_why_say_what_was_patched(patched: World, face: Face) -> None:
    alpha = alpha_of(patched)
    assert alpha.original is not None
    said = face("why", "mini", "alpha", "--profile", "tiny").stdout
    assert f"made on each machine from alpha 1.0, sha256 {alpha.original.sha256}" in said
    assert "patches/distributions/alpha/patch.toml: says-so" in said
    data = json.loads(face("why", "mini", "alpha", "--profile", "tiny", "--json").stdout)["data"]["patched"]
    assert (data["version"], data["patches"], data["why"]) == ("1.0", ["says-so"], ["it must say that it is patched"])
    patched.app.write_text(patched.app.read_text().replace(RULE, ""))
    said = face("lock", "mini", "--diff", "--platform", platform_name()).stdout
    assert f"{alpha.version} → 1.0" in said
    assert "patched by says-so → as upstream made it" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('# [patched.delta]\n# version = "1"\n# sha256 = "0"\n# patches = []\n', "what delta is patched from"),
        ('# [patched.alpha]\n# version = "one"\n# sha256 = "0"\n# patches = []\n', "a value of the wrong kind"),
        ("# patched = 3\n", "a value of the wrong kind"),
        ('# [patched.alpha]\n# version = "1"\n', 'lacks the key "sha256"'),
    ],
    ids=["no line", "no version", "no table", "no hash"],
)
def test_damaged_table_of_originals_is_refused(locked: World, text: str, says: str) -> None:
    whole = lock_file(locked).read_text()
    with pytest.raises(lockfile.LockFormatError, match=says):
        lockfile.parse(
            whole.replace("# format = 1\n", "# format = 1\n" + text * text.startswith("# p")).replace(
                "# [inputs]", text * text.startswith("# [") + "# [inputs]"
            ),
            "lock",
        )
