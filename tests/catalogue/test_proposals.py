"""What is read from a clone, and proposed for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import (
    _gpu_packages,
    device_switches,
    documents,
    fetched_programs,
    findings,
    importers,
    own_metadata,
    project_facts,
    python_limits,
    run_time_installs,
    submodules,
    system_needs,
)
from patchlock.catalogue.proposals.findings import Finding, Issue
from patchlock.catalogue.proposals.imports import Imports
from patchlock.catalogue.proposals.shared_sets import LocatedRequirement
from patchlock.catalogue.reader import Catalogue
from patchlock.model.app import Submodule
from patchlock.model.identities import CommitId
from patchlock.patches.import_graph import Trees

PROFILES = tuple(Catalogue(root=ROOT).profile(name) for name in ("cpu", "cuda-linux", "rocm-linux", "directml-vega"))
STARTS = 'if __name__ == "__main__":\n    main()\n'


def tree(texts: Mapping[str, str]) -> dict[PurePosixPath, bytes]:
    """Make the files of a clone."""
    return {PurePosixPath(path): text.encode() for path, text in texts.items()}


# --- facts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("import   a\n", "import a"),
        ("word " * 20 + "last", "word " * 20 + "…"),
        ("word " * 19 + "abcdefgh", "word " * 19 + "…"),
        ("x" * 101, "x" * 100 + " …"),
    ],
    ids=["short", "after-a-word", "within-a-word", "one-word"],
)
def test_long_line_is_cut_after_a_word(text: str, shown: str) -> None:
    assert findings.excerpt(text) == shown


def test_what_a_container_installs_is_named_without_tools() -> None:
    text = (
        "FROM x\nRUN apt-get update && apt-get install -y --no-install-recommends \\\n    libsndfile1 ffmpeg=7:5 \\\n"
        "    build-essential git git-core curl python3-venv libaio-dev \\\n    && rm -rf /var\nRUN apt install -y git\n"
    )
    files = {PurePosixPath("docker/Dockerfile.gpu"): text.encode(), PurePosixPath("Dockerfile"): text.encode()}
    assert [(str(place.path), place.line, names) for place, names in documents.apt_packages(files)] == [
        ("Dockerfile", 2, ("libsndfile1", "ffmpeg"))
    ]


def test_what_the_readme_installs_with_pip_is_named() -> None:
    text = (
        "# Voice\n```bash\npip install -U voice[gpu]==2 onnxruntime\n$ python -m pip install ./x-1.whl voice\n```\n"
        "## Optional: faster\n```bash\npip install vllm==0.2.7\n"
        "pip install -e git+https://example.org/o/codec.git@c5157b5#egg=our-codec git+https://example.org/o/hands\n```\n"
    )
    found = documents.pip_packages(tree({"README.md": text, "docs/more.md": "`pip install clock`"}))
    assert [(str(one.requirement), one.found.line, one.is_optional) for one in found.values()] == [
        ("voice[gpu]==2", 3, False),
        ("onnxruntime", 3, False),
        ("vllm==0.2.7", 8, True),
        ("our-codec @ git+https://example.org/o/codec.git@c5157b5", 9, True),
        ("hands @ git+https://example.org/o/hands", 9, True),
    ]


@pytest.mark.parametrize("table", ["project", "tool.poetry"])
def test_name_of_the_app_is_read_from_its_project(table: str) -> None:
    assert project_facts.name(tree({"pyproject.toml": f'[{table}]\nname = "Mini_Voice"\n'})) == "Mini_Voice"
    assert project_facts.name(tree({"setup.py": ""})) == ""


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        pytest.param({"LICENSE": "Apache License\n   Version 2.0, January"}, "Apache-2.0", id="apache"),
        pytest.param({"LICENSE.txt": "GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3"}, "AGPL-3.0", id="agpl"),
        pytest.param({"COPYING": "GNU GENERAL PUBLIC LICENSE\n Version 3"}, "GPL-3.0", id="gpl"),
        pytest.param({"pyproject.toml": '[project]\nlicense = "MIT"\n'}, "MIT", id="project"),
        pytest.param({"LICENSE": "do what you want"}, "unknown", id="unknown"),
        pytest.param({}, "unknown", id="none"),
    ],
)
def test_licence_is_named_by_its_identifier(texts: dict[str, str], wanted: str) -> None:
    assert project_facts.licence(tree(texts))[0] == wanted


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        pytest.param({"pyproject.toml": '[project]\nrequires-python = ">=3.10,<3.12"\n'}, ">=3.10,<3.12", id="pep-621"),
        pytest.param({"pyproject.toml": '[tool.poetry.dependencies]\npython = "^3.9"\n'}, ">=3.9,<4", id="poetry"),
        pytest.param({"pyproject.toml": '[tool.poetry.dependencies]\npython = "~3.10"\n'}, ">=3.10,<3.11", id="tilde"),
        pytest.param(
            {"setup.py": 'BOUND = ">=3.9"\nsetup(python_requires=BOUND)\n', "README.md": "Python 3.8\n"},
            ">=3.9",
            id="name-in-setup-py",
        ),
        pytest.param({"setup.py": 'setup(python_requires=">=3.6")\n'}, ">=3.6", id="setup-py"),
        pytest.param({"setup.cfg": "[options]\npython_requires = >=3.7\n"}, ">=3.7", id="setup-cfg"),
        pytest.param({"pyproject.toml": '[project]\nrequires-python = "three"\n'}, ">=3.8", id="no-specifier"),
        pytest.param({"pyproject.toml": "[project\n"}, ">=3.8", id="no-toml"),
    ],
)
def test_python_that_upstream_allows_is_read(texts: dict[str, str], wanted: str) -> None:
    assert project_facts.python(tree(texts))[0] == wanted


def test_project_that_is_taken_bounds_python_wherever_it_lies() -> None:
    files = tree({"setup.py": 'setup(python_requires=">=3.6")\n', "lib/setup.py": 'setup(python_requires=">=3.7")\n'})
    assert project_facts.python(files, [PurePosixPath("lib/setup.py")]) == (">=3.7", "lib/setup.py:1 says so")
    assert project_facts.python(files, [PurePosixPath("lib/requirements.txt")])[0] == ">=3.6"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("conda create -n x python=3.10", "3.10"),
        ("# Create one with python_version>=3.10\nconda create -n x python=3.11", ">=3.10"),
        ("Python >= 3.9 is needed", ">=3.9"),
        ("You need Python 3.9+", ">=3.9"),
        ("Python 3.9 or higher", ">=3.9"),
    ],
)
def test_readme_is_quoted_where_no_project_file_bounds_python(line: str, said: str) -> None:
    assert project_facts.python(tree({"README.md": f"# X\n{line}\n"})) == (
        ">=3.8",
        f"no project file bounds it, so any profile's is taken; README.md:2 speaks of Python {said}",
    )


def test_needs_of_the_machine_are_named_with_their_place() -> None:
    files = tree(
        {
            "a.py": "x = 1\nimport pydub\n",
            "README.md": "# X\nsudo apt install sox\nespeak\n",
            "b/README.md": "portaudio",
        }
    )

    place = Finding(path=PurePosixPath("requirements.txt"), line=3, text="PyAudio")
    asked = {canonicalize_name("PyAudio"): (LocatedRequirement(requirement=Requirement("PyAudio"), found=place),)}
    names = ["espeak-ng", "ffmpeg", "portaudio", "sox"]

    found = system_needs.read(files, Imports(files), {}, names)

    assert {one.name: str(one.found) for one in found} == {
        "espeak-ng": "README.md:3: espeak",
        "ffmpeg": "a.py:2: import pydub",
        "sox": "README.md:2: sudo apt install sox",
    }
    (need,) = (one for one in system_needs.read(files, Imports(files), asked, names) if one.name == "portaudio")
    assert str(need.found) == "requirements.txt:3: PyAudio"  # its own libraries import it


OPTIONAL = "try:\n    import sounddevice\nexcept ImportError:\n    pass\n"


@pytest.mark.parametrize(
    ("code", "locked", "path", "wanted"),
    [
        pytest.param("import phonemizer\n", "phonemizer", "", ["espeak-ng"], id="used"),
        pytest.param("import phonemizer\n", "phonemizer", "espeakng_loader/libespeak-ng.so", [], id="carried"),
        pytest.param("import sounddevice\n", "numpy", "", [], id="module-is-not-locked"),
        pytest.param("import sounddevice\n", "sounddevice", "", ["portaudio"], id="module-is-locked"),
        pytest.param("import sounddevice\n", "sounddevice", "_sounddevice_data/libportaudio.dylib", [], id="in-wheel"),
        pytest.param(OPTIONAL, "sounddevice", "", ["portaudio"], id="optional-and-locked"),
        pytest.param(OPTIONAL, "numpy", "", [], id="optional-and-not-locked"),
        pytest.param("import whisper\n", "openai-whisper", "", ["ffmpeg"], id="program-of-a-library"),
        pytest.param("from whisper.tokenizer import x\n", "openai-whisper", "", [], id="part-without-the-program"),
        pytest.param("import kokoro\n", "phonemizer", "", ["espeak-ng"], id="library-of-a-library"),
    ],
)
def test_needs_follow_from_what_is_locked(code: str, locked: str, path: str, wanted: list[str]) -> None:
    files = tree({"a.py": code, "docs/README.md": "apt install portaudio19-dev\n"})
    names = {canonicalize_name(locked): Version("1")}
    contents = system_needs.Locked(names=names, paths=[path], tools={}, platforms={})

    place = Finding(path=PurePosixPath("requirements.txt"), line=1, text="openai-whisper")
    name = canonicalize_name("openai-whisper")
    asked = {name: (LocatedRequirement(requirement=Requirement(name), found=place),)}

    found = system_needs.read(files, Imports(files), asked, ["espeak-ng", "ffmpeg", "portaudio"], contents)

    assert [(one.name, one.is_required) for one in found] == [(name, False) for name in wanted]


@pytest.mark.parametrize(
    ("code", "torchaudio", "codec", "wanted"),
    [
        ("import torchaudio\ntorchaudio.load(x)\n", "2.9.0", "torchcodec", (2, True)),
        ("import torchaudio\ntorchaudio.save(x, y)\n", "2.9.0", "torchcodec", (2, True)),
        ("from torchcodec.decoders import AudioDecoder\n", "2.8.0", "torchcodec", (1, True)),
        ("import torchaudio\ntorchaudio.load(x)\n", "2.8.0", "torchcodec", None),
        ("import torchaudio\ntorchaudio.load(x)\n", "2.9.0", "soundfile", None),
        ("import torchaudio\ntorchaudio.functional.resample(x)\n", "2.9.0", "torchcodec", None),
    ],
)
def test_ffmpeg_is_required_where_the_program_reads_through_torchcodec(
    code: str, torchaudio: str, codec: str, wanted: tuple[int, bool] | None
) -> None:
    files = tree({"a.py": "import pydub\n", "b.py": code})
    names = {canonicalize_name(name): Version("1") for name in ("pydub", codec)}
    names[canonicalize_name("torchaudio")] = Version(torchaudio)
    contents = system_needs.Locked(names=names, paths=(), tools={}, platforms={})

    found = [
        system_needs.read(files, Imports(files), {}, ["ffmpeg"], contents, started)
        for started in ([PurePosixPath("b.py")], [])
    ]

    assert [(one.found.path.name, one.found.line, one.is_required) for (one,) in found] == (
        [("a.py", 1, False)] * 2 if wanted is None else [("b.py", *wanted), ("b.py", wanted[0], False)]
    )
    assert wanted is None or "torchcodec" in found[0][0].why


@pytest.mark.parametrize(
    ("code", "line", "is_required"),
    [
        pytest.param('subprocess.run(["ffmpeg", "-i", x])', 3, False, id="use"),
        pytest.param('words = ["/usr/bin/ffmpeg", x]\n    Popen(words)', 3, False, id="words-of-their-own"),
        pytest.param('os.system("ffmpeg -i x")', 3, False, id="shell"),
        pytest.param('os.system(f"ffmpeg -i {x} " + y)', 3, False, id="shell-line-of-parts"),
        pytest.param('run(["ffmpeg", "-version"])', 3, True, id="question-that-nobody-answers"),
        pytest.param(
            'try:\n        run(["ffmpeg", "-version"])\n    except E:\n        raise', 4, True, id="raised-again"
        ),
        pytest.param('try:\n        run(["ffmpeg", "-version"])\n    except E:\n        pass', 4, False, id="goes-on"),
        pytest.param('if not shutil.which("ffmpeg"):\n        sys.exit(1)', 3, True, id="which-and-exit"),
        pytest.param('if which("ffmpeg"):\n        use()\n    sys.exit(1)', 3, False, id="which-and-use"),
    ],
)
def test_program_that_the_code_calls_is_needed_and_required_where_the_app_ends_without(
    code: str, line: int, is_required: bool
) -> None:
    files = tree({"b.py": f"import subprocess\ndef f(x):\n    {code}\n", "README.md": "It reads audio with ffmpeg.\n"})

    found = [
        system_needs.read(files, Imports(files), {}, ["ffmpeg"], None, paths) for paths in ([PurePosixPath("b.py")], [])
    ]

    assert [(one.found.path.name, one.found.line, one.is_required) for (one,) in found] == [
        ("b.py", line, is_required),
        ("b.py", line, False),
    ]


def test_what_a_page_tells_people_to_download_is_no_need_of_wget() -> None:
    files = {"README.md": "You need the model: `wget https://host.test/x`\n", "a.py": "import os\n"}
    assert system_needs.read(tree(files), Imports(tree(files)), {}, ["wget"]) == ()
    files["a.py"] += "os.system(f'wget https://host.test/x -O {y}')\n"
    (need,) = system_needs.read(tree(files), Imports(tree(files)), {}, ["wget"])
    assert (str(need.found.path), need.found.line) == ("a.py", 2)


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        ({"README.md": "Most players (browsers, ffmpeg and others) handle this kind of header fine.\n"}, []),
        ({"README.md": "Please make sure that a recent ffmpeg is on the path of your shell.\n"}, ["README.md:1"]),
        ({"README.md": "A temperature is required; it makes the model speak faster.\n"}, []),
        ({"README.md": "- [FFmpeg](https://ffmpeg.org)\n"}, ["README.md:1"]),
        ({"examples/play.py": "import pydub\n", "README.md": "x\n"}, []),
    ],
    ids=["speaks-of-it", "asks-for-it", "speaks", "lists-it", "an-example"],
)
def test_what_only_is_spoken_of_is_no_need(texts: dict[str, str], wanted: list[str]) -> None:
    files = tree(texts)
    found = system_needs.read(files, Imports(files), {}, ["espeak-ng", "ffmpeg"])
    assert [f"{one.found.path}:{one.found.line}" for one in found] == wanted


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            "git clone https://huggingface.co/owner/model models",
            "README.md:2: git fetches the files of a model by it where you clone that by hand; the program does not need it",
        ),
        ("git clone https://github.com/owner/app", "files that git keeps elsewhere are fetched by it"),
    ],
)
def test_git_lfs_is_told_for_what_the_readme_clones_with_it(more: str, why: str) -> None:
    files = tree({"README.md": f"git lfs install\n{more}\n"})

    (need,) = system_needs.read(files, Imports(files), {}, ["git-lfs"])

    assert need.why == why


def test_what_only_a_container_installs_is_no_need() -> None:
    texts = {"Dockerfile": "FROM x\nRUN apt-get update \\\n  && apt-get install -y git sox espeak-ng\n"}
    names = ["espeak-ng", "sox"]
    assert system_needs.read(tree(texts), Imports(tree(texts)), {}, names) == ()
    files = tree({**texts, "a.py": "import sox\n"})
    assert [one.name for one in system_needs.read(files, Imports(files), {}, names)] == ["sox"]


def test_compiler_is_needed_for_what_is_built() -> None:
    place = Finding(path=PurePosixPath("requirements.txt"), line=2, text="llama-cpp-python")
    name = canonicalize_name("llama-cpp-python")
    asked = {name: (LocatedRequirement(requirement=Requirement("llama-cpp-python"), found=place),)}
    tools, names = {name: {"c-compiler": True, "cmake": False}}, ["c-compiler", "cmake"]
    there = {name: ("linux-aarch64",)}

    found = {
        platforms: system_needs.read(
            {},
            Imports({}),
            asked,
            names,
            system_needs.Locked(names={name: Version("1")}, paths=(), tools=tools, platforms=one),
        )
        for platforms, one in (("all", {}), ("some", there))
    }

    assert [(one.name, one.found, one.is_required, one.platforms) for one in found["all"]] == [
        ("c-compiler", place, True, ()),
        ("cmake", place, False, ()),
    ]
    assert [one.platforms for one in found["some"]] == [("linux-aarch64",)] * 2


@pytest.mark.parametrize(
    ("readme", "wanted"),
    [
        pytest.param("# Sponsors\n## 📖 Audio  *Hummer*\n", "📖 Audio Hummer", id="named-below"),
        pytest.param("# Introduction\n# OpenVoice\n", "Py-Audio-Hummer", id="none-resembles-it"),
        pytest.param("# Audio\n# [Hummer](x.md) &\n# [Audio Hummer](y.md)\n", "Audio Hummer", id="most-of-the-name"),
        pytest.param(
            "# Audio Hummer :sparkles:![a badge](b.svg)[![other](c.svg)](d)\n", "Audio Hummer", id="images-and-codes"
        ),
        pytest.param("x\n<h1 align=c>\n  Py-Audio-Hummer\n</h1>\n", "Py-Audio-Hummer", id="in-html"),
        pytest.param(
            "# A fork: [a/audio-hummer-2](https://github.com/a/audio-hummer-2)\n",
            "Py-Audio-Hummer",
            id="another-project",
        ),
        pytest.param(
            "# [Py Audio Hummer](https://github.com/a/py-audio-hummer) for [X](https://github.com/b/x)\n",
            "Py Audio Hummer for X",
            id="itself-and-another",
        ),
        pytest.param(
            '<h1><a href="x"><img src="a.png" alt="Py-Audio-Hummer"></a></h1>\n## Run Py-Audio-Hummer\n',
            "Py-Audio-Hummer",
            id="a-logo",
        ),
        pytest.param("## X\n```sh\n# py-audio-hummer\n```\n", "Py-Audio-Hummer", id="comment-in-code"),
    ],
)
def test_title_is_a_heading_that_resembles_the_repository_s_name(readme: str, wanted: str) -> None:
    assert project_facts.title(tree({"README.md": readme}), "Py-Audio-Hummer") == wanted


def test_page_in_restructured_text_has_a_title_and_commands_below_headings() -> None:
    page = (
        "=====\nHummer: it hums\n=====\n\nTraining\n--------\n\nType::\n\n  cd songs\n  python sing.py\n\n"
        "Usage\n-----\n\n.. code-block:: sh\n\n   HUM=1 \\\n     python hum.py\n\nIt hums. ``python hm.py``\n"
    )
    files = tree({"README.rst": page})

    assert project_facts.title(files, "Hummer") == "Hummer: it hums"
    assert [(one.words, str(one.folder), one.found.line, one.headings) for one in documents.told(files)] == [
        (("python", "sing.py"), "songs", 11, ("Training",)),
        (("python", "hum.py"), ".", 18, ("Usage",)),
        (("python", "hm.py"), ".", 21, ("Usage",)),
    ]


def test_title_of_a_translated_readme_comes_last() -> None:
    files = tree({"README-ZH.md": "# Hummer: 中文\n", "README.md": "# Hummer: it hums\n"})
    assert project_facts.title(files, "Hummer") == "Hummer: it hums"


@pytest.mark.parametrize(
    ("description", "wanted"),
    [("Audio Hummer: it hums", "Audio Hummer: it hums"), ("Audio Service", "Audio-Hummer")],
    ids=["with-the-name", "without-it"],
)
def test_description_is_a_title_where_it_has_the_repository_s_name(description: str, wanted: str) -> None:
    files = tree({"pyproject.toml": f'[project]\nname = "x"\ndescription = "{description}"\n'})
    assert project_facts.title(files, "Audio-Hummer") == wanted


# --- what only a card has a use for -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "module", "without"),
    [
        pytest.param("tensorrt-cu12-libs", "tensorrt", "cpu rocm-linux directml-vega", id="tensorrt"),
        pytest.param("nvidia-cudnn-cu12", "nvidia_cudnn_cu12", "cpu rocm-linux directml-vega", id="cudas-libraries"),
        pytest.param("some-thing-cu128", "some_thing", "cpu rocm-linux directml-vega", id="a-build-by-its-name"),
        pytest.param("cupy-cuda12x", "cupy", "cpu rocm-linux directml-vega", id="cupy"),
        pytest.param("flash-attn", "flash_attn", "cpu directml-vega", id="flash-attention"),
        pytest.param("bitsandbytes>0.37.0", None, "", id="bitsandbytes"),
        pytest.param("bitsandbytes<0.46", "bitsandbytes", "cpu directml-vega", id="old-bitsandbytes"),
        pytest.param("bitsandbytes==0.45.5", "bitsandbytes", "cpu directml-vega", id="pinned-old-bitsandbytes"),
        pytest.param("deepspeed==0.8.3", "deepspeed", "cpu cuda-linux rocm-linux directml-vega", id="deepspeed"),
        pytest.param("triton", "triton", "cpu directml-vega", id="triton"),
        pytest.param("nvidia-ml-py", None, "", id="a-library-that-only-asks"),
        pytest.param("encodec", None, "", id="none"),
        pytest.param("focus-1", None, "", id="a-name-that-ends-otherwise"),
    ],
)
def test_package_for_cards_is_known_by_what_it_is(name: str, module: str | None, without: str) -> None:
    requirement = Requirement(name)
    found = _gpu_packages.find(canonicalize_name(requirement.name), requirement.specifier)

    assert (found.module if found else None) == module
    if found:
        assert " ".join(_gpu_packages.profiles_without(found.needs, PROFILES)) == without


@pytest.mark.parametrize(
    ("locked", "python", "older", "module", "wanted"),
    [
        ("fairseq 0.12.2", "3.11", "3.12", "fairseq.models", "stops the start"),
        ("fairseq 0.12.2", "3.11", "3.10", "torch", "stops the first use"),
        ("hydra-core 1.0.7", "3.12", "3.12", "hydra", "stops the start"),
        ("hydra-core 1.3.2", "3.11", "3.12", "hydra", ""),
        ("fairseq 0.12.2", "3.10", "3.12", "fairseq", ""),
    ],
)
def test_what_a_python_cannot_import_is_told(locked: str, python: str, older: str, module: str, wanted: str) -> None:
    name, version = locked.split()
    versions = {canonicalize_name(name): Version(version)}
    found = python_limits.find(versions, Version(python), {"other": Version(older)}, {}, [module])

    assert [findings.stops(one) for one in found] == ([wanted] if wanted else [])
    assert all(one.title == f"{locked} cannot be imported with Python {python}" for one in found)
    assert [one.remedy.startswith("the profile other has Python 3.10") for one in found] == [older == "3.10"] * bool(
        wanted
    )


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("pip.main(['install', '--user', 'ffmpeg-python'])", "ffmpeg-python"),
        ("os.system('pip install gfpgan==1.3 Av_Wheel[x]>=2')", "gfpgan, Av_Wheel"),
        ("subprocess.run([sys.executable, '-m', 'pip', 'install', package, 'one'])", "one"),
        ("os.system('pip install -U torch')", ""),
        ("os.system('pip install -r more.txt')", ""),
        ("os.system(\"pip install 'git+https://host/one'\")", ""),
        ("os.system('python setup.py develop')", ""),
    ],
)
def test_what_is_no_longer_installed_as_the_app_runs_and_not_locked_is_told(call: str, names: str) -> None:
    place = Finding(path=PurePosixPath("a.py"), line=2, text=call)
    issue = Issue(name="no-run-time-pip", title="t", means="m", found=(place,), remedy="r")

    told = run_time_installs.remarks([issue], {canonicalize_name("torch")})

    assert [one.partition(" as it runs")[0] for one in told] == ([f"a.py:2 would install {names}"] if names else [])


def test_drop_says_who_imports_it_and_whether_as_the_program_starts() -> None:
    files = tree({"app.py": "import yaml\n\ndef later():\n    import cv2\n", "train.py": "import cv2\n"})
    found = importers.read(Trees(files), ("python", "app.py"), "")

    assert found.told(canonicalize_name("pyyaml")) == "app.py:1 imports yaml as the program starts"
    assert found.told(canonicalize_name("opencv-python")) == "app.py:4 and 1 more imports it, not as the program starts"
    assert found.told(canonicalize_name("numpy")) == "no file imports it under a name that is known"
    assert found.is_needed(canonicalize_name("pyyaml"))
    assert not found.is_needed(canonicalize_name("opencv-python"))


def test_every_module_counts_where_nobody_says_how_an_app_is_started() -> None:
    files = tree(
        {
            "speech/voice.py": "import yaml\ntry:\n    import cv2\nexcept ImportError:\n    cv2 = None\n",
            "examples/a.py": "import numpy\n",
            "speech/more.py": "def f():\n    import scipy\n",
        }
    )
    found = importers.read(Trees(files), ("python",), "")

    needed = [
        name for name in ("pyyaml", "opencv-python", "numpy", "scipy") if found.is_needed(canonicalize_name(name))
    ]
    assert needed == ["pyyaml"]
    assert found.told(canonicalize_name("pyyaml")) == "speech/voice.py:1 imports yaml as that module is imported"
    assert found.told(canonicalize_name("opencv-python")) == "speech/voice.py:3 imports it, and goes on without it"


def test_submodules_are_asked_for_by_imports_and_by_other_files() -> None:
    def submodule(path: str) -> Submodule:
        return Submodule(name="x", path=PurePosixPath(path), url="https://e.org/x", commit=CommitId("1" * 40))

    vocoder, tool, docs = submodule("third/Vocoder-GAN"), submodule("third/tool"), submodule("docs/theme")
    files = tree(
        {
            "a.py": "def f():\n    from third.vocoder_gan import model\n",
            "requirements.txt": "-e ./third/tool\n",
            ".gitmodules": "path = docs/theme\n",
            "b.py": "themes = 1\n",
        }
    )
    assert submodules.asked_for((vocoder, tool, docs), files) == (vocoder, tool)

    (issue,) = submodules.issues([vocoder], Imports(files), [])

    assert (issue.name, str(issue.found[0].path)) == ("submodule", "a.py")
    assert issue.remedy.endswith('write `submodules = ["third/Vocoder-GAN"]` in [upstream]')


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("from importlib import metadata\nmetadata.version('My_App')\n", True),
        ("import importlib.metadata\nimportlib.metadata.version(__package__)\n", True),
        ("import importlib.metadata\nimportlib.metadata.version('torch')\n", False),
        ("def version(name): ...\nversion('my-app')\n", False),
    ],
)
def test_app_that_asks_for_its_own_version_gets_metadata(code: str, is_found: bool) -> None:
    files = tree({"src/my_app/a.py": code, "pyproject.toml": '[project]\nname = "my-app"\nversion = "1.2"\n'})
    trees = Trees({path: data for path, data in files.items() if path.suffix == ".py"})

    sections, _ = own_metadata.repair(trees, files, "src", lambda path, line: f"{path}#{line}")

    assert [one.written.patch.paths for one in sections] == (
        [("src/my_app-1.2.dist-info/METADATA",)] if is_found else []
    )


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (
            'ON = cast(os.environ.get("A_MPS", "False"))\nif mps() and ON:\n    d = "mps"\n',
            ("Metal only where A_MPS is set: a.py:2",),
        ),
        ('d = "xpu" if os.getenv("A_XPU") == "1" else "cpu"\n', ("XPU only where A_XPU is set: a.py:1",)),
        ('if os.environ.get("A_MPS", "1"):\n    d = "mps"\n', ()),
        ('if not os.environ.get("NO_MPS"):\n    d = "mps"\n', ()),
        ('if os.environ.get("DEVICE") == "mps":\n    d = "mps"\n', ()),
        ('if mps() or os.environ.get("A_MPS"):\n    d = "mps"\n', ()),
        ('D = environ.get("DEVICE", "cpu")\n', ("the device that DEVICE names, cpu where it is not set: a.py:1",)),
        ('D = settings.get("DEVICE", "cpu")\n', ()),
    ],
    ids=["by-a-name", "itself", "on-by-default", "off-switch", "device-of-the-user", "either", "named", "of-no-system"],
)
def test_variable_that_switches_a_device_on_is_named(code: str, wanted: tuple[str, ...]) -> None:
    assert device_switches.read(Trees(tree({"a.py": code, "tests/a.py": code, "examples/b.py": code}))) == tuple(
        f"upstream uses {one}" for one in wanted
    )


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("os.chmod(file, 0o755)\n    subprocess.run([file, '-w'])\n", 4),
        ("os.chmod(file, 0o755)\n    os.system(file)\n", 4),
        ("os.chmod(file, 0o755)\n    subprocess.run(['ffmpeg', file])\n", None),
        ("subprocess.run([file])\n", None),
    ],
)
def test_program_that_the_code_fetches_and_runs_is_named(code: str, line: int | None) -> None:
    code = f"def get(folder):\n    file = fetch('https://host.test/x/')\n    {code}"
    files = {"a.py": code, "tests/a.py": code, "b.py": code.replace("https://host.test", "")}
    says = "starts a program that the app seems to fetch when it runs, as https://host.test/x/ stands there: no lock covers"
    assert fetched_programs.read(Trees(tree(files))) == ((f"a.py:{line} {says} that program",) if line else ())


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from faster_whisper import WhisperModel\n", "faster_whisper"),
        ('w = import_module("ctranslate2")\n', "ctranslate2"),
        ("from faster_whisper.audio import pad_or_trim\n", ""),
    ],
)
def test_what_computes_on_the_cpu_without_cuda_is_named(code: str, name: str) -> None:
    known = f"upstream computes with {name}, which knows only CUDA and the CPU"
    trees = Trees(tree({"a.py": code, "b.py": code}))
    told, later = (device_switches.on_cpu_without_cuda(trees, come_to) for come_to in ([], [PurePosixPath("b.py")]))
    assert told == ((f"{known}; without CUDA it computes on the CPU: a.py:1",) if name else ())
    assert later == tuple(one.replace("a.py", "b.py") for one in told)


@pytest.mark.parametrize(
    ("given", "is_told"),
    [
        ("'base', device=device", True),
        ("'base', 'cuda' if torch.cuda.is_available() else 'cpu'", True),
        ("'base', device='cpu'", False),
        ("'base'", False),
        ("size, compute_type=kind", False),
    ],
)
def test_device_that_torch_chooses_is_told_for_rocm(given: str, is_told: bool) -> None:
    trees = Trees(tree({"a.py": f"import faster_whisper\nmodel = faster_whisper.WhisperModel({given})\n"}))
    (told,) = device_switches.on_cpu_without_cuda(trees, [])
    says = "; on ROCm torch calls its card cuda too, and with that it fails: see which device it is given at a.py:2"
    assert told.endswith(says) is is_told


def test_device_is_told_where_the_model_of_that_library_gets_it() -> None:
    code = "def {}():\n    from {} import load_model\n    return load_model(name, device)\n"
    trees = Trees(tree({"a.py": code.format("first", "whisper") + code.format("second", "whisperx")}))
    (told,) = device_switches.on_cpu_without_cuda(trees, [])
    assert "on the CPU: a.py:5; on ROCm" in told
    assert told.endswith("is given at a.py:6")


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("if sys.version_info < (3, 12):\n    raise RuntimeError\n", 2),
        ("if sys.version_info >= (3, 11):\n    sys.exit(1)\n", 2),
        ("if sys.version_info[:2] != (3, 10):\n    if strict:\n        exit(1)\n", 3),
        ("def f():\n    a, b, *_ = sys.version_info\n    if b == 10:\n        return\n    raise Wrong(b)\n", 5),
        ("if sys.version_info < (3, 8):\n    raise RuntimeError\n", None),
        ("if sys.version_info > (3, 8):\n    import tomllib\nelse:\n    raise RuntimeError\n", None),
        ("print(sys.version_info)\nraise RuntimeError\n", None),
        ("def f():\n    if sys.version_info >= (3, 11):\n        ...\n    raise RuntimeError\n", None),
    ],
)
def test_end_by_the_version_of_python_is_told_where_the_program_comes_to_it(code: str, line: int | None) -> None:
    trees, path = Trees(tree({"a.py": code})), PurePosixPath("a.py")
    pythons = [Version("3.11"), Version("3.12")]
    says = "may end the program by the version of Python: see which it allows, as the profiles have 3.11, 3.12"

    assert python_limits.of_code(trees, {path: ()}, pythons) == ((f"a.py:{line} {says}",) if line else ())
    assert python_limits.of_code(trees, {path: range(9)}, pythons) == python_limits.of_code(trees, {}, pythons) == ()


def test_issues_are_ranked_by_what_they_stop() -> None:
    def issue(name: str, places: int) -> Issue:
        found = tuple(Finding(path=PurePosixPath("a.py"), line=n, text="x") for n in range(places))
        return Issue(name=name, title="", means="", found=found, remedy="")

    listed = [
        issue("sdist-only", 9),
        issue("device-helper", 1),
        issue("torch-load-weights-only", 2),
        issue("editable", 1),
    ]

    assert [(one.name, findings.stops(one)) for one in findings.ranked(listed)] == [
        ("editable", "stops the start"),
        ("torch-load-weights-only", "stops the first use"),
        ("device-helper", "stops the first use"),
        ("sdist-only", "slower"),
    ]
