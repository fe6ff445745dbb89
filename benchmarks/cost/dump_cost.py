"""What `probe dump` costs over torch's own dump of the same script: `TORCH_COMPILE_DEBUG=1 python SCRIPT`.

    python -m benchmarks.cost.dump_cost [--pairs N] [SCRIPT [ARGS ...]]

Both start with empty inductor caches every time. Target: 1.10 times.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.cost.pairs import Command, compare

SCRIPT = Path(__file__).parents[2] / "scenarios" / "check_interpolate_bilinear_aa.py"


def main() -> None:
    """Time the antialias scenario's cases for this machine, or the script given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("script", nargs="?", type=Path, default=SCRIPT)
    parser.add_argument("args", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    script, args = str(options.script.absolute()), options.args
    with tempfile.TemporaryDirectory(prefix="dump_cost_", ignore_cleanup_errors=True) as folder:
        place = Path(folder, "run")

        def empty() -> None:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()

        plain = Command(
            "TORCH_COMPILE_DEBUG=1 python",
            [sys.executable, script, *args],
            place,
            {
                "TORCH_COMPILE_DEBUG": "1",
                "TORCHINDUCTOR_CACHE_DIR": str(place / "inductor"),
                "TRITON_CACHE_DIR": str(place / "triton"),
            },
            empty,
        )
        probe = [sys.executable, "-m", "inductor_probe", "dump", script, "--", *args]
        compare(Command("probe dump", probe, place, {}, empty), plain, options.pairs)


if __name__ == "__main__":
    main()
