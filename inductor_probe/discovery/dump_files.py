"""The names of what torch and probe write in a dump: what is worth unpacking, and what makes up a run."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from inductor_probe.files import written_under
from inductor_probe.model.assembly import REMARKS_NAME
from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.model.manifest import CONSTANTS_DIR, INPUTS_DIR, LOGS_DIR, MANIFEST_NAME
from inductor_probe.model.profile import PROFILE_NAME
from inductor_probe.model.whatif import WHATIF_NAME

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".zip")
"""How a dump is packed when someone hands it on."""
BENCH_NAME = "output_code_bench.py"
"""What `probe bench-kernel` adds to a graph, for users to edit. Its results are beside it, a `.json`.

`probe whatif` adds `output_code_bench.whatif_1.py`, and its samples.
"""

_GRAPH = r"[^/]+__[^/]*_\d+\.\d+"
_GRAPH_FILE = (
    r"ir_(?:pre|post)_fusion(?:\.\w+)?\.txt|fx_graph_(?:runnable|readable|transformed)\.py|output_code\.(?:py|cpp)|"
    r"inductor_\w+\.json|(?:debug|info)\.log|(?:orig_fx_)?graph_diagram\.\w+|compile\.(?:prof|stats)|"
    rf"autotuning_result_json_list\.txt|{re.escape(DECISIONS_NAME)}|{re.escape(REMARKS_NAME)}"
)
_OF_RUN = (MANIFEST_NAME, WHATIF_NAME, PROFILE_NAME)
_RUN_FILE = rf"{'|'.join(map(re.escape, _OF_RUN))}|{LOGS_DIR}/[^/]+\.log|torchdynamo/debug\.log"
_RUN = re.compile(
    rf"{_RUN_FILE}|torchinductor/aot_[^/]*_debug\.log|"
    rf"torchinductor/{_GRAPH}/(?:{_GRAPH_FILE}|(?:{INPUTS_DIR}|{CONSTANTS_DIR})/[^/]+\.bin)"
)
_BENCH = re.compile(
    rf"torchinductor/{_GRAPH}/{re.escape(BENCH_NAME.removesuffix('.py'))}(?:\.whatif_\d+)?\.(?:py|json)"
)
_TEXT = re.compile(rf"(?:.*/)?(?:{_GRAPH_FILE}|{re.escape(MANIFEST_NAME)}|[^/]+\.log|stderr[^/]*\.txt)")
_FOLDER = re.compile(rf"torchinductor|{_GRAPH}")
_RUN_FOLDER = re.compile(
    rf"torchdynamo|torchinductor|{LOGS_DIR}|torchinductor/{_GRAPH}(?:/(?:{INPUTS_DIR}|{CONSTANTS_DIR}))?"
)
_PROBES_FOLDERS = (INPUTS_DIR, CONSTANTS_DIR)
_NOT_TEXT = (".prof", ".svg", ".png")

Writer: TypeAlias = Literal["torch", "probe", "bench", "temporary"]


def is_archive(path: Path) -> bool:
    """Return whether `path` is named like an archive, and is a plain file."""
    return path.name.lower().endswith(ARCHIVES) and os.path.isfile(path)  # noqa: PTH113 - no name is too long for it


def is_read(name: str) -> bool:
    """Return whether the file of this name, its folders in it, is one that a reader of dumps opens.

    Folders may have been renamed, so only the last part of the path counts.
    """
    return _TEXT.fullmatch(name) is not None and not name.endswith(_NOT_TEXT)


def is_read_folder(name: str) -> bool:
    """Return whether the folder of this name means something even when it is empty: a graph, or a run's."""
    return _FOLDER.fullmatch(name.rstrip("/").rpartition("/")[2]) is not None


def writer(below_run: PurePosixPath) -> Writer | None:
    """Return who writes a file at this place in a run; None for a file that neither torch nor probe does.

    `bench` is a bench file or its results: probe makes it, and then it is the user's to edit. `temporary` is
    what probe was writing one of its files under when it was killed.
    """
    if under := written_under(below_run.name):
        return "temporary" if writer(below_run.with_name(under)) in ("probe", "bench") else None
    place = below_run.as_posix()
    if _BENCH.fullmatch(place):
        return "bench"
    if _RUN.fullmatch(place):
        probes = place.startswith((*_OF_RUN, f"{LOGS_DIR}/")) or below_run.parent.name in _PROBES_FOLDERS
        probes = probes or below_run.name in (DECISIONS_NAME, REMARKS_NAME)
        return "probe" if probes else "torch"
    return None


def is_run_folder(below_run: PurePosixPath) -> bool:
    """Return whether torch or probe makes a folder at this place in a run."""
    return _RUN_FOLDER.fullmatch(below_run.as_posix()) is not None
