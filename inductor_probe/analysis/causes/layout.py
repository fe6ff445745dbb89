"""Layouts of buffers: what turns them (shown in `tests/proving_ground`). No order is a missed one as such."""

from __future__ import annotations

from inductor_probe.analysis.causes.rules import By, Condition, Rules, Source


def _outcome(*outcomes: str) -> Condition:
    return lambda decision, _: decision.outcome in outcomes


_NO_CHANNELS_LAST = By("layout_optimization", "False", safe=True, applies=_outcome("channels-last"))
_NO_PADDING = By(
    "comprehensive_padding",
    "False",
    safe=True,
    applies=lambda decision, _: decision.operand("padding_limit") is not None,
)

_FLEXIBLE = Source(
    "flexible-layout",
    applies=lambda decision, _: decision.operand("tag") not in (None, "flexible_layout"),
)
_FORCED = By("force_layout_optimization", "True", safe=True, applies=_outcome("unchanged"))
_UNCHANGED = (
    "only-backward-convolutions",
    "few-convolutions",
    "symbolic-convolution",
    "grouped-convolution",
    "narrowing-convolution",
    "small-convolutions",
)

RULES = Rules(
    changes={
        "reads": (
            _NO_PADDING,
            By("pick_loop_orders", "False", safe=True, applies=_outcome("permuted", "channels-last")),
            Source("order-of-reads", safe=True),
        ),
        **dict.fromkeys(("view", "no-reads", "lowering", "extern-operand", "extern-kernel"), (_NO_PADDING,)),
        "loop-orders-off": (By("pick_loop_orders", "True", is_default=True, safe=True), _NO_PADDING),
        "output": (Source("eager-strides"),),
        "as-strided-input": (Source("slice", safe=True),),
        "operator-constraint": (_FLEXIBLE, _NO_PADDING),
        "convolution": (_NO_CHANNELS_LAST,),
        "channels-last-preferred": (_NO_CHANNELS_LAST, _NO_PADDING),
        "mkldnn-convolutions": (_NO_CHANNELS_LAST,),
        "layout-optimisation-off": (By("layout_optimization", "True", is_default=True, safe=True),),
        "layout-optimisation-forced": (By("force_layout_optimization", "False", is_default=True, safe=True),),
        "convolution-flops": (_FORCED, _NO_CHANNELS_LAST),
        "convolution-channels": (_NO_CHANNELS_LAST,),
        **dict.fromkeys(_UNCHANGED, (_FORCED,)),
        "concatenation": (By("force_pointwise_cat", "True", safe=True, applies=_outcome("inside-another")),),
    },
)
