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
    # The search puts a title first that begins with what is looked for.
    assert "\n# install\n" in text
    assert "## patchlock patch apply\n" in (site / "commands" / "patch.md").read_text(encoding="utf-8")
    assert re.findall(r"^\|.*\|\s*\|$", text, re.MULTILINE) == []
    assert "| [`patch apply`](patch.md#patchlock-patch-apply) |" in (site / "commands" / "index.md").read_text("utf-8")


def test_a_page_of_a_profile_says_what_the_choice_on_a_machine_asks_for(site: Path) -> None:
    text = (site / "catalogue" / "profiles" / "xpu-linux.md").read_text(encoding="utf-8")
    assert "\n| Intel `bmg`, `lnl-m` | not in WSL2; the kernel must be 6.11 or later | " in text


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
    older = ", with an older lock" if proofs.is_of_older_lock(ROOT, proof) else ""
    row = f"| linux-x86_64 | {proof.devices[0]} | locked · loads · computes · starts | {proof.date}{older} | [report]("
    profile = pages / "profiles" / f"{proof.profile}.md"
    assert f"| [rvc-python](../rvc-python.md) {row}" in profile.read_text(encoding="utf-8")
    page = (pages / "rvc-python.md").read_text(encoding="utf-8")
    assert f"| [{proof.profile}](profiles/{proof.profile}.md) {row}" in page
    assert "\nNothing yet; the lockfiles" in (pages / "profiles" / "xpu-linux.md").read_text(encoding="utf-8")


def test_a_page_of_an_app_says_what_locked_means_and_where_an_option_exists(site: Path) -> None:
    text = (site / "catalogue" / "xtts-webui.md").read_text(encoding="utf-8")
    assert "\n*Locked*: its packages fit together, each with its sha256; that was checked without the machine." in text
    (row,) = re.findall(r"^\| `--with int8` \| .+ \| (.+) \|$", text, re.MULTILINE)
    names = ("cpu", "directml-vega", "zluda-rdna4")
    assert row == ", ".join(f"[{name}](profiles/{name}.md)" for name in names)


def test_a_page_of_a_profile_names_its_gpus(site: Path) -> None:
    pages = site / "catalogue" / "profiles"
    _, named, tried = re.split(r"\n## GPUs .*\n", (pages / "zluda-rdna4.md").read_text(encoding="utf-8"))
    assert "Radeon RX 9070 XT, " in named
    assert "Radeon RX 7600" in tried
    assert "Radeon RX 7600" not in named
    assert "GPUs of" not in (pages / "cpu.md").read_text(encoding="utf-8")


def test_each_code_of_doctor_has_a_heading_with_what_helps(site: Path) -> None:
    text = (site / "troubles" / "index.md").read_text(encoding="utf-8")
    troubles = CATALOGUE.troubles()
    assert [one.name for one in troubles if f"\n\n## {one.name}\n\n**" not in text] == []
    for one in troubles:
        section = text.partition(f"\n## {one.name}\n")[2].partition("\n## ")[0]
        assert [command for remedy in one.remedies for command in remedy.commands if command not in section] == []
        assert [source for source in one.sources if source not in section] == []


def test_each_page_has_a_description_of_its_own(site: Path) -> None:
    found = [re.search(r'^description: "(.+)"$', page.read_text("utf-8"), re.MULTILINE) for page in site.rglob("*.md")]
    assert len([one for one in found if one is None]) == 1, "the front page has the site's"
    words = [one[1] for one in found if one]
    assert len(set(words)) == len(words)
    assert make_pages.described("# A `b`\n\nC [d](e.md) *f*: g.h. I j.\n") == "A b. C d f: g.h."
    assert make_pages.described("# A\n\n| b |\n") == make_pages.described("# A\n\n```\nB\n") == "A."


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


def test_a_search_finds_what_to_do_and_no_decision_or_report(site: Path) -> None:
    hidden = {
        path for path in site.rglob("*.md") if path.read_text("utf-8").startswith("---\nsearch:\n  exclude: true\n")
    }
    folders = [site / name for name in ("decisions", "reports", "benchmarks")]
    reasons = {path for folder in folders for path in folder.iterdir() if path.name != "index.md"}
    assert hidden == reasons | {site / "plans.md"}


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
    assert "from{opacity:.3}" in picture, "a picture that starts is not an empty box"


def test_the_picture_breaks_a_line_that_is_wider_than_it() -> None:
    screen = Screen()
    screen.write("abcdefgh", 0.5)
    texts = re.findall(r'<text class="l" y="(\d+)".*>(\w+)</tspan></text>', svg(screen, columns=3, title="x"))
    assert texts == [("28", "abc"), ("47", "def"), ("66", "gh")]


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
