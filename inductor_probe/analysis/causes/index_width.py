"""Index types of Triton kernels: what turns them (shown in `tests/proving_ground`)."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import Rules, Source

RULES = Rules(
    kinds={"int32": "passed", "int64": "missed"},
    changes={
        "numel-exceeds-int32": (Source("smaller-kernel", safe=True),),
        "buffer-exceeds-int32": (Source("smaller-buffer", safe=True),),
        "symbolic-size": (Source("known-sizes", safe=True),),
    },
)
