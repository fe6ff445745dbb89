"""Python runs this at its start in each process below a dumped script: the folder is first in PYTHONPATH.

A process that imports torch is followed from then on as the script is; any other is left alone. The user's
own `sitecustomize`, which this one hides, is run then. Nothing is imported here that a Python without torch,
or another Python than that of the dump, may lack. torch's compile workers never come here: torch gives them
its `sys.path` as PYTHONPATH (`python_subprocess_env` in torch/_inductor/utils.py), which lacks this folder.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_FOLDER = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes as long to import as Python to start
_STAGING = "INDUCTOR_PROBE_STAGING"
_NO_SCRIPT = "compile_worker"


class _AtTorch:
    """A finder of nothing: it only learns that torch is about to be imported."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        _follow(os.environ.get(_STAGING, ""))
        # Hooks for `torch` itself stand in front of the finder that importlib asks next.
        specs = (finder.find_spec(name, path, target) for finder in list(sys.meta_path))
        return next((spec for spec in specs if spec is not None), None)


def _follow(staging: str) -> None:
    if not os.path.isdir(staging) or any(_NO_SCRIPT in word for word in sys.orig_argv):  # noqa: PTH112
        return  # the dump has ended
    try:
        from inductor_probe.capture.child import follow  # noqa: PLC0415 - most processes import no torch
    except ImportError as error:  # another Python than that of the dump
        print(f"warning: probe dump cannot follow {sys.executable}: {error}", file=sys.stderr)
        return
    follow(staging)


def _run_hidden() -> None:
    """Run the `sitecustomize` that would have been found without this one, as if it had been."""
    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]  # noqa: PTH100 - see above
if _STAGING in os.environ:
    sys.meta_path.insert(0, _AtTorch())
_run_hidden()
