"""`python -m inductor_probe` is `probe`."""

import os
import sys

# `-m` puts the working folder first: standing in a stranger's dump, its `rich.py` would be imported as rich.
# What Python itself imports before this line is out of our hands: `probe` and `python -P -m` are free of it.
if not getattr(sys.flags, "safe_path", False) and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - as text
    del sys.path[0]

from inductor_probe.cli import main

if __name__ == "__main__":
    main()
