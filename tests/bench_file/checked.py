"""A bench file checked by the imported harness, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import json, pathlib, sys, torch
from inductor_probe.harness.bench import Bench
from inductor_probe.harness.load import BenchText
from inductor_probe.harness.references import check_all, plain_check
path = pathlib.Path(sys.argv[1])
with torch.no_grad():
    _, pristine, checks = check_all(Bench(BenchText(path, path.read_text()).load().namespace), 0)
print(json.dumps([plain_check(check) for check in (pristine, *checks)]))
"""


def check(path: Path) -> dict[str, dict[str, Any]]:
    """Return the check of each variant in a bench file, by name; nothing is timed."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return {each["name"]: each for each in json.loads(ended.stdout.splitlines()[-1])}
