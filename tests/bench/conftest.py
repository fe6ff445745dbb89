"""A graph that was dumped on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import torch
image = torch.arange(3 * 20 * 24, dtype=torch.uint8).reshape(1, 3, 20, 24)
torch.compile(lambda x: x.flip(-1))(image)
"""


@pytest.fixture(scope="session")
def flip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a graph that was compiled on this machine."""
    folder = tmp_path_factory.mktemp("flip")
    environment = {
        **os.environ,
        "TORCH_COMPILE_DEBUG": "1",
        "TORCH_COMPILE_DEBUG_DIR": str(folder),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
    }
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True, capture_output=True)
    return next(folder.glob("torch_compile_debug/run_*/torchinductor/*/output_code.py")).parent


@pytest.fixture
def graph_dir(flip: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(flip, tmp_path / flip.name))
