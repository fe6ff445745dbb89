"""Layouts of buffers, and copies that only lie differently: what turns them.

Each is shown in `tests/proving_ground`. No order of strides is a missed one as such.
"""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Condition, Rules, Source
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _outcome(*outcomes: str) -> Condition:
    return lambda decision, _: decision.outcome in outcomes


_NO_CHANNELS_LAST = By("layout_optimization", "False", applies=_outcome("channels-last"))
_NO_PADDING = By(
    "comprehensive_padding",
    "False",
    applies=lambda decision, _: decision.operand("padding_limit") is not None,
)

_FLEXIBLE = Source(
    "flexible-layout",
    applies=lambda decision, _: decision.operand("tag") not in (None, "flexible_layout"),
)
_FORCED = By("force_layout_optimization", "True", applies=_outcome("unchanged"))
_UNCHANGED = (
    "only-backward-convolutions",
    "few-convolutions",
    "symbolic-convolution",
    "grouped-convolution",
    "narrowing-convolution",
    "small-convolutions",
)

LAYOUT = Rules(
    changes={
        "reads": (
            _NO_PADDING,
            By("pick_loop_orders", "False", applies=_outcome("permuted", "channels-last")),
            Source("order-of-reads"),
        ),
        **dict.fromkeys(("view", "no-reads", "lowering", "extern-operand", "extern-kernel"), (_NO_PADDING,)),
        "loop-orders-off": (By("pick_loop_orders", "True", is_default=True), _NO_PADDING),
        "output": (Source("eager-strides"),),
        "as-strided-input": (Source("slice"),),
        "operator-constraint": (_FLEXIBLE, _NO_PADDING),
        "convolution": (_NO_CHANNELS_LAST,),
        "channels-last-preferred": (_NO_CHANNELS_LAST, _NO_PADDING),
        "mkldnn-convolutions": (_NO_CHANNELS_LAST,),
        "layout-optimisation-off": (By("layout_optimization", "True", is_default=True),),
        "layout-optimisation-forced": (By("force_layout_optimization", "False", is_default=True),),
        "convolution-flops": (_FORCED, _NO_CHANNELS_LAST),
        "convolution-channels": (_NO_CHANNELS_LAST,),
        **dict.fromkeys(_UNCHANGED, (_FORCED,)),
        "concatenation": (By("force_pointwise_cat", "True", applies=_outcome("inside-another")),),
    },
)


def _asked(*askers: str) -> Condition:
    return lambda decision, _: decision.operand("asker") in askers


def _can_lie_so(decision: Decision, _: CompiledGraph) -> bool:
    """Whether a caller could give what is wanted: strides matter, and it is not expanded."""
    had = decision.operand("had")
    wanted = decision.operand("stride_order") or decision.operand("exact_strides")
    return bool(wanted) and isinstance(had, tuple) and "0" not in had


def _is_of_convolution(decision: Decision, _: CompiledGraph) -> bool:
    """Whether a convolution asks for channels-last, or returns it."""
    is_returned = (
        decision.operand("asker") == "output"
        and "convolution" in str(decision.operand("kernel"))
        and len(_sizes(decision)) == _IMAGE
    )
    is_asked = decision.operand("asker") == "convolution" and decision.operand("stride_order") == _LAST
    return is_returned or is_asked or decision.operand("asker") == "channels-last-preferred"


def _sizes(decision: Decision) -> tuple[str, ...]:
    sizes = decision.operand("size")
    return sizes if isinstance(sizes, tuple) else ()


def _stays_as_it_is(decision: Decision, graph: CompiledGraph) -> bool:
    """Whether nothing changes a copy in place: else what it is a copy of would be changed without it."""
    copies = {name for group in decision.subjects for name in group}
    buffers = index_of(graph).nodes.buffers.values()
    return not any(copies.intersection(buffer.mutations) for buffer in buffers)


_LAST = ("3", "0", "2", "1")
_IMAGE = 4
"""A 2-D convolution under layout optimisation asks for this order of 4 dimensions."""
_NO_CHANNELS_LAST_COPY = By("layout_optimization", "False", applies=_is_of_convolution)
_POINTWISE_CAT = By("force_pointwise_cat", "True", applies=_asked("concatenation"))
_RETURNED = Source("eager-strides", applies=_asked("output"))

COPIES = Rules(
    kinds={
        "copied": "missed",
        "fused": "passed",
        "not-copied": "passed",
        "mutation": "analysis",
        "clone-inlined": "analysis",
    },
    changes={
        "given-strides": (
            _NO_CHANNELS_LAST_COPY,
            _POINTWISE_CAT,
            Source("input-strides", applies=_can_lie_so),
            _FLEXIBLE,
        ),
        "extern-result": (_NO_CHANNELS_LAST_COPY, _POINTWISE_CAT, _RETURNED, _FLEXIBLE),
        "fixed-before": (
            _NO_CHANNELS_LAST_COPY,
            _POINTWISE_CAT,
            Source("one-order"),
            _FLEXIBLE,
        ),
        "fixed-for-view": (Source("view-later"),),
        "no-unit-stride": (Source("unit-stride"),),
        "view-not-strided": (Source("strided-view"),),
        "part-of-a-view": (_POINTWISE_CAT,),
        "inside-another": (_POINTWISE_CAT,),
        "mutation": (Source("out-of-place"),),
        "clone": (Source("no-clone", applies=_stays_as_it_is),),
        "clone-inlined": (Source("realised-clone"),),
    },
)
