"""What code calls and the locked release of a library does not have any more; pure."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from patchlock.catalogue.proposals import importers
from patchlock.catalogue.proposals.findings import Finding, Issue, excerpt
from patchlock.catalogue.proposals.shared_sets import Asked
from patchlock.patches import import_graph
from patchlock.patches.import_graph import Trees


@dataclass(frozen=True, kw_only=True)
class RemovedInterface:
    """What a release of a library has taken away or changed; both releases were read on PyPI."""

    library: str
    """The distribution; modules begin with its name."""
    before: str
    """A version that has it, the last one of its series."""
    since: str
    """The first version without it."""
    file: str
    """Of the wheels, which shows it; the newer one may be without it."""
    names: tuple[str, ...]
    """Dotted, from the library's module; or of methods."""
    instead: str = ""
    """A clause; "" where nothing does what it did."""
    may_stay: bool = True
    """Keeping the library older is advice; otherwise what it says instead works with older ones too."""
    until: str = ""
    """The first version that has something of that name again; "" for none."""
    keyword: str = ""
    """The call is meant that has this argument; with `!` before it, the one that lacks it."""
    is_method: bool = False
    """Of any object: the argument shows whose it is."""
    positional: int | None = None
    """The call is meant that has more arguments without a name."""
    values: tuple[str, ...] = ()
    """The call is meant that has one of these texts after its first argument."""
    beside: str = ""
    """The distribution with which it still works; "" for none."""
    packages: str = "wheels"
    """What was read; sdists where wheels do not show it."""

    @property
    def source(self) -> str:
        """Say where both releases show it."""
        return f"{self.file} in the {self.packages} of {self.library} {self.before} and {self.since} on PyPI"

    def is_gone_from(self, version: Version) -> bool:
        """Tell whether a release is without it."""
        return version >= Version(self.since) and not (self.until and version >= Version(self.until))

    def remedy(self, asked: Asked) -> str:
        """Say what a person can do, within the bounds of what is asked for."""
        bounds = [one.requirement.specifier for one in asked.get(canonicalize_name(self.library), ())]
        ways = [self.instead] if self.instead else []
        if self.may_stay and all(one.contains(self.before, prereleases=True) for one in bounds):
            ways.append(f"keep {self.library} below {re.sub(r'(?:[.]0)+$', '', self.since)}")
        return ", or ".join(ways) or f"change the code: upstream's bounds of {self.library} leave out {self.before}"


_TRANSFORMERS = "transformers/__init__.py"
_CHUNKING = ("apply_chunking_to_forward", "find_pruneable_heads_and_indices", "prune_linear_layer")
_REMOVED = (
    RemovedInterface(
        library="torchaudio",
        before="2.8.0",
        since="2.9.0",
        file="torchaudio/__init__.py",
        names=("load", "save"),
        keyword="backend",
        instead="torchcodec reads and writes, whatever the backend; ask soundfile where one is needed",
        may_stay=False,
    ),
    RemovedInterface(
        library="torchaudio",
        before="2.8.0",
        since="2.9.0",
        file="torchaudio/__init__.py",
        names=("load", "save"),
        keyword="!backend",
        beside="torchcodec",
        instead="require torchcodec, which reads and writes since then",
    ),
    RemovedInterface(
        library="torchaudio",
        before="2.8.0",
        since="2.9.0",
        file="torchaudio/__init__.py",
        names=(
            *("info", "AudioMetaData", "list_audio_backends", "get_audio_backend", "set_audio_backend"),
            *("io", "sox_effects", "kaldi_io"),
        ),
        instead="read audio with soundfile",
    ),
    RemovedInterface(
        library="torchaudio",
        before="2.8.0",
        since="2.9.0",
        file="torchaudio/backend/__init__.py",
        names=("backend",),
        instead="read audio with soundfile",
    ),
    RemovedInterface(
        library="torch",
        before="1.13.1",
        since="2.0.0",
        file="torch/_six.py",
        names=("_six",),
        instead="take collections.abc and str",
        may_stay=False,
    ),
    RemovedInterface(
        library="torch",
        before="1.13.1",
        since="2.0.0",
        file="torch/functional.py",
        names=("stft",),
        keyword="!return_complex",
        instead="say return_complex=True, and take torch.view_as_real of the answer",
        may_stay=False,
    ),
    RemovedInterface(
        library="torchvision",
        before="0.16.2",
        since="0.17.0",
        file="torchvision/transforms/functional_tensor.py",
        names=("transforms.functional_tensor",),
        instead="take torchvision.transforms.functional",
    ),
    RemovedInterface(
        library="numpy",
        before="1.23.5",
        since="1.24.0",
        file="numpy/__init__.py",
        names=("float", "int", "object", "str", "complex"),
        instead="take Python's own type",
    ),
    RemovedInterface(
        library="numpy",
        before="1.23.5",
        since="1.24.0",
        until="2.0.0",
        file="numpy/__init__.py",
        names=("bool",),
        instead="take Python's own type",
    ),
    RemovedInterface(
        library="numpy",
        before="1.26.4",
        since="2.0.0",
        file="numpy/__init__.pyi",
        names=(
            *("float_", "complex_", "unicode_", "string_", "Inf", "Infinity", "NaN", "infty"),
            *("asfarray", "mat"),
        ),
        instead="take what numpy/_expired_attrs_2_0.py of its wheel says",
    ),
    RemovedInterface(
        library="numpy",
        before="1.26.4",
        since="2.0.0",
        file="numpy/core/fromnumeric.py",
        names=("product", "cumproduct", "alltrue", "sometrue", "round_"),
        instead="take prod, cumprod, all, any, round",
    ),
    RemovedInterface(
        library="numpy",
        before="1.26.4",
        since="2.0.0",
        file="numpy/core/numerictypes.py",
        names=("cast", "find_common_type"),
        instead="take asarray and result_type",
    ),
    RemovedInterface(
        library="numpy",
        before="1.26.4",
        since="2.0.0",
        file="numpy/lib/function_base.py",
        names=("msort",),
        instead="take sort with axis=0",
    ),
    RemovedInterface(
        library="av",
        before="11.0.0",
        since="12.0.0",
        file="av/container/core.pyx",
        packages="sdists",
        names=("open",),
        values=("rb", "wb"),
        instead='say "r" or "w", as it refuses other modes',
        may_stay=False,
    ),
    RemovedInterface(
        library="gradio",
        before="3.50.2",
        since="4.0.0",
        file="gradio/__init__.py",
        names=("inputs", "outputs", "Box", "Variable"),
    ),
    RemovedInterface(
        library="gradio",
        before="3.50.2",
        since="4.0.0",
        file="gradio/components/*.py",
        names=tuple(
            f"{name}.update"
            for name in (
                *("Audio", "Button", "Chatbot", "Checkbox", "CheckboxGroup", "Dataframe", "Dropdown", "File"),
                *("Gallery", "HTML", "Image", "Label", "Markdown", "Number", "Plot", "Radio", "Slider", "Textbox"),
                *("UploadButton", "Video"),
            )
        ),
        instead="return gr.update or the component itself",
    ),
    *(
        RemovedInterface(
            library="gradio",
            before="3.50.2",
            since="4.0.0",
            file=f"gradio/components/{name.lower()}.py",
            names=(name,),
            keyword="source",
            instead="take sources, a list",
        )
        for name in ("Audio", "Image", "Video")
    ),
    RemovedInterface(
        library="gradio",
        before="3.50.2",
        since="4.0.0",
        file="gradio/components/image.py",
        names=("Image",),
        keyword="tool",
    ),
    RemovedInterface(
        library="gradio",
        before="3.50.2",
        since="4.0.0",
        file="gradio/blocks.py",
        names=("queue",),
        is_method=True,
        keyword="concurrency_count",
        instead="take default_concurrency_limit, which 4.44.1 has",
    ),
    RemovedInterface(
        library="gradio",
        before="3.50.2",
        since="4.0.0",
        file="gradio/blocks.py",
        names=("launch",),
        is_method=True,
        keyword="enable_queue",
        instead="leave it out",
    ),
    RemovedInterface(
        library="gradio",
        before="5.49.1",
        since="6.0.0",
        file="gradio/blocks.py",
        names=("launch",),
        is_method=True,
        keyword="show_api",
        instead="take footer_links",
    ),
    RemovedInterface(
        library="gradio",
        before="5.49.1",
        since="6.0.0",
        file="gradio/components/chatbot.py",
        names=("Chatbot",),
        keyword="type",
        instead="leave it out",
    ),
    RemovedInterface(
        library="pydantic",
        before="1.10.26",
        since="2.0",
        file="pydantic/__init__.py",
        names=("BaseSettings",),
        instead="take pydantic-settings",
    ),
    RemovedInterface(
        library="librosa",
        before="0.9.2",
        since="0.10.0",
        file="librosa/core/audio.py",
        names=("resample", "load"),
        positional=1,
        instead="name the arguments",
    ),
    RemovedInterface(
        library="librosa",
        before="0.9.2",
        since="0.10.0",
        file="librosa/core/spectrum.py",
        names=("stft",),
        positional=1,
        instead="name the arguments",
    ),
    RemovedInterface(
        library="librosa",
        before="0.9.2",
        since="0.10.0",
        file="librosa/filters.py",
        names=("filters.mel",),
        positional=0,
        instead="name the arguments",
    ),
    RemovedInterface(
        library="librosa",
        before="0.9.2",
        since="0.10.0",
        file="librosa/feature/spectral.py",
        names=("feature.melspectrogram", "feature.mfcc"),
        positional=0,
        instead="name the arguments",
    ),
    RemovedInterface(
        library="scipy",
        before="1.12.0",
        since="1.13.0",
        file="scipy/signal/__init__.py",
        names=tuple(f"signal.{name}" for name in ("hann", "hamming", "blackman", "kaiser", "gaussian", "tukey")),
        instead="take scipy.signal.windows",
        may_stay=False,
    ),
    RemovedInterface(
        library="scipy",
        before="1.13.0",
        since="1.14.0",
        file="scipy/integrate/_quadrature.py",
        names=("integrate.trapz", "integrate.cumtrapz", "integrate.simps"),
        instead="take trapezoid, cumulative_trapezoid and simpson",
        may_stay=False,
    ),
    RemovedInterface(
        library="setuptools",
        before="81.0.0",
        since="82.0.0",
        file="pkg_resources/__init__.py",
        names=("pkg_resources",),
    ),
    RemovedInterface(
        library="pillow",
        before="9.5.0",
        since="10.0.0",
        file="PIL/Image.py",
        names=("Image.ANTIALIAS", "Image.LINEAR", "Image.CUBIC"),
        instead="take Image.Resampling",
        may_stay=False,
    ),
    RemovedInterface(
        library="transformers",
        before="4.24.0",
        since="4.25.0",
        file="transformers/generation_logits_process.py",
        names=("generation_logits_process",),
        instead="take transformers.generation",
    ),
    RemovedInterface(
        library="transformers",
        before="4.24.0",
        since="4.25.0",
        file="transformers/generation_stopping_criteria.py",
        names=("generation_stopping_criteria",),
        instead="take transformers.generation",
    ),
    RemovedInterface(
        library="transformers",
        before="4.24.0",
        since="4.25.0",
        file="transformers/generation_beam_search.py",
        names=("generation_beam_search",),
        instead="take transformers.generation",
    ),
    RemovedInterface(
        library="transformers",
        before="4.38.2",
        since="4.39.0",
        file=_TRANSFORMERS,
        names=("top_k_top_p_filtering",),
    ),
    RemovedInterface(
        library="transformers",
        before="4.39.3",
        since="4.40.0",
        file="transformers/generation_utils.py",
        names=("generation_utils",),
        instead="take transformers.generation",
    ),
    RemovedInterface(
        library="transformers",
        before="4.41.2",
        since="4.42.0",
        file=_TRANSFORMERS,
        names=("Conversation", "ConversationalPipeline"),
    ),
    RemovedInterface(
        library="transformers",
        before="4.45.2",
        since="4.46.0",
        file="transformers/deepspeed.py",
        names=("deepspeed",),
        instead="take transformers.integrations",
    ),
    RemovedInterface(
        library="transformers",
        before="4.48.3",
        since="4.49.0",
        file=_TRANSFORMERS,
        names=("LogitsWarper",),
        instead="take LogitsProcessor",
    ),
    RemovedInterface(
        library="transformers",
        before="4.49.0",
        since="4.50.0",
        file=_TRANSFORMERS,
        names=("AdamW",),
        instead="take torch.optim.AdamW",
    ),
    RemovedInterface(
        library="transformers",
        before="4.55.4",
        since="4.56.0",
        file="transformers/modeling_utils.py",
        names=tuple(f"modeling_utils.{name}" for name in (*_CHUNKING, "Conv1D")),
        instead="take transformers.pytorch_utils",
    ),
    RemovedInterface(
        library="transformers",
        before="4.56.2",
        since="4.57.0",
        file=_TRANSFORMERS,
        names=("BeamSearchScorer",),
    ),
    RemovedInterface(
        library="transformers",
        before="4.57.6",
        since="5.0.0",
        file=_TRANSFORMERS,
        names=(
            *("ConstrainedBeamSearchScorer", "BeamScorer", "PhrasalConstraint", "TextDataset"),
            *("TFPreTrainedModel", "FlaxPreTrainedModel", "SlidingWindowCache", "HybridCache", "OffloadedStaticCache"),
            *("TranslationPipeline", "SummarizationPipeline", "Text2TextGenerationPipeline"),
        ),
    ),
    RemovedInterface(
        library="transformers",
        before="4.57.6",
        since="5.0.0",
        file="transformers/models/auto/modeling_auto.py",
        names=("AutoModelForVision2Seq", "AutoModelWithLMHead"),
    ),
    RemovedInterface(
        library="transformers",
        before="4.57.6",
        since="5.0.0",
        file="transformers/models/clip/feature_extraction_clip.py",
        names=("CLIPFeatureExtractor",),
        instead="take CLIPImageProcessor",
    ),
    RemovedInterface(
        library="transformers",
        before="4.57.6",
        since="5.0.0",
        file="transformers/generation/utils.py",
        names=(
            *("generation.utils.GreedySearchDecoderOnlyOutput", "generation.utils.SampleDecoderOnlyOutput"),
            *("generation.utils.GreedySearchOutput", "generation.utils.SampleOutput"),
        ),
    ),
    RemovedInterface(
        library="transformers",
        before="4.57.6",
        since="5.0.0",
        file="transformers/pytorch_utils.py",
        names=("pytorch_utils.find_pruneable_heads_and_indices",),
    ),
)
_MODULES: Mapping[str, str] = {"pillow": "PIL"}


def find(
    trees: Trees, versions: Mapping[NormalizedName, Version], asked: Asked, started: Collection[PurePosixPath] = ()
) -> tuple[Issue, ...]:
    """Say what an app's code calls that is gone from the locked libraries; its start counts wherever it lies."""
    return _issues(trees, versions, asked, started)


def of_packages(trees: Trees, versions: Mapping[NormalizedName, Version], asked: Asked) -> tuple[Issue, ...]:
    """Say it of the code of packages, of which an app may use any part; none where a module is run as a program."""
    found = _issues(trees, versions, asked, (), is_imported=True)
    return tuple(dataclasses.replace(issue, is_reached=False) for issue in found)


def _issues(
    trees: Trees,
    versions: Mapping[NormalizedName, Version],
    asked: Asked,
    started: Collection[PurePosixPath],
    *,
    is_imported: bool = False,
) -> tuple[Issue, ...]:
    rows = [
        row
        for row in _REMOVED
        if (version := versions.get(canonicalize_name(row.library))) is not None
        and row.is_gone_from(version)
        and row.beside not in versions
    ]
    places: dict[RemovedInterface, list[Finding]] = {}
    for path in sorted(trees.files):
        data = trees.files[path]
        wanted = [row for row in rows if _word(row) in data]
        if not wanted or importers.is_no_part(path, started):
            continue
        module = trees.of(path)
        if module is None:
            continue
        if is_imported:
            module = ast.Module(body=[] if path.name == "__main__.py" else _imported_part(module), type_ignores=[])
        for row, node in _found(module, wanted):
            text = excerpt(ast.unparse(node))
            places.setdefault(row, []).append(Finding(path=path, line=node.lineno, text=text))
    return tuple(
        Issue(
            name="removed-interface",
            title=f"{row.library} {row.since} has changed or removed it",
            means=f"{row.library} {versions[canonicalize_name(row.library)]} is locked; {row.source}",
            found=tuple(dict.fromkeys(found)),
            remedy=row.remedy(asked),
        )
        for row, found in places.items()
    )


def _imported_part(module: ast.Module) -> list[ast.stmt]:
    return [node for node in module.body if not (isinstance(node, ast.If) and import_graph.is_main(node.test))]


def _module(row: RemovedInterface) -> str:
    return _MODULES.get(row.library, row.library)


def _word(row: RemovedInterface) -> bytes:
    return (row.names[0] if row.library == "setuptools" else _module(row)).encode()


def _found(module: ast.Module, rows: list[RemovedInterface]) -> Iterator[tuple[RemovedInterface, ast.expr | ast.stmt]]:
    known: dict[str, str] = {}
    calls: dict[int, ast.Call] = {}
    nodes = list(ast.walk(module))
    for node in nodes:
        if isinstance(node, ast.Import):
            known |= {
                one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                for one in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            known |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Call):
            calls[id(node.func)] = node
    by_name = {_dotted_name(row, name): row for row in rows for name in row.names}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _imported(node):
                row = by_name.get(name)
                if row is not None and not row.keyword and not row.values and row.positional is None:
                    yield row, node
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            dotted = _dotted(node, known)
            for row in rows:
                if _is_named(row, node, dotted) and _is_meant(row, calls.get(id(node))):
                    yield row, calls.get(id(node), node)


def _is_named(row: RemovedInterface, node: ast.Attribute | ast.Name, dotted: str) -> bool:
    if row.is_method:
        return isinstance(node, ast.Attribute) and node.attr in row.names
    return any(_dotted_name(row, name) == dotted for name in row.names)


def _dotted_name(row: RemovedInterface, name: str) -> str:
    return name if row.library == "setuptools" else f"{_module(row)}.{name}"


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names)
    elif node.level == 0 and node.module:
        yield node.module
        yield from (f"{node.module}.{one.name}" for one in node.names)


def _dotted(node: ast.expr, known: Mapping[str, str]) -> str:
    """Give the full name of an attribute of an imported module; "" for anything else, and for a bare name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *parts])


def _is_meant(row: RemovedInterface, call: ast.Call | None) -> bool:
    if row.values:
        given = [*call.args[1:], *(one.value for one in call.keywords)] if call is not None else []
        return any(isinstance(one, ast.Constant) and one.value in row.values for one in given)
    if row.positional is not None:
        return (
            call is not None
            and len(call.args) > row.positional
            and not any(isinstance(a, ast.Starred) for a in call.args)
        )
    if not row.keyword:
        return True
    if call is None or any(one.arg is None for one in call.keywords):
        return False
    has_it = any(one.arg == row.keyword.removeprefix("!") for one in call.keywords)
    return has_it is not row.keyword.startswith("!")
