"""Our patches on real clones, for every profile; and Amphion's modules, imported where there is neither CUDA nor fairseq."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import ROOT
from shipped import APPS, CATALOGUE, PROFILES

from patchlock.catalogue import pairs
from patchlock.locks.lock_request import Request, Upstream, read_upstream
from patchlock.model.app import App, EmbeddedUpstream
from patchlock.model.patch import OutcomeKind
from patchlock.model.profile import Profile

pytestmark = pytest.mark.upstream
REAL = [app for app in APPS if not isinstance(app.upstream, EmbeddedUpstream)]
FINE = {OutcomeKind.NEEDED, OutcomeKind.FIXED_UPSTREAM, OutcomeKind.PARTLY_FIXED}


def _read(app: App, profile: Profile, source: str, folder: Path) -> Upstream:
    request = Request(
        app=app,
        profile=profile,
        platform=profile.platforms[0],
        catalogue=CATALOGUE,
        home=folder / "home",
        cache=folder / "cache",
        source=source,
        revision=app.upstream.commit,
    )
    return read_upstream(request)


@pytest.mark.parametrize("app", REAL, ids=lambda app: app.name)
def test_every_patch_applies_at_the_pinned_commit(app: App, upstreams: dict[str, str], tmp_path: Path) -> None:
    shared = {patch.id for one in app.shared for patch in one.patches}
    needed = set()
    for profile in PROFILES:
        if pairs.refused_everywhere(app, profile):
            continue
        outcomes = _read(app, profile, upstreams[app.upstream.url], tmp_path).patched
        assert outcomes.failures == ()
        own = [outcome for outcome in outcomes.outcomes if outcome.patch not in shared]
        assert [outcome for outcome in own if outcome.kind not in FINE] == [], profile.name
        needed |= {outcome.patch for outcome in own if outcome.kind is not OutcomeKind.FIXED_UPSTREAM}
        assert {o.kind for o in outcomes.outcomes if o.patch in shared} <= FINE | {OutcomeKind.GONE}, profile.name
    assert needed == {patch.id for patch in app.patches if patch.id not in shared and not patch.optional}


PARTS = [
    "models/tts/maskgct", "models/tts/metis", "models/vc/vevo", "models/codec/dualcodec/dualcodec", "models/codec/kmeans",
    "models/codec/amphion_codec", "processors/content_extractor.py", "utils/hubert.py",
]  # fmt: skip
NOT_OF_CUDA = {
    "dualcodec.infer.flattened_ar.trainer": "imports a name that upstream's package has not",
    "dualcodec.infer.valle.cli_valle_infer": "reads its arguments when it is imported",
    "dualcodec.infer.valle.f5tts_gradio": "builds its page when it is imported, of more than stubs can be",
    "dualcodec.infer.valle.gradio_valle_demo": "loads its models when it is imported",
    "dualcodec.infer.valle.infer_valle_gradio_editing": "calls a function of upstream's with too few arguments",
    "dualcodec.infer.voicebox.cli_voicebox_infer": "reads its arguments when it is imported",
    "dualcodec.model_codec.trainer": "imports a name that upstream's package has not",
}
"""Modules that cannot be imported before or after, and why."""


def _tree(clone: str, commit: str, folder: Path) -> Path:
    """Lay down upstream's code and what it reads when it is imported; a clone may lack the largest files."""
    globs = [
        ":(glob)**/*.py",
        ":(glob)**/*.json",
        ":(glob)models/tts/maskgct/g2p/sources/*pinyin*",
        ":(glob)**/polychar.txt",
    ]
    command = ["git", "-C", clone, "archive", commit, "--", *globs]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    sources = folder / "models" / "tts" / "maskgct" / "g2p" / "sources"
    (sources / "chinese_lexicon.txt").write_text("A\tB\n")
    (sources / "g2p_chinese_model" / "vocab.txt").write_text("A\n")
    return folder


def _modules(tree: Path) -> list[str]:
    found = []
    for part in PARTS:
        files = [tree / part] if part.endswith(".py") else sorted((tree / part).rglob("*.py"))
        root = tree / "models" / "codec" / "dualcodec" if "dualcodec" in part else tree
        found += [".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for file in files]
    return found


def _failing(tree: Path) -> dict[str, str]:
    paths = [str(tree), str(tree / "models" / "codec" / "dualcodec")]
    program = [sys.executable, "-I", "-S", str(ROOT / "tests" / "support" / "stubbed_imports.py")]
    answer = subprocess.run(
        [*program, json.dumps(paths), json.dumps(_modules(tree)), '["fairseq"]'],
        cwd=tree,
        capture_output=True,
        check=True,
        text=True,
    )
    return {module: why for module, why in json.loads(answer.stdout).items() if why}


def test_modules_of_amphion_import_without_cuda_and_fairseq(upstreams: dict[str, str], tmp_path: Path) -> None:
    app = CATALOGUE.app("amphion")
    clone = upstreams[app.upstream.url]
    tree = _tree(clone, app.upstream.commit, tmp_path / "tree")
    before = {module: why for module, why in _failing(tree).items() if module not in NOT_OF_CUDA}
    assert set(before) == {"models.tts.maskgct.gradio_demo", "processors.content_extractor", "utils.hubert"}
    assert "CPU" in before["models.tts.maskgct.gradio_demo"]
    assert len(_modules(tree)) > 80
    cpu = next(profile for profile in PROFILES if profile.name == "cpu")
    for change in _read(app, cpu, clone, tmp_path).patched.changes:
        if (tree / change.path).exists():
            (tree / change.path).write_bytes(change.after)
    assert set(_failing(tree)) == set(NOT_OF_CUDA)
