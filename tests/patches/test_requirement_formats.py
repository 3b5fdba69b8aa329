"""The ops on requirements in every format but pip's own: what changes, what does not, what is refused, and the bytes."""

from __future__ import annotations

import codecs
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from patchlock.model.patch import Located, Op, OutcomeKind, Refusal, Site
from patchlock.model.text_files import SourceText, decode, encode, splice
from patchlock.patches.ops.requirements.ops import AddRequirement, DropRequirement, RenameRequirement, SetRequirement


def set_to(specifier: str, name: str = "torch", within: str = "") -> SetRequirement:
    return SetRequirement(name=canonicalize_name(name), specifier=SpecifierSet(specifier), within=within)


def drop(name: str = "torch", within: str = "") -> DropRequirement:
    return DropRequirement(name=canonicalize_name(name), within=within)


def add(requirement: str, within: str = "") -> AddRequirement:
    return AddRequirement(requirement=Requirement(requirement), within=within)


def rename(to: str, name: str = "torch", within: str = "") -> RenameRequirement:
    return RenameRequirement(name=canonicalize_name(name), to=Requirement(to), within=within)


def read(path: str, data: bytes) -> SourceText:
    source = decode(PurePosixPath(path), data)
    assert isinstance(source, SourceText)
    return source


def patched(op: Op, path: str, data: bytes) -> bytes:
    """Apply an op, and see that it settles: the second time there is nothing to edit."""
    source = read(path, data)
    located = op.locate(source)
    assert not located.refusals
    assert located.sites
    result = encode(splice(source, located.edits))
    again = op.locate(read(path, result))
    assert not again.edits
    assert not again.refusals
    return result


TOML, CFG, PY, YML = "app/pyproject.toml", "setup.cfg", "setup.py", "environment.yml"


def project(listed: str) -> str:
    return f"[project]\ndependencies = {listed}\n"


def poetry(lines: str) -> str:
    return f'[tool.poetry.dependencies]\npython = "^3.10"\n{lines}\n\n[other]\ntorch = "1"\n'


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        pytest.param("setup.cfg", "[options]\ninstall_requires =\n  a\n  b\n", 5, id="cfg"),
        pytest.param("environment.yml", "dependencies:\n- pip:\n  - a\n- b\n", 4, id="conda"),
    ],
)
def test_added_requirement_is_told_by_its_own_line(path: str, text: str, line: int) -> None:
    source = decode(PurePosixPath(path), text.encode())
    assert isinstance(source, SourceText)
    assert [site.line for site in add("z").locate(source).sites] == [line]


def options(lines: str) -> str:
    return f"[options]\ninstall_requires ={lines}\npython_requires = >=3\n"


def setup(listed: str) -> str:
    return f"from setuptools import setup\nsetup(name='torch', install_requires={listed})\n"


def conda(lines: str) -> str:
    return f"name: torch\ndependencies:\n{lines}\nprefix: /torch\n"


CHANGES = [
    # pyproject.toml: lists of strings
    *(
        pytest.param(op, TOML, project(before), project(after), id=f"toml-{why}")
        for op, before, after, why in (
            (set_to("==2"), '["a", "torch>=1 ; os_name==\'nt\'"]', '["a", "torch==2 ; os_name==\'nt\'"]', "set-marker"),
            (set_to("==2"), "['Torch[x] >= 1']", "['Torch[x] == 2']", "set-literal-string-spaced"),
            (set_to("==2"), r'["torch; os_name == \"nt\""]', r'["torch==2; os_name == \"nt\""]', "set-before-escapes"),
            (set_to("==2"), '["torch>=2.1+cu118"]', '["torch==2"]', "set-unreadable-specifier"),
            (set_to("==2"), '["torch @ https://h/t.zip"]', '["torch==2"]', "set-url"),
            (set_to("==2"), '["torch", "TORCH<1"]', '["torch==2", "TORCH==2"]', "set-twice"),
            (drop(), '["torch"]', "[]", "drop-only"),
            (drop(), '["torch", "b"]', '["b"]', "drop-first"),
            (drop(), '["a", "torch", "b"]', '["a", "b"]', "drop-middle"),
            (drop(), '["a", "torch"]', '["a"]', "drop-last"),
            (drop(), '[ "a", "torch", ]', '[ "a", ]', "drop-last-with-comma"),
            (drop(), '["torch", "a", "torch<2", "torch"]', '["a"]', "drop-all-around"),
            (drop(), '[\n  # c\n  "a", # a\n  "torch", # t\n  "b", # b\n]', '[\n  # c\n  "a", # a\n  "b", # b\n]', "drop-line-with-comment"),
            (drop(), '[\n  "a", # a\n  # c\n  "torch" # t\n]', '[\n  "a" # a\n  # c\n]', "drop-last-line-without-comma"),
            (drop(), '[\n  "a",\n  "torch", "b"]', '[\n  "a",\n  "b"]', "drop-at-line-start"),
            (add("z>=1"), "[]", '["z>=1"]', "add-to-empty"),
            (add("z>=1"), "['a']", "['a', 'z>=1']", "add-in-line-in-its-quotes"),
            (add("z>=1"), '["a", ]', '["a", "z>=1", ]', "add-behind-comma"),
            (add("z>=1"), '[\n\t"a",\n\t"b" # c\n]', '[\n\t"a",\n\t"b", # c\n\t"z>=1"\n]', "add-line-without-comma"),
            (add("z>=1"), '[\n  "a", # c\n]', '[\n  "a", # c\n  "z>=1",\n]', "add-line-with-comma"),
            (add("z>=1"), '[\n  "a"]', '[\n  "a",\n  "z>=1"]', "add-before-bracket-on-the-line"),
            (add("z>=1"), "[\n  # none\n]", '[\n  # none\n    "z>=1",\n]', "add-behind-comment"),
            (add('z; os_name == "nt"'), '["a"]', '["a", "z; os_name == \'nt\'"]', "add-marker-in-other-quotes"),
            (rename("t"), '["torch[x] >=1 ; os_name==\'nt\'"]', '["t[x] ; os_name==\'nt\'"]', "rename"),
        )
    ),
    pytest.param(set_to("==2"), TOML, '[project.optional-dependencies]\na = ["torch"]\nb = ["torch<2"]\n', '[project.optional-dependencies]\na = ["torch==2"]\nb = ["torch==2"]\n', id="toml-extras"),
    pytest.param(set_to("==2", within="project.optional-dependencies.b"), TOML, '[project.optional-dependencies]\na = ["torch"]\nb = ["torch<2"]\n', '[project.optional-dependencies]\na = ["torch"]\nb = ["torch==2"]\n', id="toml-one-extra"),
    pytest.param(drop(), TOML, '[dependency-groups]\na = ["torch", {include-group = "b"}]\n"b" = []\n', '[dependency-groups]\na = [{include-group = "b"}]\n"b" = []\n', id="toml-groups"),
    pytest.param(set_to("==2"), TOML, 'project.dependencies = ["torch"]\n', 'project.dependencies = ["torch==2"]\n', id="toml-dotted"),
    pytest.param(set_to("==2"), TOML, 'project = {dependencies = ["torch"]}\n', 'project = {dependencies = ["torch==2"]}\n', id="toml-inline-table"),
    pytest.param(set_to("==2"), TOML, '[tool.uv]\ndev-dependencies = ["torch"]\n[tool.pdm.dev-dependencies]\nx = ["torch"]\n', '[tool.uv]\ndev-dependencies = ["torch==2"]\n[tool.pdm.dev-dependencies]\nx = ["torch==2"]\n', id="toml-uv-and-pdm"),
    pytest.param(set_to("==2", within="build-system.requires"), TOML, '[build-system]\nrequires = ["torch"]\n', '[build-system]\nrequires = ["torch==2"]\n', id="toml-build-when-asked"),
    pytest.param(add("z", within="dependency-groups.a"), TOML, '[dependency-groups]\na = ["torch"]\n', '[dependency-groups]\na = ["torch", "z"]\n', id="toml-add-to-a-group"),
    # pyproject.toml: Poetry
    *(
        pytest.param(op, TOML, poetry(before), poetry(after), id=f"poetry-{why}")
        for op, before, after, why in (
            (set_to("==2"), 'Torch = "^1.2" # c', 'Torch = "==2" # c', "set-caret"),
            (set_to(""), "torch = '~1'", "torch = '*'", "set-unpins"),
            (set_to("==2"), 'torch = {version = "1", extras = ["x"]}', 'torch = {version = "==2", extras = ["x"]}', "set-table"),
            (set_to("==2"), '\n[tool.poetry.dependencies.torch]\nversion = "1"', '\n[tool.poetry.dependencies.torch]\nversion = "==2"', "set-table-with-header"),
            (set_to("==2"), '[tool.poetry.group.dev.dependencies]\ntorch = "1"', '[tool.poetry.group.dev.dependencies]\ntorch = "==2"', "set-group"),
            (drop(), 'a = "1"\ntorch = {git = "https://h"} # c\nb = "1"', 'a = "1"\nb = "1"', "drop-git"),
            (drop(), 'torch = [\n  {version = "1", python = "<3"},\n  {version = "2", python = ">=3"},\n]\nb = "1"', 'b = "1"', "drop-several"),
            (drop(), 'b = "1"\n\n[tool.poetry.dependencies.torch]\nversion = "1"', 'b = "1"', "drop-table-with-header"),
            (add("z>=1"), 'b = "1" # c', 'b = "1" # c\nz = ">=1"', "add"),
            (add("z"), 'b = "1"', 'b = "1"\nz = "*"', "add-unbounded"),
            (add("z-z==2"), 'z_z = {version = "*", optional = true} # c\nb = "1"', 'z_z = "==2" # c\nb = "1"', "add-what-an-extra-asks-for"),
            (rename("z.z==2"), 'torch = "1" # c', '"z.z" = "==2" # c', "rename-to-a-quoted-key"),
        )
    ),
    # setup.cfg
    *(
        pytest.param(op, CFG, options(before), options(after), id=f"cfg-{why}")
        for op, before, after, why in (
            (set_to("==2"), "\n    a\n    torch >=1; os_name=='nt'  # c", "\n    a\n    torch ==2; os_name=='nt'  # c", "set"),
            (set_to("==2"), " torch", " torch==2", "set-in-line"),
            (set_to("==2"), " torch\n  a", " torch==2\n  a", "set-in-line-of-several"),
            (drop(), "\n\n    # torch\n    torch\n\n    a", "\n\n    # torch\n\n    a", "drop-beside-comments"),
            (drop(), " torch", "", "drop-in-line"),
            (add("z; os_name=='nt'"), "\n\ta\n\tb", '\n\ta\n\tb\n\tz; os_name == "nt"', "add-in-its-indentation"),
            (add("z"), "", "\n    z", "add-to-empty"),
            (rename("t"), "\n    torch[x]>1", "\n    t[x]", "rename"),
        )
    ),
    pytest.param(set_to("==2"), CFG, "[options.extras_require]\nx = torch\nY: \n  torch\n", "[options.extras_require]\nx = torch==2\nY: \n  torch==2\n", id="cfg-extras"),
    # setup.py
    *(
        pytest.param(op, PY, setup(before), setup(after), id=f"py-{why}")
        for op, before, after, why in (
            (add("z; os_name=='nt'"), '["a"]', '["a", "z; os_name == \'nt\'"]', "add-with-a-marker"),
            (set_to("==2"), '["a", \'torch[x]>1\']', '["a", \'torch[x]==2\']', "set-in-its-quotes"),
            (set_to("==2"), "('torch',)", "('torch==2',)", "set-tuple"),
            (drop(), '[\n    "torch",  # c\n    "a"\n]', '[\n    "a"\n]', "drop-line"),
            (add("z"), "['a']", "['a', 'z']", "add"),
            (rename("t>=1"), '["torch"]', '["t>=1"]', "rename"),
        )
    ),
    pytest.param(set_to("==2"), PY, 'R = ["torch"]\nsetup(install_requires=R, extras_require={"all": R})\n', 'R = ["torch==2"]\nsetup(install_requires=R, extras_require={"all": R})\n', id="py-variable-used-twice"),
    pytest.param(set_to("==2"), PY, 'D = ["torch"]\nE = {"d": D}\nsetuptools.setup(extras_require=E)\n', 'D = ["torch==2"]\nE = {"d": D}\nsetuptools.setup(extras_require=E)\n', id="py-variables-in-extras"),
    pytest.param(drop(), PY, 'é = "é"; setup(setup_requires=["é", "torch"], extras_require={"x": ["torch"]})\n', 'é = "é"; setup(setup_requires=["é"], extras_require={"x": []})\n', id="py-columns-are-characters"),
    # environment.yml
    *(
        pytest.param(op, YML, conda(before), conda(after), id=f"yml-{why}")
        for op, before, after, why in (
            (set_to("==2"), "  - pytorch::torch=1.2=cuda12 # c\n  - a", "  - pytorch::torch==2 # c\n  - a", "set-channel-and-build"),
            (set_to("==2.1.*"), "- torch", "- torch=2.1", "set-fuzzy"),
            (set_to("<3,>=2"), "- 'torch 1.2'", "- 'torch<3,>=2'", "set-quoted"),
            (set_to("==2"), "- torch[version='1|2']", "- torch==2", "set-unreadable"),
            (set_to("==2"), "- pip:\n  - -r x.txt\n  - torch[x]>1 # c", "- pip:\n  - -r x.txt\n  - torch[x]==2 # c", "set-pip"),
            (drop(), "  - a\n  - torch\n  - pip:\n    - torch # c\n    - b", "  - a\n  - pip:\n    - b", "drop"),
            (drop(), "  - a\n  - pip: # c\n    - torch\n    - torch", "  - a", "drop-all-of-pip"),
            (drop(), "  - a\n  - pip: [torch, b]", "  - a\n  - pip: [b]", "drop-flow"),
            (add("z>=1"), "- a\n- pip:\n    - b # c", "- a\n- pip:\n    - b # c\n    - z>=1", "add-below-pip"),
            (add("z>=1", within="dependencies"), "- a", "- a\n- z>=1", "add-to-conda"),
            (rename("t=="+"2"), "- c::torch=1=h\n- pip:\n  - torch[x]", "- c::t==2\n- pip:\n  - t[x]==2", "rename"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("op", "path", "before", "after"), CHANGES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_changes(op: Op, path: str, before: str, after: str, newline: str) -> None:
    written = before.replace("\n", newline).encode()
    assert patched(op, path, written).decode() == after.replace("\n", newline)


UNTOUCHED = [
    pytest.param(set_to("==2"), TOML, '[build-system]\nrequires = ["torch"]\n[x]\ndependencies = ["torch"]\n', (), id="toml-build-and-others"),
    pytest.param(set_to("==2"), TOML, project('["torchaudio", "a[torch]", "x @ https://h/torch"] # torch'), (), id="toml-other-names"),
    pytest.param(set_to("==2"), TOML, project('["torch == 2.0"]'), (Site(line=2, text="torch == 2.0"),), id="toml-as-wanted"),
    pytest.param(set_to(">=1.2,<2"), TOML, poetry('torch = "^1.2"'), (Site(line=3, text='torch = "^1.2"'),), id="poetry-caret-as-wanted"),
    pytest.param(set_to("<0.3,>=0.2.1"), TOML, poetry('torch = "^0.2.1"'), (Site(line=3, text='torch = "^0.2.1"'),), id="poetry-caret-of-zero"),
    pytest.param(set_to("<1.3,>=1.2.3"), TOML, poetry('torch = "~1.2.3"'), (Site(line=3, text='torch = "~1.2.3"'),), id="poetry-tilde"),
    pytest.param(drop("python"), TOML, poetry('a = "1"'), (), id="poetry-python"),
    pytest.param(drop(), CFG, "[metadata]\nname = torch\n[options]\npackages =\n  torch\n[torch]\ninstall_requires =\n  torch\n", (), id="cfg-other-options"),
    pytest.param(drop(), CFG, options("\n    a  # torch\n    # torch\n    torch-x"), (), id="cfg-comments"),
    pytest.param(drop(), PY, "x = ['torch']\nsetup(name='torch', keywords=['torch'])\n", (), id="py-other-keywords"),
    pytest.param(set_to("==1.2.*"), YML, conda("- torch=1.2"), (Site(line=3, text="torch=1.2"),), id="yml-fuzzy-as-wanted"),
    pytest.param(set_to("==1.2"), YML, conda("- torch=1.2=h"), (Site(line=3, text="torch=1.2=h"),), id="yml-build-as-wanted"),
    pytest.param(drop(), YML, conda("- a # torch\n- c::pytorch\n- pip:\n  - -f torch"), (), id="yml-other-names"),
    pytest.param(add("a"), TOML, project('["a"]'), (Site(line=2, text="a"),), id="toml-present"),
    pytest.param(rename("a"), CFG, options("\n  a"), (Site(line=3, text="a"),), id="cfg-renamed-upstream"),
    pytest.param(drop(), YML, "dependencies:\n", (), id="yml-empty"),
    pytest.param(drop(), YML, conda("- _libgcc_mutex=0.1=main\n- __glibc"), (), id="yml-names-of-conda"),
    pytest.param(drop(), TOML, poetry('"a b" = "1"'), (), id="poetry-name-with-a-blank"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "path", "text", "settled"), UNTOUCHED)
def test_leaves_alone(op: Op, path: str, text: str, settled: tuple[Site, ...]) -> None:
    assert op.locate(read(path, text.encode())) == Located(settled=settled)


COMPUTED = "`install_requires` is computed here, and what it gives is known only when it runs"
AMBIGUOUS, UNPARSABLE = OutcomeKind.AMBIGUOUS, OutcomeKind.UNPARSABLE
REFUSED = [
    pytest.param(drop(), "poetry.lock", "", 1, AMBIGUOUS, "poetry.lock is a lock; it must be locked again, not edited", id="poetry-lock"),
    pytest.param(drop(), "uv.lock", "", 1, AMBIGUOUS, "uv.lock is a lock; it must be locked again, not edited", id="uv-lock"),
    pytest.param(drop(), "a/Pipfile", "", 1, UNPARSABLE, "Pipfile is none of the files whose requirements can be edited: requirement files (.txt, .in), pyproject.toml, setup.cfg, setup.py and conda's .yml", id="unknown"),
    pytest.param(drop(), TOML, "\n\na = ]\n", 3, UNPARSABLE, "it is not TOML: invalid value", id="toml-that-does-not-parse"),
    pytest.param(drop(), CFG, "a = 1\n", 1, UNPARSABLE, "it is not an INI file: File contains no section headers.", id="cfg-that-does-not-parse"),
    pytest.param(drop(), PY, "\nx = (\n", 2, UNPARSABLE, "it does not parse: '(' was never closed", id="py-that-does-not-parse"),
    pytest.param(drop(), YML, "a: 1\nb: ]\n", 2, UNPARSABLE, "it is not one YAML document that can be read: expected the node content, but found ']'", id="yml-that-does-not-parse"),
    pytest.param(drop(), YML, "a: 1\n", 1, UNPARSABLE, "environment.yml has no list `dependencies`, so it is not a conda environment file", id="yml-of-another-kind"),
    pytest.param(drop(), YML, "x: &a [torch]\ndependencies: *a\n", 1, AMBIGUOUS, "anchors and aliases stand among the requirements", id="yml-alias"),
    pytest.param(set_to("===2"), YML, conda("- torch"), 3, AMBIGUOUS, "conda has no word for this specifier", id="yml-no-word"),
    pytest.param(rename("a[x]"), YML, conda("- torch"), 3, AMBIGUOUS, "conda has no extras, markers or URLs here; a requirement below `pip:` can have them", id="yml-extras"),
    pytest.param(add("a"), YML, conda("- b"), 1, AMBIGUOUS, "it has no list `dependencies.pip` to which a requirement could be added", id="yml-add-without-pip"),
    pytest.param(add("a"), TOML, "[x]\n", 1, AMBIGUOUS, "it has no list `project.dependencies` to which a requirement could be added", id="toml-add-without-list"),
    pytest.param(add("a", within="dependency-groups.x"), TOML, project("[]"), 1, AMBIGUOUS, "it has no list `dependency-groups.x` to which a requirement could be added", id="toml-add-to-unknown-list"),
    pytest.param(add("a>=1"), TOML, project('["a"]'), 2, AMBIGUOUS, "it already requires a, in another way; set-requirement can change it", id="toml-add-present"),
    pytest.param(set_to("==2"), TOML, poetry('torch = {git = "https://h"}'), 3, AMBIGUOUS, "it has no version, or several, in this Poetry table; set-key can change it", id="poetry-git"),
    pytest.param(set_to("==2"), TOML, poetry('torch = ["1", "2"]'), 3, AMBIGUOUS, "it has no version, or several, in this Poetry table; set-key can change it", id="poetry-several"),
    pytest.param(rename("a[x]"), TOML, poetry('torch = "1"'), 3, AMBIGUOUS, "a Poetry table takes a name and a specifier here, no extras, marker or URL; set-key can write them", id="poetry-extras"),
    pytest.param(set_to("==2"), TOML, project('["git+https://h/o/torch.git"]'), 2, AMBIGUOUS, "`git+https://h/o/torch.git` does not say what it installs, which may be torch", id="toml-location"),
    pytest.param(set_to("==2"), TOML, project('["torch 2"]'), 2, UNPARSABLE, "it mentions torch and cannot be read: it is not a requirement that pip can read: expected semicolon (after name with no version specifier) or end, at `2`", id="toml-unreadable"),
    pytest.param(add("z; os_name == 'x\"'"), TOML, project('["a"]'), 2, AMBIGUOUS, "there is no place for another requirement", id="toml-both-quotes"),
    pytest.param(drop(), CFG, options(" a; torch"), 2, UNPARSABLE, "it mentions torch and cannot be read: semicolons separate the requirements of this line", id="cfg-semicolons"),
    pytest.param(drop(), CFG, options(" file: r.txt"), 2, AMBIGUOUS, "`options.install_requires` is read from elsewhere (`file: r.txt`), which must be patched instead", id="cfg-file"),
    *(
        pytest.param(drop(), PY, text, line, AMBIGUOUS, COMPUTED, id=f"py-{why}")
        for why, text, line in (
            ("call", setup("read('r.txt')"), 2),
            ("sum", setup("['a'] + b"), 2),
            ("star", setup("[*a]"), 2),
            ("f-string", setup("[f'{a}']"), 2),
            ("parentheses", setup("[('a')]"), 2),
            ("loop", setup("[x for x in y]"), 2),
            ("changed-variable", "R = ['a']\nR.append('b')\nsetup(install_requires=R)\n", 3),
            ("variable-given-twice", "R = ['a']\nR = ['b']\nsetup(install_requires=R)\n", 3),
            ("variable-of-a-function", "def f():\n    R = ['a']\n    setup(install_requires=R)\n", 3),
        )
    ),
    pytest.param(drop(), PY, "setup(**k)\n", 1, AMBIGUOUS, COMPUTED.replace("install_requires", "setup(**)"), id="py-keywords"),
    pytest.param(drop(), PY, "setup(extras_require={x: ['a']})\n", 1, AMBIGUOUS, COMPUTED.replace("install_requires", "extras_require"), id="py-computed-extra"),
    pytest.param(drop(), PY, setup("'torch'"), 2, UNPARSABLE, "it mentions torch and cannot be read: it is one string; a list of strings can be edited", id="py-one-string"),
    pytest.param(drop(), PY, setup("['tor' 'ch']"), 2, UNPARSABLE, "it mentions torch and cannot be read: it is put together from several strings or escapes", id="py-joined"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "path", "text", "line", "kind", "why"), REFUSED)
def test_refuses(op: Op, path: str, text: str, line: int, kind: OutcomeKind, why: str) -> None:
    located = op.locate(read(path, text.encode()))
    assert located == Located(refusals=(Refusal(line=line, kind=kind, why=why),))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (TOML, project('["é", "torch" ] \t# ü')),
        (CFG, options("\n  é\n\n  torch \t")),
        (PY, setup('["é", "torch" \t# ü\n\f]')),
        (YML, conda("- é\n-   torch # ü")),
    ],
    ids=["toml", "cfg", "py", "yml"],
)
@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
def test_bytes_outside_the_change_are_kept(path: str, text: str, bom: bytes) -> None:
    data = bom + text.replace("\n", "\r\n").encode()
    at = data.index(b"torch", data.index("é".encode()))
    assert patched(set_to("==2"), path, data) == data[:at] + b"torch==2" + data[at + 5 :]


NAMES = st.sampled_from(("a", "b>=1", "torch", "torch<2", "Torch[x]", "c; os_name=='nt'"))
GAPS = st.sampled_from((" ", "", "\n  ", " # torch, c\n  ", "\r\n"))


@given(st.lists(st.tuples(GAPS, NAMES, GAPS), max_size=6), st.booleans(), st.sampled_from([PY, TOML]))
def test_drop_keeps_the_others_in_order(items: list[tuple[str, str, str]], comma: bool, path: str) -> None:
    listed = ",".join(f'{before}"{name}"{after}' for before, name, after in items)
    trailing = ", " if comma and items else ""
    text = f"setup(install_requires=[{listed}{trailing}])\n" if path == PY else project(f"[{listed}{trailing}]")
    source = read(path, text.encode())
    result = splice(source, drop().locate(source).edits).text
    kept = [f'"{name}"' for _, name, _ in items if not name.lower().startswith("torch")]
    assert [f'"{part}"' for part in result.split('"')[1::2]] == kept
    assert not drop().locate(read(path, result.encode())).sites
    assert [add("z").locate(read(path, result.encode())).refusals, add("z").locate(source).refusals] == [(), ()]
    for before in (text, result):
        added = splice(read(path, before.encode()), add("z").locate(read(path, before.encode())).edits).text
        assert added.split('"')[1::2] == [*before.split('"')[1::2], "z"]
        assert not add("z").locate(read(path, added.encode())).edits
