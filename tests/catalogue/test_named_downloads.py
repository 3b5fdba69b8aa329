"""Models that an app's code names: each once, with its place, and whether it is wanted at the start."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from patchlock.catalogue.proposals import downloads
from patchlock.patches.import_graph import Trees


def found(started: str = "", **code: str) -> list[tuple[str, str, int, bool]]:
    files = {PurePosixPath(f"{name}.py"): text.encode() for name, text in code.items()}
    files[PurePosixPath("local/model/config.json")] = b"{}"
    code_files = {path: data for path, data in files.items() if path.suffix == ".py"}
    paths = [PurePosixPath(f"{name}.py") for name in started.split()]
    program = next((str(path) for path in paths if path.name != "__init__.py"), "")
    listed = downloads.read(files, Trees(code_files), paths, ("python", program))
    return [(one.name, str(one.found.path), one.found.line, one.is_at_start) for one in listed]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ('AutoModel.from_pretrained("owner/name")', "owner/name"),
        ('AutoModel.from_pretrained(pretrained_model_name_or_path="owner/name")', "owner/name"),
        ('NAME = "owner/name"\nAutoModel.from_pretrained(NAME)', "owner/name"),
        ('def load(name="owner/name"):\n    return M.from_pretrained(name)', "owner/name"),
        ('def load(*, name: str = "owner/name"):\n    return M.from_pretrained(name)', "owner/name"),
        (
            '@click.option("-m", "--model-path", default="owner/name")\ndef main(model_path):\n    M.from_pretrained(model_path)',
            "owner/name",
        ),
        ('p.add_argument("--model", default="owner/name")\nM.from_pretrained(args.model)', "owner/name"),
        ('def load(name):\n    return snapshot_download(name)\nload("owner/name")\nload(other)', "owner/name"),
        ('def load(name="owner/a"): ...\ndef more(name="owner/b"):\n    M.from_pretrained(name)', "owner/b"),
        ('snapshot_download(repo_id="owner/name")', "owner/name"),
        ('hf_hub_download("owner/name", "a/model.pt")', "owner/name/a/model.pt"),
        ('hf_hub_download(repo_id="owner/name", filename="model.pt")', "owner/name/model.pt"),
        ('pipeline("text-to-speech", model="owner/name")', "owner/name"),
        ('cached_path("hf://owner/name/sub/model.safetensors")', "owner/name/sub/model.safetensors"),
        ('AutoModel.from_pretrained(f"owner/name")', "owner/name"),
        ('URL = "https://huggingface.co/owner/name/resolve/main/x.ckpt"\nfetch(URL)', "owner/name/x.ckpt"),
        ('URLS = {"x": "hf://owner/name/x.pt"}\nfor name, url in URLS.items():\n    fetch(url)', "owner/name/x.pt"),
        ('class A:\n    url = "hf://owner/name/x.pt"\n    def f(self):\n        fetch(self.url)', "owner/name/x.pt"),
        ('def f(url="hf://owner/name/x.pt"):\n    fetch(url)', "owner/name/x.pt"),
        ('def f():\n    return "hf://owner/name/x.pt"', "owner/name/x.pt"),
        ('N = "name"\nAutoModel.from_pretrained(f"owner/{N}-{2}")', "owner/name-2"),
        ('A = "owner"\nB = A + "/name"\nAutoModel.from_pretrained(B)', "owner/name"),
        ('AutoModel.from_pretrained(f"owner/{kind}-small")', "owner/{kind}-small"),
        ('def f(kind):\n    r = f"owner/{kind}"\n    M.from_pretrained(r)', "owner/{kind}"),
        ('snapshot_download(f"{owner}/{name}")', "{owner}/{name}"),
        ('snapshot_download("models/name")', "models/name"),
        ('hf_hub_download(REPOSITORIES[language], "model.pt")', "{REPOSITORIES[language]}/model.pt"),
        ('hf_hub_download("owner/name", f"{voice}.pt")', "owner/name/{voice}.pt"),
        ('torch.hub.load_state_dict_from_url("https://host.test/w/x.pth")', "https://host.test/w/x.pth"),
        ('AutoTokenizer.from_pretrained("roberta-base")', "roberta-base"),
        ('os.system(f"wget https://huggingface.co/o/n/resolve/main/x.th -O " + where)', "o/n/x.th"),
        ('os.system(f"wget https://host.test/w/{name}.tar -O x")', "https://host.test/w/{name}.tar"),
        ('subprocess.run(["curl", "-L", "https://host.test/x.th", "-o", path])', "https://host.test/x.th"),
        (
            """class A:
    def __init__(self, tokenizer="owner/name"):
        path = tokenizer if tokenizer else self.name
        self.load(path)
    def load(self, path):
        return T.from_pretrained(path)""",
            "owner/name",
        ),
        ('def load(name=None):\n    path = name or "owner/name"\n    M.from_pretrained(path)', "owner/name"),
        ('nltk.download("punkt")', "nltk:punkt"),
        ('nltk.download(["punkt", "words"])', "nltk:punkt, words"),
        ('AutoTokenizer.from_pretrained("xlm-roberta-large-finetuned")', "xlm-roberta-large-finetuned"),
    ],
)
def test_what_the_code_names_is_found(code: str, name: str) -> None:
    assert [one[0] for one in found(app=code)] == [name]


def test_each_file_of_a_written_list_is_found() -> None:
    code = 'for file in ["a.pt", "b.json"]:\n    path = hf_hub_download(repo_id="owner/name", filename=file)'
    assert [one[0] for one in found(app=code)] == ["owner/name/a.pt", "owner/name/b.json"]


@pytest.mark.parametrize(
    "code",
    [
        'AutoModel.from_pretrained("local/model")',
        "AutoModel.from_pretrained(path)",
        'AutoModel.from_pretrained("small")',
        'AutoModel.from_pretrained("roberta_base")',
        'AutoModel.from_pretrained(f"{folder}/name")',
        'AutoModel.from_pretrained(f"checkpoints/{name}")',
        'AutoModel.from_pretrained("checkpoints/name")',
        'snapshot_download("owner/name", repo_type="dataset")',
        'pipeline("text-to-speech")',
        '"""See https://huggingface.co/owner/name/resolve/main/x.ckpt"""',
        'print("https://huggingface.co/owner/name")',
        'print("https://example.com/page.html")',
        'URLS = {"x": "hf://owner/name/x.pt"}\ndef f(name):\n    assert name in URLS',
        'AutoModel.from_pretrained("owner/name',
        'os.system("echo see https://host.test/x.th")',
        'os.system("wget --version")',
        'print("wget https://huggingface.co/o/n/resolve/main/x.th")',
    ],
)
def test_what_is_no_download_is_not(code: str) -> None:
    assert found(app=code) == []


@pytest.mark.parametrize(
    ("calls", "is_at_start"),
    [
        ("Talker()", True),
        ("talk = Talker", False),
        ("Talker.of('x')", True),
        ("make().of('x')", True),
        ("Talker.later()", False),
        ("def lazy():\n    Talker()", False),
        ("if __name__ == '__main__':\n    Talker()", True),
    ],
)
def test_what_the_start_calls_is_wanted_at_the_start(calls: str, is_at_start: bool) -> None:
    talker = (
        "class Talker:\n"
        "    def __init__(self):\n        self.model = load()\n"
        "    def of(name):\n        Talker()\n"
        "    def later(self): ...\n"
        "def load():\n    return M.from_pretrained('owner/name')\n"
    )
    assert found("app talker", app=f"from talker import Talker\n{calls}\n", talker=talker) == [
        ("owner/name", "talker.py", 8, is_at_start)
    ]


@pytest.mark.parametrize(
    ("code", "is_at_start"),
    [
        ("if source == 'hub':\n        LOAD", False),
        ("if source == 'local': ...\n    else:\n        LOAD", False),
        ("if again and not found():\n        LOAD", False),
        ("model = None if source else LOAD", False),
        ("match source:\n        case 'hub': LOAD", False),
        ("if not os.path.exists(source):\n        LOAD", True),
        ("if found():\n        LOAD", True),
        ("if self.model is None:\n        LOAD", True),
    ],
)
def test_what_hangs_on_an_argument_is_not_wanted_at_the_start(code: str, is_at_start: bool) -> None:
    code = code.replace("LOAD", "M.from_pretrained('owner/name')")
    listed = found("app", app=f"def load(self, source='local', *, again=False):\n    {code}\nload(app)\n")
    assert [(name, at_start) for name, _, _, at_start in listed] == [("owner/name", is_at_start)]


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("load()", ["owner/small", "owner/tones"]),
        ("load('large')", ["owner/large"]),
        ("load(size='large')\nload()", ["owner/small", "owner/tones", "owner/large"]),
        ("load(local=True)", ["owner/tones"]),
        ("load(chosen)", []),
        ("load(*chosen)", []),
        ("load(**chosen)", []),
    ],
)
def test_branch_that_the_arguments_of_a_call_choose_is_run_at_the_start(call: str, wanted: list[str]) -> None:
    code = (
        "def load(size='small', local=False, kind=None):\n"
        "    kind = kind or size\n"
        "    if size == 'small':\n"
        "        if not local:\n            M.from_pretrained('owner/small')\n"
        "        if local is not None and not (size != 'small'):\n            M.from_pretrained('owner/tones')\n"
        "    else:\n        M.from_pretrained('owner/large')\n"
        "    if kind is None:\n        M.from_pretrained('owner/none')\n"
    )
    assert [name for name, _, _, is_at_start in found("app", app=f"{code}{call}\n") if is_at_start] == wanted


@pytest.mark.parametrize(
    "code",
    [
        "model = LOAD if ONLINE else None",
        "try:\n    model = quick()\nexcept Exception:\n    LOAD",
        "def load():\n    LOAD\nmodel = load() if ONLINE else None",
    ],
    ids=["conditional", "handler", "function-in-conditional"],
)
def test_what_may_not_run_is_not_wanted_at_the_start(code: str) -> None:
    listed = found("app", app=code.replace("LOAD", "M.from_pretrained('owner/name')"))
    assert [(name, is_at_start) for name, _, _, is_at_start in listed] == [("owner/name", False)]


@pytest.mark.parametrize(
    ("code", "is_at_start"),
    [
        ("URLS = {'x': ADDRESS}\ndef get(name):\n    download(URLS[name])", False),
        ("URLS = dict(x=ADDRESS)\ndef get(name):\n    download(URLS[name])", False),
        ("parser.add_argument('--url', default=ADDRESS)", False),
        ("download(ADDRESS)", True),
        ("requests.get(ADDRESS)", True),
        ("parts.get(ADDRESS)", False),
        ("URLS = {'x': ADDRESS}\nfor name, url in URLS.items():\n    download_file(url, name)", True),
        ("def get(url):\n    urlretrieve(url)\nget(ADDRESS)", True),
        ("def get(url):\n    urlretrieve(url)\ndef later():\n    get(ADDRESS)", False),
        ("class A:\n    def get(self, kind, *, url):\n        urlretrieve(url)\nA().get(1, url=ADDRESS)", True),
    ],
)
def test_address_is_wanted_at_the_start_where_what_downloads_is_called_with_it_then(
    code: str, is_at_start: bool
) -> None:
    listed = found("app", app=code.replace("ADDRESS", "'https://host.test/x.pth'"))
    assert [(name, at_start) for name, _, _, at_start in listed] == [("https://host.test/x.pth", is_at_start)]


def test_variable_alone_is_told_where_the_program_comes_to_it() -> None:
    code = "def get(repository):\n    return snapshot_download(repository)"
    assert found("web", app=code, web="") == []
    assert found(app=code) == [("{repository}", "app.py", 2, False)]  # of what nobody knows how it is started
    assert found("app", app=code) == [("{repository}", "app.py", 2, False)]


def test_names_in_examples_and_tests_count_where_the_program_comes_to_them() -> None:
    files = {PurePosixPath(f"lib/examples/{name}.py"): b'M.from_pretrained("owner/name")' for name in "ab"}

    listed = downloads.read(files, Trees(files), [PurePosixPath("lib/examples/a.py")], ("python", "lib/examples/a.py"))

    assert [str(one.found.path) for one in listed] == ["lib/examples/a.py"]
    assert downloads.read(files, Trees(files), [], ("python",)) == ()


def test_those_of_the_start_stand_first_and_each_once() -> None:
    load = 'M.from_pretrained("owner/{}")\n'
    assert found(
        "app",
        a=load.format("lazy"),
        app=f"def f():\n    {load.format('later')}{load.format('now')}{load.format('lazy')}",
        test_app=load.format("tests"),
    ) == [
        ("owner/now", "app.py", 3, True),
        ("owner/lazy", "app.py", 4, True),
        ("owner/later", "app.py", 2, False),
    ]


@pytest.mark.parametrize(("started", "is_at_start"), [("app", True), ("__init__ app", True), ("web app", False)])
def test_what_only_a_program_does_is_not_done_where_it_is_imported(started: str, is_at_start: bool) -> None:
    code = 'if __name__ == "__main__":\n    M.from_pretrained("owner/name")\n'
    assert found(started, app=code, web="import app\n", __init__="") == [("owner/name", "app.py", 2, is_at_start)]


def test_what_a_function_of_another_file_is_given_is_what_it_downloads() -> None:
    loader = "def load(where, device):\n    return M.from_pretrained(where)\nclass A:\n    def __init__(self, b):\n        M.from_pretrained(b)\n"
    app = 'NAME = "owner/first"\nload(NAME, device)\nA(b="owner/second")\n'

    assert found("app", app=app, loader=loader) == [
        ("owner/first", "loader.py", 2, False),
        ("owner/second", "loader.py", 5, False),
    ]


DEFAULT = """class Voice:
    def __init__(self, name="owner/small"):
        if "/" not in name:
            repository = f"owner/{name}"
        else:
            repository = name
        load(repository=repository)

def load(repository="owner/old"):
    hf_hub_download(repository, "model.pt")
"""
KEPT = """class Voice:
    def __init__(self, repository=None):
        if repository is None:
            repository = "owner/name"
        self.repository = repository

    def load(self, name):
        hf_hub_download(self.repository, f"voices/{name}.pt")
"""


@pytest.mark.parametrize(
    ("code", "place"),
    [
        (DEFAULT, ("owner/small/model.pt", "voice.py", 10, False)),
        (KEPT, ("owner/name/voices/{name}.pt", "voice.py", 8, False)),
    ],
    ids=["given-on", "kept-by-the-object"],
)
def test_default_of_an_argument_is_followed_to_where_it_is_used(code: str, place: tuple[str, str, int, bool]) -> None:
    assert found(voice=code) == [place]


def test_what_another_function_calls_by_the_same_name_is_not_used() -> None:
    code = 'def one():\n    name = NAME\ndef other():\n    name = NAMES[1]\n    M.from_pretrained(name)\nNAME = "owner/name"\n'
    assert found(app=code) == []


def test_file_is_of_the_repository_that_is_given_with_it() -> None:
    code = 'def get(name, file):\n    hf_hub_download(name, file)\nget(chosen, "a.pt")\nget("owner/name", chosen)\n'
    assert found(app=code) == [("owner/name/{file}", "app.py", 2, False)]


def test_what_the_program_never_comes_to_is_not_downloaded() -> None:
    path = PurePosixPath("app.py")
    files = {path: b'M.from_pretrained("owner/name")\nM.from_pretrained("owner/other")\n'}

    listed = downloads.read(files, Trees(files), [path], ("python", "app.py"), {path: {2}})

    assert [one.name for one in listed] == ["owner/name"]
