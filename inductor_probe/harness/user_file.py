"""A Python file of the user's, run as a module: a scenario, or decompositions to try."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def import_file(path: Path) -> ModuleType:
    """Run a Python file as a module, not as the main program, with its folder first on the path for imports.

    It gets its own name in `sys.modules`, or another one where a module has that name already: a `torch.py`
    of the user's does not take the place of torch.

    Raises:
        ImportError: its name does not end in `.py`. And whatever the file itself raises.
    """
    path = path.absolute()
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_of_probe"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
