"""The rows of the comparison: what the hand-made tree changed, and the checks that show what became of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from comparison import checks, files


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One question about one change of the hand-made tree."""

    change: str
    check: str
    says: str
    """What must hold."""


def _rows(change: str, *asked: Callable[..., checks.Verdict]) -> tuple[Row, ...]:
    """Make the rows of one change; what must hold is the docstring of the check."""
    return tuple(Row(change=change, check=c.__name__, says=(c.__doc__ or "").strip().rstrip(".")) for c in asked)


ROWS = (
    *_rows(
        "`requirements.txt`: transformers",
        files.transformers_fit_coqui,
        files.whisper_leaves_tokenizers_alone,
        files.requirements_keep_their_bytes,
    ),
    *_rows(
        "`requirements_filtered.txt`",
        files.requirement_lists_are_utf8,
    ),
    *_rows(
        "`scripts/modeldownloader.py`: bare `return`",
        checks.installer_starts_nothing,
        checks.installer_says_so,
        checks.install_package_starts_nothing,
        checks.torch_installer_starts_nothing,
        checks.old_tts_is_not_upgraded,
        checks.old_stream2sentence_is_not_upgraded,
        checks.downloader_as_a_script_starts_nothing,
        checks.start_installs_nothing,
        checks.start_with_rvc_installs_nothing,
        checks.rvc_script_installs_nothing,
        files.nothing_is_left_behind_a_return,
    ),
    *_rows(
        "`denoiser/train.py`, `enhancer/train.py`",
        checks.imports_without_deepspeed,
        checks.imports_with_a_broken_deepspeed,
        checks.loaders_say_what_is_missing,
    ),
    *_rows(
        "`utils/distributed.py`",
        checks.distributed_says_what_is_missing,
        checks.card_is_chosen_only_where_there_is_one,
    ),
    *_rows(
        "`utils/engine.py`",
        checks.engine_says_what_is_missing,
        checks.clipping_is_not_silently_off,
    ),
    *_rows(
        '`tts_funcs.py`: `self.device = "cpu"`',
        checks.started_plainly_it_takes_the_processor,
        checks.device_of_the_command_line_counts,
        checks.enhancing_takes_the_chosen_device,
        checks.voice_conversion_asks_no_card,
        checks.voice_conversion_says_what_it_needs,
        checks.whisper_asks_what_knows_the_card,
        checks.training_loads_whisper_on_a_processor,
        checks.page_offers_what_the_processor_can,
    ),
    *_rows(
        "`tts_funcs.py`: `load_local_model`",
        checks.model_is_the_one_that_was_loaded,
        checks.model_is_moved_to_its_device,
    ),
    *_rows(
        "`tts_funcs.py`: `switch_model_device`",
        checks.low_memory_mode_moves_the_model,
    ),
    *_rows(
        "`tts_funcs.py`: `get_or_create_latents`",
        checks.latents_are_computed_on_the_processor,
        checks.failing_speaker_leaves_the_model_where_it_was,
    ),
    *_rows(
        "`start_xtts_webui.*`",
        files.shell_script_asks_for_what_is_there,
        files.batch_file_asks_for_what_is_there,
        files.batch_file_sets_nothing_without_effect,
    ),
)
"""Each must hold for ours, and fail for one of the other two; otherwise it would prove nothing."""

RESOLVED = (
    Row(change="`install*.bat`, `fix_*.bat`", check="resolves", says="one set of packages satisfies the requirements"),
    Row(change="`fix_av*.bat`", check="av", says="av has a wheel and still knows `metadata_errors`"),
    Row(change="`fix_torch.bat`", check="torch", says="torch and torchaudio are of one version"),
    Row(change="`gradio_client/utils.py`", check="pydantic", says="pydantic is one that gradio 4.43 bears"),
)
"""Asked of uv, only with `--resolve`."""
