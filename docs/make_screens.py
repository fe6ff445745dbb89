"""Make the pictures of the README from real runs: `make screens`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

SCREENS = Path(__file__).parent / "screens"
CHECKOUT = Path(__file__).parents[1]
WIDTH = 100
PROBE = [sys.executable, "-m", "inductor_probe"]


def run(command: list[str], cwd: Path) -> str:
    """Run `probe` as on a terminal; return what it printed on both streams."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    ended = subprocess.run(
        [*PROBE, *command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return ended.stdout.replace(str(cwd), "~").replace(str(CHECKOUT), "~/checkout")


def save(name: str, command: list[str], cwd: Path) -> None:
    """Save the screen of a command as `screens/<name>.svg`."""
    lines = [line for line in run(command, cwd).splitlines() if "debug trace:" not in line]
    console = Console(record=True, width=WIDTH, file=StringIO(), markup=False, highlight=False)
    console.print(Text(f"$ probe {' '.join(command)}", style="bold"))
    console.print(Text.from_ansi("\n".join(lines)))
    console.save_svg(str(SCREENS / f"{name}.svg"), title=f"probe {command[0]}")


def main() -> None:
    """Dump, look and time in an empty folder."""
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        cwd = Path(folder)
        save("dump", ["dump", "check_interpolate_bilinear_aa.py", "--case", "separable_channels_last"], cwd)
        save("layouts", ["layouts"], cwd)
        save("why", ["why"], cwd)
        save("show", ["show", "op1"], cwd)
        run(["dump", "check_hflip.py", "--case", "channels_last"], cwd)
        save("bench", ["bench-kernel"], cwd)


if __name__ == "__main__":
    main()
