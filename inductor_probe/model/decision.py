"""What inductor decided while it compiled a graph, as it was recorded where torch decided it.

A `Decision` is recorded (`capture/recorders/`), kept with the graph (`store/decisions.py`) and read back. It
says what torch chose, the cause as a code, and the operands that torch compared; it holds no sentence
(`report/words/causes/`), and nothing that was not seen in torch while it decided.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from inductor_probe.model.kernel_causes import ConfigsCause, IndexCause, ReductionCause, TilingCause
from inductor_probe.model.span import Problem, Span

DECISIONS_NAME = "probe_decisions.jsonl"
"""In a graph's folder: one decision a line."""

VectorisationCause: TypeAlias = Literal[
    "no-vector-isa", "no-loops", "dtype-not-vectorisable", "non-contiguous-accesses", "short-inner-range",
    "contiguous-only-loop", "two-contiguous-loops", "most-contiguous-loop", "no-contiguous-loop",
    "range-below-vector", "short-low-precision-range",
    "partial-vector", "tail-not-worthwhile", "tail-vectorisation-off",
    "transposed-access", "constant-stride", "varying-stride", "indirect-access", "atomic-access",
]  # fmt: skip
"""Of a C++ loop nest; torch/_inductor/codegen/cpp.py. `scalar`, by `TilingSelect.select_tiling`:

- `no-vector-isa`: the machine has none that inductor knows, or `cpp.simdlen` rules them out; simdlen.
- `no-loops`: the kernel has no loop variable: `TilingSelect` is not asked.
- `dtype-not-vectorisable`: dtypes (those outside of VECTORIZABLE_DTYPES), nodes and node_operations that
  have them.
- `non-contiguous-accesses`: non_contiguous (accesses), operations, share, count_limit, share_limit, loop,
  range, loop_cause (why it is the candidate), how many of each: loads, stores, index_exprs, value_exprs; the
  first of them, as tuples of equal lengths: nodes, node_operations, buffers, indices, strides (along the
  loop); contiguous_nodes: those without any.
- `short-inner-range`: range, range_limit, operations, operations_limit, factor, loop, loop_cause.
- `tail-vectorisation-off`, `tail-not-worthwhile`: all of it is a tail; operands as below.

`vectorised` (some vectors are full) or `underfilled`: loops, ranges, factor, isa, bit_width, for each of the
dtypes, vectors: how many vectors of the machine factor elements fill; of one loop, operations and
non_contiguous (without `cpp.enable_tiling_heuristics` torch counts none). `vectorised` has why torch takes
these loops; `TilingSelect._select_tiling_indices`:

- `contiguous-only-loop`: the innermost of the loops that are strided in no access.
- `two-contiguous-loops`: two are contiguous somewhere, and the inner one is the innermost, and elsewhere
  strided: 2-D tiles with a transposition.
- `most-contiguous-loop`: the one that most accesses are contiguous along. `no-contiguous-loop`: the last one.
- `range-below-vector`: `underfilled`: a masked vector is all there is; full_vectors, tails.

These, and what has a loop_cause, have for each loop of the nest, as tuples of equal lengths: all_loops,
all_ranges, contiguous (accesses with stride 1), constant_stride, other_stride (`true` where some access has
one).

What is not as it should be in a vectorised nest:

- `half-width`, `short-low-precision-range`: all of it is bfloat16 or float16, and as many elements as a
  vector has float32 are computed at once; ranges, range_limit, factor, isa, bit_width.
- `masked-tail`, `partial-vector`: factor, and of the vectorised loops: loops, ranges, full_vectors, tails
  (elements that are left). `scalar-tail`: `tail-vectorisation-off`: by `cpp.enable_loop_tail_vec`;
  `tail-not-worthwhile`: masks, non_contiguous, operations, share, share_limit, and as torch compares them
  weighed_tail (twice what is left) and tail_limit.
- `lane-by-lane` or `transposed`: the costliest way in which it reaches memory (`CppVecKernel`,
  `CppTile2DKernel`), with factor, loops; by_lane, transposed (how many accesses); the first of them, the
  costliest before, as tuples of equal lengths: nodes, node_operations, buffers, indices, strides, causes (one
  of these codes). `transposed-access`: by 2-D tiles. `constant-stride`, `varying-stride` (no number along the
  loop), `indirect-access` (the index is itself loaded): an array is filled in a loop over the lanes.
  `atomic-access`: `atomic_add_vec`.
"""

FallbackCause: TypeAlias = Literal[
    "unsupported-type", "no-lowering", "registered-fallback", "no-backend-feature", "scatter-reduction",
    "scatter-sum-threads", "atomic-add-dtype", "boolean-index", "deterministic-algorithms", "fallback-random",
    "in-lowering", "pooling-window", "integer-power", "byte-concatenation",
    "sort-decomposition-off", "sort-too-long", "tuple-scan-split",
    "decomposition-declined",
    "max-autotune-off",
    "template-backend-off", "template-dtype", "weight-not-constant", "templates-slower", "template-refused",
    "no-template", "times-simulated",
]  # fmt: skip
"""Why torch's own kernel is called; all have operator and fx (the FX node):

- `unsupported-type`: types (of its values, that have no code). torch/_inductor/lowering.py,
  `fallback_node_due_to_unsupported_type`.
- `no-lowering`: inductor has neither lowering nor decomposition (graph.py, `GraphLowering.call_function`).
- `registered-fallback`: inductor lists the operator as one that it calls (lowering.py, `make_fallback`).
- `decomposition-declined`: types (that it computes with); its decomposition returned NotImplemented,
  and it has no lowering.
- `no-backend-feature`: feature (SCAN, SORT, ...), device. `fallback-random`: the setting asks for it.
- `scatter-reduction`: reduction. `scatter-sum-threads`: threads. `atomic-add-dtype`: dtype, whose atomic
  addition is not generated (utils.py, `use_scatter_fallback`; lowering.py, `index_put_impl_`).
- `boolean-index`: dtypes (of the indices). `deterministic-algorithms`: torch was asked for them.
- `byte-concatenation`: dtypes (only int8 and uint8), on a CPU. `pooling-window`: window, window_limit.
  `integer-power`: dtype, of a base and an exponent that is no constant.
- `sort-too-long`: elements, elements_limit: one block of a GPU sorts no more. `tuple-scan-split`: elements,
  outputs, parts, values: a scan of several values (cummax: value and index) is not done in parts.
- `sort-decomposition-off`: device; `triton.decompose_sort_ops` would make a sort of it.
- a library's kernel in place of a template; device: `no-template`: inductor has none. `max-autotune-off`:
  constant_weight (on a CPU a template needs one). `template-backend-off`: backend, backends (allowed).
  `template-dtype`: dtype. `weight-not-constant`. `templates-slower`: templates, choices (that were timed).
  `times-simulated`: the same, where a GPU is simulated: all times are equal there, and the first is taken.
  `template-refused`: for a reason that only the source says (utils.py, `use_cpp_gemm_template`).
- `in-lowering`: the lowering called it, for a reason that only its source says.
"""

AskerCode: TypeAlias = Literal[
    "output", "as-strided-input", "channels-last-preferred", "convolution", "operator-constraint",
    "extern-operand", "template", "view", "concatenation", "mutation", "reduction-strides",
    "reduction-layers", "lowering", "end-of-lowering",
]  # fmt: skip
"""Who wanted a value in a buffer, or a layout fixed (`capture/recorders/askers.py`): the operand `asker`.

With it stand `function` of torch, and `lowering` and `operator`: the FX node that torch was lowering, and
what that calls, with the `tag` of an operator that asks. `output`, `as-strided-input`:
`GraphLowering.run_node`, since the node is returned by the graph, or read by `as_strided` or `resize`.
`channels-last-preferred`: near a convolution under layout optimisation. `operator-constraint`: a tag of the
operator, or a constraint that is registered for it (`function`). `reduction-strides`: `Reduction.num_splits`
fixes the layouts of what it asks strides of. `lowering`: a function that lowers the operator.
`end-of-lowering`: nobody, it was the end.
"""

RealizationCause: TypeAlias = Literal[
    "reduction", "reads", "operations", "heavy-operations", "accumulated-reads", "output", "as-strided-input",
    "extern-operand", "user-needs-buffer", "hint", "concatenation", "mutation", "lowering", "single-user",
    "cheap", "split-reduction",
]  # fmt: skip
"""Why a value became a buffer, or was computed within its users. torch/_inductor/ir.py, `StorageBox`.

All have `node`: the FX node of the value. With users, repeated_by: users are how often that function of
lowering.py (`expand`, `repeat`, `unfold`) uses each element. Of a buffer, `stored`: False where nothing was
ever in memory of its own, since it was fused into its only readers or inlined.

- `reduction`: type (`Reduction`, `Scan`, `Sort`, ...); these are always realised.
- `reads`: users, reads, reads_limit, setting. `operations`: operations, operations_limit, setting, users;
  users_limit: where the limit is lower since there are more users than that.
  `heavy-operations`: heavy (names of operations that are not worth to be done twice on a CPU), users.
  `StorageBox.should_realize_on_reuse`.
- `accumulated-reads`: reads, reads_limit, setting. `StorageBox.has_exceeded_max_reads`.
- the rest have who asked (`AskerCode`): `output`, `as-strided-input`; `extern-operand`: of a library's kernel
  or of a template; `user-needs-buffer`: several users, one of which is in `needs_realized_inputs` (user);
  `hint`: a lowering that reads each element often calls `realize_hint`; `concatenation`: written into a part
  of another buffer; `mutation`: written into an input; `lowering`: a lowering that calls `realize`;
  `split-reduction`: a reduction is done in parts, and looks at its strides
  (`check_for_split_dense_dim_reindexing`).
- inlined: `single-user`: into (buffers). `cheap`: several users, and users, reads, reads_limit, operations,
  operations_limit, into.
"""

ThreadsCause: TypeAlias = Literal[
    "loops-divided", "few-vector-steps", "inner-loop-longer", "outer-loops-rounded", "reduction-boundary",
    "reduction-under-vector-loop", "little-work-per-iteration", "dynamic-threads", "little-work",
    "one-thread-set", "no-loop-to-divide",
]  # fmt: skip
"""`CppKernel.decide_parallel_depth` and `LoopNest.max_parallel_depth`. Each with threads; those with loops
also with work (iterations of all loops), work_per_thread, min_chunk_size; the parallel ones with loops,
ranges, depth (collapsed where above 1), iterations, is_reduction, steps (iterations that can be handed out:
of a vectorised loop, vectors).

- `loops-divided`: into at least as many iterations as threads. `few-vector-steps`: the same, and these are
  fewer steps than threads, as each is of a whole vector, or tile: torch counts iterations.
- `inner-loop-longer`: not the outer loops, as the one after them has more steps; outer_steps, inner_steps,
  ratio_limit, starts (how often it is shared out: once for each step around it). `outer-loops-rounded`: the
  same, and only as torch counts no step of rounded_loops, which are shorter than their vectors (`FloorDiv`).
- `reduction-under-vector-loop`: the outer loops, though the one after them has more steps: it is a reduction
  below a vectorised loop that has a scalar tail; outer_steps, inner_steps, ratio_limit.
- Fewer iterations than threads: `reduction-boundary`: the next_loop is a reduction, and those before are not;
  outer_steps, inner_steps, ratio_limit. `little-work-per-iteration`: work_of_next_loop for a thread is below
  min_chunk_size.
- `dynamic-threads`: one loop in any case, by `cpp.dynamic_threads`.
- One thread: `little-work`; `one-thread-set`: by cpp_threads (`cpp.threads`) or torch.set_num_threads;
  `no-loop-to-divide`.
"""

FusionCause: TypeAlias = Literal[
    "producer-and-consumer", "common-buffer", "outer-loops", "template-epilogue", "template-prologue",
    "mix-order-reductions", "foreach-list", "combo-kernel",
    "accesses-differ", "loop-order-differs", "loop-sizes-differ", "no-common-data",
    "few-shared-bytes", "fusion-size-limit",
    "peak-memory", "too-many-buffers", "distant-nodes", "devices-differ",
    "dependency-differs", "in-place-write", "intermediate-node", "cycle",
    "loop-ranges-differ", "fused-ranges", "sizes-differ", "horizontal-size-limit", "no-common-outer-loop",
    "complete-reductions", "outer-loop-depth", "outer-loop-node", "template-sibling",
    "epilogue-index-differs", "epilogue-reduces", "epilogue-mutates", "epilogue-fusion-off",
    "prologue-fusion-off", "prologue-not-pointwise", "no-prologue-inputs", "slower-when-timed",
    "reductions-differ", "mix-order-limit", "numels-differ", "tilings-differ", "tiling-not-of-reduction",
    "ranges-do-not-split", "numel-of-neither",
    "lower-priority", "fused-with-another",
    "extern-kernel", "no-kernel", "no-common-buffer", "pair-limit",
    "loop-tiles-differ", "inner-range-dominates",
    "other",
]  # fmt: skip
"""`fused`: torch/_inductor/scheduler.py, `Scheduler.fuse_two_nodes`; all have round, step, buffers (those
whose bytes torch counts, else all common ones), and where torch counted them shared_bytes and score:

- `producer-and-consumer`, `common-buffer`: the second reads what the first writes, or both read something.
- `outer-loops`: (C++) depth: the loops that are common; inside, each has loops of its own.
- `template-epilogue`, `template-prologue`: computed within a template, of what it wrote, or will read.
- `mix-order-reductions`: (Triton) two reductions over different dimensions of the same data.
- `foreach-list`, `combo-kernel`: a group for each part of one kernel, which keeps loops of its own: of an
  operator on lists of tensors, or of what is independent (`create_combo_kernel_nodes`); parts: how many.
- where both ways were timed: first_ms, second_ms, fused_ms. reordered: in the round that may reorder loops.

`refused`, by the scheduler; `first` and `second` are the groups of `subjects`. All that were counted have
shared_bytes:

- `accesses-differ`: both use buffer, and no access of one is that of the other, which alone torch counts as
  shared: first_does and second_does (`reads`, `writes`, or `updates`: in place), first_index, first_ranges,
  second_index, second_ranges, buffers (all common ones). `loop-order-differs`: the same, and the accesses
  would be equal if the loops of one had the order of the other, which torch tries for GPUs only (cpu), and
  not where both reduce (both_reduce).
- `loop-sizes-differ`: the same elements in the same order, in loops of other sizes: (6, 10) and (4, 15).
- `no-common-data`: tried under aggressive_fusion, and they use no common buffer.
- `few-shared-bytes`: shared_bytes, threshold. `fusion-size-limit`: nodes, limit.
- `peak-memory`: reusable_elements (of buffers whose last use both are), shared_bytes, factor.
- `too-many-buffers`: limit. `distant-nodes`: distance, limit. `devices-differ`: first_device, second_device.
- `dependency-differs`: the second reads buffer, and not where the first writes it; operands as of
  `accesses-differ`. `in-place-write`: the second overwrites what the first reads, at another place.
- `intermediate-node`: node, buffer: a third must run between. `cycle`: through: a fused node, which depends
  on one of them, and the other on it.
- `slower-when-timed`: first_ms, second_ms, fused_ms (`speedup_by_fusion`, under benchmark_fusion); of torch's
  log slowdown.
- of a template and what reads its result: `epilogue-reduces`, `epilogue-mutates` (an input), and
  `epilogue-fusion-off`: template_setting (True where the template itself forbids it). Of what computes its
  operand: `prologue-fusion-off`, `prologue-not-pointwise`, `no-prologue-inputs`.

`refused`, by the C++ backend, codegen/cpp.py; first_ranges, first_reduction, second_ranges, second_reduction;
of an outer-loop fused node they are those of its first_nest or second_nest:

- `loop-ranges-differ`: `_why_fuse_nodes`; vertical, and if so outer_depth: the loops that agree.
- `fused-ranges`: one has a single loop over as many elements, but is fused: only unfused nodes are split.
- `sizes-differ`: one is unfused and has a single loop over as many elements, but first_size and second_size,
  the sizes before loops were merged, differ.
- `template-sibling`: one is a template that the other does not read. `epilogue-index-differs`: node, buffers
  (of the template), reads_at, writes_at.
- `horizontal-size-limit`: nodes, limit. `outer-loop-node`: one is outer-loop fused: not with what is
  independent.
- `no-common-outer-loop`: the first reduces, or one is outer-loop fused, so only outer loops could be common:
  outer_depth.
- `complete-reductions`: both reduce to one value. `outer-loop-depth`: first_depth, second_depth: one is
  fused already, at another depth.

`refused`, by the Triton backend, codegen/simd.py, `SIMDScheduling.can_fuse`:

- `reductions-differ`, `numels-differ`: first_numel, second_numel, first_rnumel, second_rnumel.
- `mix-order-limit`: both reduce the same data over different dimensions, for which torch has one kernel, but
  not here: check (`off`, `not-contiguous`, `elements`, `rows-per-column`, `rows`, `hint`,
  `columns`, `split`, `operation`), value, limit; rows, columns, buffers (`MixOrderReduction.can_fuse`).
- `tilings-differ`: first_tiling, second_tiling, fused_tiling.
- `tiling-not-of-reduction`, `ranges-do-not-split`, `numel-of-neither`: first_numel, second_numel,
  first_rnumel, second_rnumel.

`postponed`: allowed, and not done; asked again where there is another round:

- `lower-priority`: candidates, kept: (C++) outer loops are fused when nothing else can be.
- `fused-with-another`: group: the node that now holds one of them.

`not-tried`: Scheduler.get_possible_fusions:

- `extern-kernel`, `no-kernel`: one group; kernel; result_of, where it is one of several results of a call.
- `no-common-buffer`, `pair-limit`: of many groups, each two about which there is no other decision; pairs:
  how many. Of `pair-limit` they are the users of buffer, in order, and torch pairs one with the next limit.

`undone`: fused, and the code has a loop nest for each (codegen/cpp.py,
`OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr`); a group for each nest:

- `loop-tiles-differ`: first_nest, second_nest, loop, first_steps, second_steps, first_range, second_range.
- `inner-range-dominates`: nest, inner_range, outer_range, factor.

- `other`: text: torch's own words, as it has no code here; empty where torch has none.

A refusal without a word, by a test that has no code, is `unlisted-test`. Of a dump that records no decisions
they are read in torch's log, without what neither the log nor the IR has (limits, times).
"""

LayoutCause: TypeAlias = Literal[
    "reads", "no-reads", "view", "output", "as-strided-input", "convolution", "channels-last-preferred",
    "operator-constraint", "extern-operand", "lowering", "concatenation", "mutation", "extern-kernel",
    "mkldnn-convolutions", "layout-optimisation-off", "layout-optimisation-forced", "loop-orders-off",
    "only-backward-convolutions", "few-convolutions", "symbolic-convolution", "convolution-flops",
    "grouped-convolution", "narrowing-convolution", "small-convolutions", "convolution-channels",
]  # fmt: skip
"""Why a buffer lies in memory as it does: size and stride, and who asked first (`AskerCode`).

torch/_inductor/ir.py, `FlexibleLayout` and `Buffer.freeze_layout*`:

- `reads`: nobody required an order; `ComputedBuffer.get_fill_order` follows what it reads: reads, each with
  its strides over the dimensions of the buffer, and votes: how many reads have the smaller stride along which
  of two dimensions; where they are even, the later one gets it. `loop-orders-off`: the same, but
  `pick_loop_orders` is off: the order of dimensions. `no-reads`: nothing to follow.
- `view`: a view of it is read as strides, so it stays as it is, or channels-last if it is so in eager mode.
- what was asked for is stride_order, exact_strides or (`reads`) fill_order: `output`, `as-strided-input`:
  strides of eager mode. `convolution`: layout_opt, too. `channels-last-preferred`: it is near a convolution.
  `operator-constraint`, `extern-operand`, `lowering`: what the kernel of operator takes.
- `padded` by comprehensive_padding: padding_limit (strides above it are padded), padding_bytes.
- `concatenation`, `mutation`: it is written into another buffer, or in place (into).
- `extern-kernel`: a library's kernel returns it so (kernel).
- of the graph (`GraphLowering.decide_layout_opt`), convolutions, device: `mkldnn-convolutions` are always
  channels-last on a CPU. `only-backward-convolutions`: it has no aten.convolution. `few-convolutions`: nodes,
  nodes_limit. `symbolic-convolution`: of a symbolic size. In inference `convolution-flops`: flops,
  weighted_flops, sorts (how many convolutions of each). In training: nodes_of_fx: `grouped-convolution`: of
  groups of several channels; `narrowing-convolution`: of half as many outputs as inputs;
  `small-convolutions`: all of at most channels_limit; `convolution-channels`: none of these: channels-last.
"""

CopyCause: TypeAlias = Literal[
    "given-strides", "extern-result", "fixed-before", "fixed-for-view", "view-not-strided",
    "inside-another", "part-of-a-view", "mutation", "clone",
    "strides-taken", "strides-fit", "view-as-strides", "clone-inlined", "no-unit-stride",
]  # fmt: skip
"""Why the values of a buffer are copied only to lie differently, or why not: torch/_inductor/ir.py.

All have source: the buffer that was asked for; size; had: its strides, or with view those of the view of it
that was asked for; stride_order or exact_strides, where the strides mattered; who asked (`AskerCode`). A
copy, which is the subject, also has stride, bytes (of the values once, as compiled), times_copied (where the
same is made more than once), and not_stored: which of `copy` and `source` is in memory nowhere, since it is
fused with all that reads it: then nothing is copied.

- why the source could not take the strides (`ExternKernel.require_strides`): `given-strides`: the graph is
  given it. `extern-result`: a library's kernel or a template returns it so (kernel). `fixed-before`: somebody
  asked first: fixed_by, a cause of `layout`, fixed_for: that operator. `fixed-for-view`: it is seen through
  a view, and torch fixes what a view is made of as it is, before it looks at the strides that are wanted.
  `inside-another`: it lies in another buffer, or was written in place.
- `no-unit-stride`: a product needs stride 1 along one dimension (`ExternKernel.require_stride1`).
- `view-not-strided`: no strides express the view (`convert_to_reinterpret_view`).
- `part-of-a-view`: a concatenation computes no view in its place (`ConcatKernel.realize_into`).
- `mutation`: it is written into an input or a view (`MutationLayoutSHOULDREMOVE.realize_into`).
- `clone`: the FX graph has a clone (clone, clone_operator, memory_format), and it became a buffer.
- `not-copied`, about the source: `strides-taken`: its layout was not fixed, and it took them. `strides-fit`:
  they are what is wanted. `view-as-strides`: an extern kernel takes the view as strides. `clone-inlined`: a
  clone with a memory_format, which its lowering does not look at, was computed within its users (lowering.py,
  `clone`); of an FX node where it is not the clone of one buffer.
"""

LoopsCause: TypeAlias = Literal[
    "strides-favour-order", "strides-in-order", "strides-tied", "loop-orders-off",
    "order-of-partner", "contiguous-loops", "loops-not-contiguous", "loops-of-partner", "divided-index",
]  # fmt: skip
"""The loops of a node: torch/_inductor/ir.py, `ComputedBuffer.simplify_and_reorder`. `reduced`: those that
it reduces.

About their order; sizes (of the dimensions d0, d1, ... that have more than one element), order (the same
from the outermost loop to the innermost), loops (its sizes); accesses: with the stride along each dimension,
count (of all). A pair of dimensions that shows it: votes_to_swap, votes_to_keep (of the accesses).

- `strides-favour-order`: more accesses have the smaller stride along the first of dimensions than along the
  second. `strides-in-order`: none such pair. `strides-tied`: as many, so they stay. `loop-orders-off`: by
  `pick_loop_orders`.
- `order-of-partner`: so that it can be fused with partner, as to buffer (Triton; scheduler.py,
  `reorder_loops_by_dep_pair`).

About merging (sizevars.py, `_simplify_loops_impl`): sizes, and loops that are left.

- `contiguous-loops`: one is left. `loops-not-contiguous`: a pair stays apart (outer, inner, inner_range),
  since the index (of what it does, to buffer) has outer_stride and inner_stride, and one loop would need
  needed_stride; without strides where it is no straight line.
- `loops-of-partner`: the same by an index of partner (C++; cpp.py, `_align_compatible_range_nodes`).

`divided-index`: a loop of range is divided by divisor, which leaves loops (C++; cpp.py, `try_loop_split`).
"""

RewriteCause: TypeAlias = Literal[
    "pattern", "no-op", "identity", "uniform-value", "pass", "check-refused", "small-product",
    "copied-back", "not-read-later", "input-not-mutated", "view-of-input", "read-later", "scatter-fused",
    "shape-padding-off", "sizes-aligned", "padding-forced", "memory-bound", "padding-faster",
    "padding-slower", "times-simulated",
]  # fmt: skip
"""Which pass over the FX graph rewrote nodes. All have pass, stage (`pre_grad`, `joint_graph`, `post_grad`),
and nodes that are gone, operators (what they called), by and
by_operators (what took their place), sources (the user's lines that nodes come from). Of more than 24 of them
the first are named, and nodes_count, by_count ... says how many there are; subjects are all of them.

- `pattern`: one of torch/_inductor/pattern_matcher.py matched: pattern (the function of its name).
- `small-product`: while the graph was traced, by a decomposition of decomposition.py: operators, by,
  by_operators, first_size, second_size.
- `check-refused`: patterns matched nodes, and check (a function) said no. Nothing is gone. Of a constant that
  could be folded into a convolution or product (`_is_foldable_pattern`): setting_off, where it passes with
  that; else the first condition that is not met: weight (that is no constant), weight_users, or weight_dtype
  and dtypes (of what is folded into it).
- of a matrix product on a GPU, and whether it is padded (fx_passes/pad_mm.py, `should_pad`): sizes (rows,
  inner, columns), alignment. `shape-padding-off`, `padding-forced`: by settings. `sizes-aligned`: nothing to
  pad. `memory-bound`: operations_per_element (that is moved) are too few. `padding-faster`,
  `padding-slower`: plain_ms, padded_ms; less than 10 % is not worth it. `times-simulated`: a simulated GPU
  measures nothing.
- `no-op`: fx_passes/post_grad.py, `remove_noop_ops`; mutated_by: nodes that take the value, and
  change it. fx_passes/joint_graph.py, `constant_fold_uniform_value`: `uniform-value`: all elements are value,
  whatever the inputs; `identity`: it adds 0, or multiplies by 1.
- `pass`: another function of torch's, or of a setting's (`post_grad_custom_post_pass`).

Whether an operator writes into its argument or into a copy (fx_passes/reinplace.py,
`reinplace_inplaceable_ops_core`); nodes, operators, argument:

- in place: `copied-back`: the result is written to that input in any case, or to input (it is a view).
  `not-read-later`.
- `input-not-mutated`: an input that the graph does not mutate (no `copy_` into it at its end).
  `view-of-input`: of input. `read-later`: by reader.
  `scatter-fused`: a view is scattered into what was not in memory anyway (`should_reinplace_scatter`).
"""

CudagraphsCause: TypeAlias = Literal[
    "whole-graph", "partitions", "no-partition", "cudagraphs-off", "cpu-device", "no-gpu-device",
    "incompatible-operator", "incompatible-lowering", "dynamic-shapes", "mutated-inputs", "moving-inputs",
]  # fmt: skip
"""Whether CUDA graphs replay a graph (output_code.py, `CompiledFxGraph.post_compile`), where a GPU is in it,
or `triton.cudagraphs` asks for them.

- `whole-graph`, `partitions`: partitions; nodes that are left out, and reasons (scheduler.py,
  `Scheduler.should_partition`). `no-partition`: nothing is left in; reasons.
- `cudagraphs-off`: not asked for. Without `graph_partition`: `cpu-device`: node (the first of a CPU);
  `incompatible-operator`: operator; `dynamic-shapes`, by `triton.cudagraph_skip_dynamic_graphs`.
- `no-gpu-device`: all of it is on a CPU. `incompatible-lowering`: text of torch.
- `mutated-inputs`: inputs, without `triton.cudagraph_support_input_mutation`. `moving-inputs`: with it, the
  inputs that are changed in place and are neither parameters nor buffers of a module: each call looks whether
  they come from another CUDA graph, and replays nothing otherwise (cudagraph_utils.py, `check_for_mutation`).
"""

FreezingCause: TypeAlias = Literal[
    "parameters", "attributes", "no-parameters", "gradients-enabled", "frozen-inputs", "kept-parameter"
]
"""Under `config.freezing` (torch/_inductor/freezing.py, `freeze`):

- of the graph, constants (inputs that became such), inputs (that stayed), folded (values): `parameters`;
  `attributes`: parameters were no inputs, but attributes of the graph (their number), as those of a program
  that `torch.export` made. `no-parameters`: none is the module's own, or all are changed in place or
  returned. `gradients-enabled`.
- of a parameter or buffer: `kept-parameter`: changed: whether the program changes it in place, or returns it.
- of a value: `frozen-inputs`: nodes, operators: computed of constants alone.
"""

TurnedCause: TypeAlias = Literal["turned"]
"""A flip asked for it (`--scalar op0`), so that torch's own rules did not count; further operands as of the
decision that torch would have taken."""

UnlistedCause: TypeAlias = Literal["unlisted-test"]
"""A test of torch's that has no code here: it is the first of the decision's `tests`."""

DecisionKind: TypeAlias = Literal[
    "vectorisation", "fallback", "realization", "threads", "fusion", "reduction", "index-width", "layout",
    "copy",
    "loops",
    "rewrite", "cudagraphs", "freezing", "tiling", "configs",
]  # fmt: skip
Outcome: TypeAlias = Literal[
    "vectorised", "underfilled", "scalar", "half-width", "masked-tail", "scalar-tail", "lane-by-lane",
    "transposed", "extern", "realised", "inlined", "contiguous", "parallel", "one-thread",
    "fused", "refused", "postponed", "not-tried", "undone",
    "unrolled", "split", "not-split", "two-passes", "one-pass", "persistent", "looped",
    "cooperative", "not-cooperative", "split-scan", "whole-scan",
    "INNER", "OUTER", "OUTER_TINY", "DEFAULT",
    "int32", "int64",
    "channels-last", "permuted", "padded", "inside-another", "in-place", "unchanged",
    "in-order", "reordered", "merged", "separate", "divided",
    "replaced", "removed", "folded", "not-replaced",
    "copied", "not-copied",
    "captured", "partitioned", "skipped", "at-run-time", "frozen", "not-frozen",
    "one-d-tiles", "two-d-tiles", "three-d-tiles", "four-d-tiles",
    "one-config", "several-configs",
]  # fmt: skip
CauseCode: TypeAlias = Literal[
    VectorisationCause,
    FallbackCause,
    RealizationCause,
    ThreadsCause,
    FusionCause,
    ReductionCause,
    IndexCause,
    LayoutCause,
    LoopsCause,
    RewriteCause,
    CopyCause,
    CudagraphsCause,
    FreezingCause,
    TilingCause,
    ConfigsCause,
    TurnedCause,
    UnlistedCause,
]
QUESTIONS: tuple[frozenset[Outcome], ...] = (
    frozenset({"vectorised", "underfilled", "scalar"}),
    frozenset({"masked-tail", "scalar-tail"}),
    frozenset({"lane-by-lane", "transposed"}),
    frozenset({"in-order", "reordered"}),
    frozenset({"merged", "separate"}),
    frozenset({"divided"}),
    frozenset({"unrolled", "split", "not-split"}),
    frozenset({"two-passes", "one-pass"}),
    frozenset({"persistent", "looped"}),
    frozenset({"cooperative", "not-cooperative"}),
    frozenset({"split-scan", "whole-scan"}),
    frozenset({"INNER", "OUTER", "OUTER_TINY", "DEFAULT"}),
    frozenset({"replaced"}),
    frozenset({"removed"}),
    frozenset({"folded"}),
    frozenset({"not-replaced"}),
)
"""Outcomes between which torch chooses at one place, of the kinds that decide more than once of a subject."""
SubjectType: TypeAlias = Literal["node", "buffer", "fx", "graph"]
Operand: TypeAlias = bool | int | float | str | tuple[str, ...]
"""What torch compared. A symbolic size is its text."""

DECISION_KINDS: tuple[DecisionKind, ...] = tuple(
    kind for group in get_args(DecisionKind) for kind in (get_args(group) or (group,))
)


class TorchFrame(Struct, frozen=True):
    """A function in torch's sources: `file` below the folder that holds torch, `line` in it.

    `line` is the call in progress. Of the function that decided, it is where that begins if the line of the
    decision itself could not be seen.
    """

    file: str
    function: str
    line: int


class TorchTest(Struct, frozen=True):
    """A test that torch made when it decided, as it was seen there.

    Attributes:
        place: the line of the test. text: the test as it is written there.
        truth: what came out. values: the two operands of a comparison, or the value that was tested.
    """

    place: TorchFrame
    text: str
    truth: bool
    values: tuple[bool | int | float | str, ...] = ()


class Decision(Struct, frozen=True):
    """One choice of the compiler.

    Attributes:
        number: its place in the order in which torch decided, from 1.
        kind: what was decided.
        subject_type: what the names in `subjects` are.
        subjects: what it was decided about. A decision about one thing has one group: a fused node is the
            names of the unfused nodes in it (`(("op0", "op1"),)`). One about a pair has two groups.
        outcome: what torch chose. cause: why. operands: what the cause rests on, with the thresholds.
        place: the function of torch that decided, None where that was not recorded. stack: what called it,
            innermost first.
        speculative: torch tried this, and did not keep it, or did it once more.
        times: how often torch asked; the last answer is kept.
        tests: those of torch that decided, where the function that decides was watched.
        knowledge: `recorded` while torch decided; else `read` in a log of torch's or the IR, or `inferred`.
        span: the line of that log.
    """

    number: int
    kind: DecisionKind
    subject_type: SubjectType
    subjects: tuple[tuple[str, ...], ...]
    outcome: Outcome
    cause: CauseCode
    operands: tuple[tuple[str, Operand], ...]
    place: TorchFrame | None
    stack: tuple[TorchFrame, ...] = ()
    speculative: bool = False
    times: int = 1
    tests: tuple[TorchTest, ...] = ()
    knowledge: Literal["recorded", "read", "inferred"] = "recorded"
    span: Span | None = None

    @property
    def question(self) -> frozenset[Outcome]:
        """The outcomes that torch chose among, as far as its kind has several choices: see `QUESTIONS`."""
        return next((question for question in QUESTIONS if self.outcome in question), frozenset())

    @property
    def step(self) -> int | None:
        """Which fusion of its graph it is, from 1; None where it is none, or that is not known."""
        step = self.operand("step") if self.outcome == "fused" else None
        return step if isinstance(step, int) else None

    def operand(self, name: str) -> Operand | None:
        """Return the operand called `name`, None where the decision has none."""
        return dict(self.operands).get(name)


class DecisionsHeader(Struct, frozen=True):
    """First line of the file. `recorders`: the kinds of decisions that were recorded on that torch."""

    format: int
    torch: str
    recorders: tuple[DecisionKind, ...]


class Decisions(Struct, frozen=True):
    """What was recorded of a graph.

    `complete` is False where the file was cut short or cannot be read; `problems` say where.
    """

    torch: str
    recorders: tuple[DecisionKind, ...]
    decisions: tuple[Decision, ...]
    complete: bool = True
    problems: tuple[Problem, ...] = ()
