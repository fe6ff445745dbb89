"""Variants of kernels and of the wrapper in a bench file: added by name, made by rewrites, kept, compared."""

from inductor_probe.variants.adding import ablations, add_variants
from inductor_probe.variants.applicable import applicable
from inductor_probe.variants.diffs import variant_diffs
from inductor_probe.variants.given import add_variant
from inductor_probe.variants.registry import REWRITES, Rewrite, apply_rewrite, rewritten
from inductor_probe.variants.takeover import gone_variants, taken_over, users_variants

__all__ = [
    "REWRITES",
    "Rewrite",
    "ablations",
    "add_variant",
    "add_variants",
    "applicable",
    "apply_rewrite",
    "gone_variants",
    "rewritten",
    "taken_over",
    "users_variants",
    "variant_diffs",
]
