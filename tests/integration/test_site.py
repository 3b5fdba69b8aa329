"""The documentation's site: what its pages are made from is all there. `.ci/site` builds them, and refuses a broken link."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import make_pages
import plots
import pytest
from conftest import ROOT
from screen import Screen, plain, svg

from patchlock.catalogue import proofs
from patchlock.catalogue.reader import Catalogue
from patchlock.cli import COMMANDS

CATALOGUE = Catalogue(root=ROOT)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    make_pages.make(folder)
    return folder


def test_each_command_app_and_profile_has_a_page(site: Path) -> None:
    apps, profiles = CATALOGUE.read_all()
    pages = {path.stem for path in (site / "commands").iterdir()} - {"index"}
    assert {page.removesuffix("-command") for page in pages} <= set(COMMANDS)
    assert {"install", "run", "patch", "lock", "index-command"} <= pages
    assert {path.stem for path in (site / "catalogue").glob("*.md")} == {"index", *(app.name for app in apps)}
    assert {path.stem for path in (site / "catalogue" / "profiles").iterdir()} == {one.name for one in profiles}


def test_a_page_of_a_command_has_its_options_and_its_example(site: Path) -> None:
    text = (site / "commands" / "install.md").read_text(encoding="utf-8")
    assert "```sh\npatchlock install demo --profile cpu\n" in text
    assert "| `--profile PROFILE` |" in text
    assert "## patchlock patch apply\n" in (site / "commands" / "patch.md").read_text(encoding="utf-8")
    assert re.findall(r"^\|.*\|\s*\|$", text, re.MULTILINE) == []
    assert "| [`patch apply`](patch.md#patchlock-patch-apply) |" in (site / "commands" / "index.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("profile", "where"),
    [
        ("cpu", "the CPU"),
        ("rocm-linux", "rocm"),
        ("directml-onnx", "the CPU, with ONNX models on DmlExecutionProvider"),
    ],
)
def test_a_page_of_a_profile_says_what_computes(site: Path, profile: str, where: str) -> None:
    text = (site / "catalogue" / "profiles" / f"{profile}.md").read_text(encoding="utf-8")
    assert f"\n- Computes on: {where}\n" in text
    reports = [path.name for path in (ROOT / "profiles" / "proofs" / profile).glob("*.json")]
    assert ("\n## Proved on real machines\n\nNothing yet" in text) != bool(reports)
    assert all(f"/{name})" in text for name in reports)


def test_the_catalogue_says_why_a_pair_is_not_supported(site: Path) -> None:
    app = CATALOGUE.app("demo")
    refused = app.refusals[0]
    reason = refused.why.removesuffix(": use the profile cpu")
    row = f"| linux-x86_64 | {reason} | [source]({refused.source}) |"
    assert row in (site / "catalogue" / "demo.md").read_text(encoding="utf-8")
    text = (site / "catalogue" / "index.md").read_text(encoding="utf-8")
    assert f"| demo × {refused.profile} | {reason} | [source]({refused.source}) |" in text


def test_the_catalogue_says_what_an_app_is_known_to_fail_at(site: Path) -> None:
    (tried,) = CATALOGUE.app("xtts-webui").trials
    text = (site / "catalogue" / "xtts-webui.md").read_text(encoding="utf-8")
    links = ", ".join(f"[source]({one})" for one in tried.source.split("; "))
    assert f"| locked; fails in part: {tried.why} ({links}) |" in text
    assert "| fails in part |" in (site / "catalogue" / "index.md").read_text(encoding="utf-8")


def test_pages_of_apps_and_of_profiles_say_what_is_proved(site: Path) -> None:
    pages = site / "catalogue"
    (proof, *_) = [one for one in proofs.read(ROOT) if one.app == "rvc-python"]
    row = f"| linux-x86_64 | {proof.devices[0]} | locked · loads · computes · starts | {proof.date} | [report]("
    profile = pages / "profiles" / f"{proof.profile}.md"
    assert f"| [rvc-python](../rvc-python.md) {row}" in profile.read_text(encoding="utf-8")
    page = (pages / "rvc-python.md").read_text(encoding="utf-8")
    assert f"| [{proof.profile}](profiles/{proof.profile}.md) {row}" in page
    assert "\nNothing yet; the lockfiles" in (pages / "profiles" / "xpu-linux.md").read_text(encoding="utf-8")


def test_each_source_is_a_link_of_its_own(site: Path) -> None:
    for page in (site / "catalogue").rglob("*.md"):
        assert re.findall(r"\]\(https://[^)]*[; ]", page.read_text(encoding="utf-8")) == [], page.name


def test_every_error_has_a_heading_to_link_to(site: Path) -> None:
    codes = re.findall(r"^\| `([\w-]+)` \| \d+ \|", (ROOT / "docs" / "errors.md").read_text("utf-8"), re.MULTILINE)
    assert len(codes) > 20
    shown = (site / "errors.md").read_text(encoding="utf-8")
    assert [code for code in codes if f"\n## {code}\n" not in shown] == []


def test_every_page_of_the_navigation_is_made(site: Path) -> None:
    named = re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [name for name in named if not (site / name).is_file()] == []
    made = (site.parent / "zensical.toml").read_text(encoding="utf-8")
    assert '{ "patch" = "commands/patch.md" }' in made
    assert '{ "demo" = "catalogue/demo.md" }' in made


def test_a_search_does_not_find_decisions(site: Path) -> None:
    hidden = [
        path for path in site.rglob("*.md") if path.read_text("utf-8").startswith("---\nsearch:\n  exclude: true\n")
    ]
    assert set(hidden) == set((site / "decisions").iterdir())


def test_no_page_of_the_docs_is_left_out_of_their_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    folders = {path.name for path in (ROOT / "docs").iterdir() if (path / "README.md").is_file()}
    there = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in folders]
    assert [
        path for path in there if path.relative_to(ROOT / "docs").as_posix() not in index and path.name != "README.md"
    ] == []
    assert [folder for folder in folders if f"({folder}/README.md)" not in index] == []


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[a](install.md#update)", "[a](../install.md#update)"),
        ("[a](../CONTRIBUTING.md)", "[a](../contributing.md)"),
        ("[a](formats/README.md)", "[a](../formats/index.md)"),
        ("[a](formats)", "[a](../formats/index.md)"),
        ("[a](../profiles/cpu.toml)", f"[a]({make_pages.REPOSITORY}/blob/main/profiles/cpu.toml)"),
        ("[a](../patches/demo)", f"[a]({make_pages.REPOSITORY}/tree/main/patches/demo)"),
        ("![a](images/demo.svg)", "![a](../images/demo.svg)"),
        ("[a](https://a.test/b)", "[a](https://a.test/b)"),
        (f"[a]({make_pages.SITE}catalogue/)", "[a](../catalogue/index.md)"),
        ("```\n[a](nowhere.md)\n```\n", "```\n[a](nowhere.md)\n```\n"),
    ],
)
def test_a_link_leads_to_the_page_or_to_the_repository(link: str, becomes: str) -> None:
    file = PurePosixPath("docs/use.md")
    assert make_pages.relinked(link, file, make_pages.pages() | {file: PurePosixPath("how/use.md")}) == becomes


def test_a_link_that_leads_nowhere_ends_it() -> None:
    file = PurePosixPath("docs/use.md")
    with pytest.raises(ValueError, match=r"^docs/use.md: the link nowhere.md leads nowhere$"):
        make_pages.relinked("[a](nowhere.md)", file, make_pages.pages())


def test_the_plots_have_every_row_of_their_reports(site: Path) -> None:
    shown = (site / "how-patches-survive.md").read_text(encoding="utf-8")
    report = (ROOT / "benchmarks" / "reports" / "survival.md").read_text(encoding="utf-8")
    rows = plots.table_below(report, "The same updates by three roads")
    assert len(rows) == 5
    for row in rows:
        for column in ("diff right", "ours right"):
            assert f">{float(row[column].split()[0]):g} %</text>" in shown
    assert "<svg" in (site / "benchmarks" / "index.md").read_text(encoding="utf-8")


# --- the recording ----------------------------------------------------------------------------------------------------


def test_a_screen_shows_what_a_terminal_would() -> None:
    screen = Screen()
    screen.write("one\r\n\x1b[32m*\x1b[0m two 0:01\r\x1b[2K\x1b[32mok\x1b[0m two\r\nthree\r\n", 1.0)
    screen.write("\x1b[2A\x1b[2Kdone\r\n", 2.0)
    assert plain(screen) == ["one", "done", "three", ""]
    assert screen.changed[:3] == [1.0, 2.0, 1.0]


def test_the_picture_has_the_text_with_its_colours_and_no_markup_of_it() -> None:
    screen = Screen()
    screen.write("\x1b[1m$ a <b> & c\x1b[0m\r\n\x1b[32mok\x1b[0m", 0.5)
    picture = svg(screen, columns=20, title="x")
    assert 'font-weight="bold">$ a &lt;b&gt; &amp; c</tspan>' in picture
    assert 'fill="#7ee787">ok</tspan>' in picture


def test_the_readmes_picture_is_of_what_the_readme_says() -> None:
    shown = re.sub(r"<[^>]+>", "", (ROOT / "docs" / "images" / "demo.svg").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("./install.sh demo", "~/.local/share/patchlock/bin/patchlock run demo"):
        assert f"$ {command}\n" in shown
        assert f"\n{command}\n" in readme
    assert "demo is installed and verified on cpu" in shown
    assert "computed on: CPUExecutionProvider" in shown
    assert re.findall(r"/(?:root|home|tmp|Users)/\S*", shown) == []


def test_every_page_is_linked_and_in_the_navigation() -> None:
    overview = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    pages = [path.name for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "README.md"]
    assert [name for name in pages if f"]({name})" not in overview] == []
    assert [name for name in pages if f'"{name}"' not in navigation] == []
