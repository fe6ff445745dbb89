"""A bench file checked by the imported harness, in a process of its own: that of this file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from inductor_probe.executors.server import ENVIRONMENT


def check(path: Path) -> dict[str, dict[str, Any]]:
    """Return the check of each variant in a bench file, by name; nothing is timed."""
    ended = subprocess.run(
        [sys.executable, __file__, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **ENVIRONMENT},
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return {each["name"]: each for each in json.loads(ended.stdout.splitlines()[-1])}


def main() -> None:
    """Check the bench file that the command line names, and print the checks as JSON."""
    import torch  # noqa: PLC0415 - who asks for a check need not have it

    from inductor_probe.harness.bench import Bench  # noqa: PLC0415 - it imports torch
    from inductor_probe.harness.load import BenchText  # noqa: PLC0415
    from inductor_probe.harness.references import check_all, plain_check  # noqa: PLC0415

    path = Path(sys.argv[1])
    with torch.no_grad():
        _, pristine, checks = check_all(Bench(BenchText(path, path.read_text()).load().namespace), 0)
    print(json.dumps([plain_check(check) for check in (pristine, *checks)]))


if __name__ == "__main__":
    main()
