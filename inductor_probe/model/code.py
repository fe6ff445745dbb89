"""`output_code.py` as read: kernels, what their texts say, and what the wrapper does with them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.record import Compared
from inductor_probe.model.span import Problem, Span


class FragmentNode(Struct, frozen=True):
    """A node of the `Graph fragment` above a Triton kernel: `%add = call_function[target=...](args = ...)`.

    `target` is `PlaceHolder` for a value that comes from outside of the kernel. `type` is as printed:
    `f32[512, 1000][1000, 1]cuda:0`, None where none is.
    """

    name: str
    target: str
    type: str | None = None
    inputs: tuple[str, ...] = ()


class KernelComment(Compared, frozen=True):
    """The comment lines above a kernel's definition, a launch or a library call.

    Attributes:
        aten: operators as the user called them: `aten.add`.
        mapping: source node -> FX nodes after the passes.
        fragment: the FX nodes that the kernel computes, and the placeholders it reads.
        returns: what the kernel writes, in the order of its nodes: FX nodes, or buffers where none is known.
        handle: number of the launch in torch's provenance: `[Provenance debug handles] mm:3`.
        path: where the kernel was cached. lines: the text, without `# `.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span",)

    aten: tuple[str, ...] = ()
    mapping: tuple[tuple[str, tuple[str, ...]], ...] = ()
    fragment: tuple[FragmentNode, ...] = ()
    returns: tuple[str, ...] = ()
    handle: int | None = None
    path: str | None = None
    lines: tuple[str, ...] = ()
    span: Span | None = None

    @property
    def fx_nodes(self) -> tuple[str, ...]:
        """FX nodes that the kernel computes: those of the fragment, or else of the mapping, each once."""
        computed = [node.name for node in self.fragment if node.target != PLACEHOLDER]
        mapped = [name for _, names in self.mapping for name in names]
        return tuple(dict.fromkeys(computed or mapped))


PLACEHOLDER = "PlaceHolder"

Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Names with texts, in display order."""


class Loop(Struct, frozen=True):
    """A `for` of a C++ kernel.

    Attributes:
        variable, start, stop, step: `for (x0 = start; x0 < stop; x0 += step)`, casts and suffixes removed.
        depth: 0 for the outermost loop of a nest. line, last: of the kernel's source, 1-based.
        pragmas: that stand above it: `omp for collapse(2)`, `GCC ivdep`.
        within: True for a loop over the elements of a tile or of a tail (`x1_inner`, `x1_tail`).
    """

    variable: str
    start: Dim
    stop: Dim
    step: Dim
    depth: int
    line: int
    last: int
    pragmas: tuple[str, ...] = ()
    within: bool = False

    @property
    @written
    def trips(self) -> Dim:
        """How often it runs, a number or the text of an expression."""
        if isinstance(self.start, int) and isinstance(self.stop, int) and isinstance(self.step, int):
            return max(-((self.start - self.stop) // self.step), 0) if self.step else 0
        length = str(self.stop) if self.start == 0 else f"{self.stop} - {self.start}"
        if self.step == 1:
            return length
        return f"{length} / {self.step}" if length.isidentifier() else f"({length}) / {self.step}"


NestFeature: TypeAlias = Literal[
    "indirect-load", "atomic-add", "random-number", "division-in-index", "float64", "reversed-access",
    "strided-access",
]  # fmt: skip
"""What the text of a loop nest shows."""


NestKind: TypeAlias = Literal["vectorised", "underfilled", "scalar", "tail", "threads"]
DECIDED_NESTS: tuple[NestKind, ...] = ("vectorised", "underfilled", "scalar")
"""Nests about whose vectors torch decides: tails and threads come with another nest."""


class LoopNest(Struct, frozen=True):
    """An outermost loop of a C++ kernel with everything in it.

    Attributes:
        kind: `vectorised` (its text uses `at::vec`), `underfilled` (so too, but a loop is shorter than its
            step, so that no vector, or no tile, is full), `scalar`, `tail` (the rest of the nest before it,
            which torch before 2.6 writes as a loop of its own), or `threads` (it runs over the threads, to
            combine what each of them reduced).
        loops: in the order of the text, `depth` is the nesting.
        tile: sides of the two-dimensional tiles that it transposes, empty when it does not.
        features: of a scalar nest, as read in its text. Why inductor left it scalar is not in the dump: a
            nest may have these features and be vectorised, and be scalar for another reason.
    """

    kind: NestKind
    loops: tuple[Loop, ...]
    line: int
    last: int
    tile: tuple[int, ...] = ()
    features: tuple[NestFeature, ...] = ()

    @property
    def has_vectors(self) -> bool:
        """Whether it computes with vectors, full or not."""
        return self.kind in ("vectorised", "underfilled")

    @property
    def order(self) -> tuple[Loop, ...]:
        """Loops over the iteration space, outermost first: a variable each, tails and tiles left out."""
        first: dict[str, Loop] = {}
        for loop in self.loops:
            if not loop.within:
                first.setdefault(loop.variable, loop)
        return tuple(first.values())


FOLDING = "_const_run_impl"
"""The function of a package that folds constants: a graph of its own, with names that the graph has, too."""
_OWN_NAME = re.compile(r"\b(?=(?:buf|op)\d)")
_PARTITION = re.compile(r"partition_\d+")
_WIDTHS = {"long": "int64", "int64_t": "int64", "int": "int32", "int32_t": "int32"}


def qualified(text: str, subgraph: str) -> str:
    """Put the name of a subgraph before the names of its buffers and operations, as torch itself does."""
    return _OWN_NAME.sub(f"{subgraph}_", text)


class CppFacts(Struct, frozen=True):
    """Facts of a C++ kernel.

    Attributes:
        nests: its loop nests in order. `helper_loops`: loops of functions beside it (templates).
        index_type: of the loop variables: `long`, `int64_t`.
        vector_bits: width of a vector register as far as steps and types show it.
        parallel: True under `#pragma omp parallel`. threads: from `num_threads`.
        collapse: the largest `collapse`.
        reductions: `+`, `max`, `welford`: what vector or scalar accumulators are combined with.
        atomics: atomic additions in the text.
        local_buffers: buffers it allocates for itself, as `float[1000]`.
        templates: `micro_gemm` and the like.
        division_check: it looks for integer divisions by zero and raises.
    """

    nests: tuple[LoopNest, ...]
    helper_loops: int = 0
    index_type: str | None = None
    vector_bits: int | None = None
    parallel: bool = False
    threads: int | None = None
    collapse: int | None = None
    reductions: tuple[str, ...] = ()
    atomics: int = 0
    local_buffers: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    division_check: bool = False

    @property
    def index_width(self) -> str | None:
        """`int64` or `int32`. `long` has 64 bits here: inductor took to `int64_t` for Windows' sake."""
        return _WIDTHS.get(self.index_type or "")

    @property
    def tiles(self) -> tuple[str, ...]:
        """The different tiles of its nests: `16x16`."""
        return tuple(dict.fromkeys("x".join(map(str, nest.tile)) for nest in self.nests if nest.tile))

    @property
    def data_nests(self) -> tuple[LoopNest, ...]:
        """The nests over data, in order: not those over the threads."""
        return tuple(nest for nest in self.nests if nest.kind != "threads")

    @property
    def decided_nests(self) -> tuple[LoopNest, ...]:
        """The nests about whose vectors torch decided, in order."""
        return tuple(nest for nest in self.nests if nest.kind in DECIDED_NESTS)

    def count(self, kind: NestKind) -> int:
        """Return the number of nests of a kind."""
        return sum(nest.kind == kind for nest in self.nests)


class TritonFacts(Struct, frozen=True):
    """Facts of a Triton kernel, most of them from its decorator.

    Attributes:
        heuristic: `pointwise`, `reduction`, `persistent_reduction`, `template`, `user_autotune` ...
        size_hints: sizes rounded up to powers of two, by dimension (`x`, `r0_`; torch before 2.6 names none:
            they are `x`, `y`, `z` from the last to the first there, and `r` for the last of a reduction).
        reduction_hint, tile_hint: `INNER`, `SQUARE`, ...
        signature: type of every argument in order: `("in_ptr0", "*fp32")`, `("xnumel", "i32")`.
        index_width: `int64` when sizes or program ids are 64 bits wide, else `int32`; None without either.
        divisible: arguments promised to be multiples of 16.
        constants: arguments whose value is compiled in.
        config: `num_warps`, `num_stages` and block sizes where the text fixes them.
        blocks: block sizes that its parameters name: `XBLOCK`, `R0_BLOCK`.
        meta: further entries of `inductor_meta`, verbatim, hashes left out.
        loads, stores, atomics: `tl.load` and the like in the text.
    """

    heuristic: str | None
    size_hints: Pairs = ()
    reduction_hint: str | None = None
    tile_hint: str | None = None
    signature: Pairs = ()
    index_width: str | None = None
    divisible: tuple[str, ...] = ()
    constants: Pairs = ()
    config: Pairs = ()
    blocks: tuple[str, ...] = ()
    meta: Pairs = ()
    loads: int = 0
    stores: int = 0
    atomics: int = 0


KernelDetails: TypeAlias = CppFacts | TritonFacts


class PointerUse(Struct, frozen=True):
    """A line of a kernel that reads or writes through one of its pointers.

    Attributes:
        line: of the kernel's source, 1-based.
        kind: `load`, `store`, or `atomic` (it adds to what is there).
        pointer: the parameter. `alias`: the name in the text, where it is another one (`auto out_ptr1 =
            in_out_ptr0;`): it stood for a buffer whose memory the parameter's buffer took over.
        index: what is added to the pointer, as written; None when it cannot be cut out.
        vector: True where it moves consecutive elements from `pointer + index` on, as a vector load does,
            False where it moves the one element `pointer[index]`; None for Triton, whose index is a block.
    """

    line: int
    kind: Literal["load", "store", "atomic"]
    pointer: str
    index: str | None = None
    alias: str | None = None
    vector: bool | None = None


Role: TypeAlias = Literal["in", "out", "inout", "size", "workspace", "pointer"]
"""What a kernel does with an argument; `pointer` when the text does not say the direction."""


class KernelArg(Struct, frozen=True):
    """A parameter of a generated kernel: `const float* in_ptr0`, or `in_ptr0` of type `*fp32` in Triton."""

    name: str
    role: Role
    type: str | None = None


class Kernel(Compared, frozen=True):
    """A generated kernel.

    Attributes:
        name: the variable that `output_code.py` binds it to. backend: `cpp` or `triton`.
        source: its C++ or Triton text.
        chooses: the kernels that it runs one of, when it is but a choice among others.
        details: what its backend reads off the text; None for one whose text is only shown.
        comment: what inductor wrote above it: its path, source nodes, and the FX nodes it was made from.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span", "comment")

    name: str
    backend: str
    source: str
    args: tuple[KernelArg, ...]
    span: Span | None = None
    details: KernelDetails | None = None
    chooses: tuple[str, ...] = ()
    comment: KernelComment | None = None

    @property
    def comments(self) -> tuple[str, ...]:
        """The lines of its comment, without `# `."""
        return self.comment.lines if self.comment else ()


class Launch(Compared, frozen=True):
    """A call of a generated kernel in the wrapper; `args` are the texts passed, in order.

    `keywords` are those passed by name: `("stream", "stream0")`, and `grid` on torch before 2.7.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("span", "comment")

    kernel: str
    args: tuple[str, ...]
    span: Span
    keywords: tuple[tuple[str, str], ...] = ()
    comment: KernelComment | None = None


class ExternCall(Compared, frozen=True):
    """A call of a library kernel: `extern_kernels.mm(a, b, out=buf0)`, `buf0 = torch.ops.aten.cumsum...`."""

    uncompared: ClassVar[tuple[str, ...]] = ("span", "comment")

    target: str
    args: tuple[str, ...]
    outputs: tuple[str, ...]
    span: Span
    comment: KernelComment | None = None


class Allocation(Compared, frozen=True):
    """Memory that the wrapper names.

    Attributes:
        name: the buffer.
        kind: `new`, `reuse` (takes over `of`), `view` (`reinterpret_tensor` of `of`), `alias`, `input`,
            `argument` (input of a subgraph or partition), `constant` (of the module, set when it is loaded),
            or `copy` (of an input that is not aligned).
        layout: size, stride, dtype and device as far as the statement has them; kind `Allocation` or `Input`.
        of: the buffer whose memory it is, where it is not new.
    """

    name: str
    kind: Literal["new", "reuse", "view", "alias", "input", "argument", "constant", "copy"]
    layout: BufferLayout | None
    of: str | None = None
    span: Span | None = None


class Freed(Compared, frozen=True):
    """A statement after which the wrapper has a name no more: `del buf0`, `buf0.reset();` in C++."""

    name: str
    span: Span


class SizeSymbol(Compared, frozen=True):
    """A size that the wrapper computes or takes from an input: `s77 = arg0_1`, `u0 = buf1.item()`."""

    name: str
    value: str
    span: Span


class Branch(Struct, frozen=True):
    """Where a wrapper in C++ branches: `while (1) {`, `if (!name) break;`, `if (name) {`, `} else {`, `}`;
    `elif` is `} else if (name == 1) {`.
    """

    kind: Literal["while", "break", "if", "elif", "else", "end"]
    condition: str = ""


WrapperStep: TypeAlias = Allocation | Launch | ExternCall | SizeSymbol | Branch


class WrapperFunction(Compared, frozen=True):
    """A function of the wrapper beside its entry: a subgraph (a branch of a conditional, the body of a loop),
    or a partition, which is a piece of the graph itself.

    `inputs` and `returns` are like those of `OutputCode`.
    """

    name: str
    inputs: tuple[str, ...]
    returns: tuple[str, ...]
    span: Span

    @property
    def is_subgraph(self) -> bool:
        """Whether it is a subgraph: partitions are called `partition_0` (`codegen_partition_call`)."""
        return not _PARTITION.fullmatch(self.name)


class OutputCode(Compared, frozen=True, dict=True):
    """What `output_code.py` says.

    Attributes:
        entry: `call` (torch before 2.9) or `Runner.call`; in C++ `inductor_entry_impl` or
            `AOTInductorModel::run_impl`. language: of the wrapper. span: of a wrapper in C++, for around it
            stands what torch puts into every such file. added: what is not of torch's forms beside code that
            shows that somebody edited the file.
        inputs: names of the graph's inputs in calling order, symbolic sizes among them.
        returns: texts of the returned values in order. symbols: sizes that the wrapper names, in order.
        functions: functions of the wrapper beside its entry: partitions, branches of conditionals, bodies
            of loops, in order. What they launch and allocate is listed with the rest.
        steps: of a wrapper in C++, what it does, in order.
        freed: where names end, in order.
        entered: calls of `functions`, from where their arguments are gathered, in order.
    """

    uncompared: ClassVar[tuple[str, ...]] = ("steps",)

    entry: str | None
    inputs: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    externs: tuple[ExternCall, ...]
    allocations: tuple[Allocation, ...]
    returns: tuple[str, ...]
    symbols: tuple[SizeSymbol, ...] = ()
    functions: tuple[WrapperFunction, ...] = ()
    problems: tuple[Problem, ...] = ()
    added: tuple[Span, ...] = ()
    span: Span | None = None
    language: Literal["python", "cpp"] = "python"
    steps: tuple[WrapperStep, ...] = ()
    freed: tuple[Freed, ...] = ()
    entered: tuple[tuple[str, Span], ...] = ()

    @property
    def subgraphs(self) -> tuple[WrapperFunction, ...]:
        """The functions that are subgraphs."""
        return tuple(function for function in self.functions if function.is_subgraph)

    def subgraph_at(self, line: int) -> str | None:
        """Return the subgraph whose function has a line, None for the graph itself."""
        functions = self.subgraphs
        return next((part.name for part in functions if part.span.first <= line <= part.span.last), None)

    def folds(self, kernel: str) -> bool:
        """Return whether a kernel is launched to fold constants, and for nothing else."""
        places = [launch.span.first for launch in self.launches if launch.kernel == kernel]
        return bool(places) and all(self.subgraph_at(place) == FOLDING for place in places)

    def kernel(self, name: str) -> Kernel | None:
        """Return the kernel called `name`."""
        return self.by_name.get(name)

    @cached_property
    def by_name(self) -> dict[str, Kernel]:
        """The kernels by name."""
        return {kernel.name: kernel for kernel in self.kernels}
