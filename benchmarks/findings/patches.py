"""Changes of torch's source that a finding proposes, applied while it runs.

    python -m benchmarks.findings.patches NAME[,NAME] SCRIPT [ARGS]
    probe dump benchmarks/findings/patches.py -- NAME[,NAME] SCRIPT [ARGS]

run SCRIPT with patches applied; `probe whatif --runs` then compares that dump with one of SCRIPT as torch is.
A patch names functions of torch and edits of their text: what a patch to torch would be, so that it can be
shown as a diff (`as_diff`) and tried in any process (`apply`) before inductor compiles. An edit that does not
fit the source of the torch at hand is an error: another release has to be read again.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import runpy
import sys
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Edit:
    """`old` becomes `new` in a function, named as `module:Class.function`."""

    place: str
    old: str
    new: str


@dataclass(frozen=True)
class Patch:
    """Edits that belong together, and what they are for; not `proposed` is one to measure with.

    `device` is that whose code they change.
    """

    what: str
    edits: tuple[Edit, ...]
    proposed: bool = True
    device: str = "cpu"

    @property
    def sources(self) -> dict[str, tuple[str, str]]:
        """For each place the text of the function as it is, and as the patch makes it.

        ValueError: an edit does not fit the function.
        """
        sources: dict[str, tuple[str, str]] = {}
        for edit in self.edits:
            if edit.place not in sources:
                text = textwrap.dedent(inspect.getsource(_function(edit.place)))
                sources[edit.place] = text, text
            text, patched = sources[edit.place]
            if (count := patched.count(edit.old)) != 1:
                raise ValueError(f"{edit.place} has {count} places of {edit.old!r}, not one: another torch")
            sources[edit.place] = text, patched.replace(edit.old, edit.new)
        return sources


def _function(place: str) -> Any:
    module, _, path = place.partition(":")
    function: Any = importlib.import_module(module)
    for name in path.split("."):
        function = vars(function)[name]
    return inspect.unwrap(function)


FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
_CPP, _JOINT = "torch._inductor.codegen.cpp", "torch._inductor.fx_passes.joint_graph"
_PERSISTENT = "torch._inductor.choices:InductorChoices.should_use_persistent_reduction"
_SHORT_IF = "            if (\n                not reduction_group\n"
_SHORT = "< tiling_factor / 4\n" + 16 * " " + "and op_num < 10\n"
PATCHES = {
    "reversed_always": Patch(
        "count an access that goes backwards by single elements as contiguous",
        (
            Edit(
                f"{_CPP}:TilingSelect.select_tiling",
                "else stride not in [0, 1]\n",
                "else stride not in [0, 1, -1]\n",
            ),
        ),
        proposed=False,
    ),
    "reversed": Patch(
        "the same for images of uint8 alone, but for short rows and for AVX2",
        (
            Edit(
                f"{_CPP}:TilingSelect.select_tiling",
                "        if config.cpp.enable_tiling_heuristics:\n",
                "        reversed_is_contiguous = (\n"
                "            tiling_factor >= 16\n"
                "            and V.graph.sizevars.optimization_hint(\n"
                "                call_ranges[tiling_indices[0]], fallback=0\n"
                "            ) >= 4 * tiling_factor\n"
                "            and all(each is torch.uint8 for each in all_dtypes)\n"
                "        )\n"
                "        if config.cpp.enable_tiling_heuristics:\n",
            ),
            Edit(
                f"{_CPP}:TilingSelect.select_tiling",
                "else stride not in [0, 1]\n",
                "else stride not in [0, 1]\n"
                "                                    and not (stride == -1 and reversed_is_contiguous)\n",
            ),
        ),
    ),
    "short_ranges": Patch(
        "AVX2: do not vectorise a few operations where integers would never fill a vector",
        (
            Edit(
                f"{_CPP}:TilingSelect.select_tiling",
                _SHORT_IF,
                "            # With AVX2, ATen copies a part of a vector of integers to the stack,\n"
                "            # and loads a vector from there.\n"
                "            has_partial_copies = isinstance(\n"
                "                cpu_vec_isa.pick_vec_isa(), cpu_vec_isa.VecAVX2\n"
                "            ) and any(\n"
                "                _node.target in ('load', 'store')\n"
                "                and not V.graph.get_dtype(_node.args[1]).is_floating_point\n"
                "                for _body in loop_bodies\n"
                "                for sub_block in (_body.root_block, *_body.subblocks.values())\n"
                "                for _node in sub_block.graph.nodes\n"
                "            )\n"
                "            least = tiling_factor if has_partial_copies else tiling_factor / 4\n"
                + _SHORT_IF,
            ),
            Edit(f"{_CPP}:TilingSelect.select_tiling", _SHORT, "< least\n" + 16 * " " + "and op_num < 10\n"),
        ),
    ),
    "invariant": Patch(
        "short loops: count operations that differ from step to step, not those on the loops around",
        (
            Edit(
                f"{_CPP}:TilingSelect.select_tiling",
                _SHORT_IF,
                "            # What is the same in each step is no faster in vectors.\n"
                "            step = itervars[tiling_indices[0]] if itervars else None\n"
                "            varying = OrderedSet[torch.fx.Node]()\n"
                "            for _body in loop_bodies:\n"
                "                for sub_block in (_body.root_block, *_body.subblocks.values()):\n"
                "                    indices = sub_block.body.indexing_from_args((vars, reduction_vars))\n"
                "                    for _node in sub_block.graph.nodes:\n"
                "                        varies = any(each in varying for each in _node.all_input_nodes)\n"
                "                        for each in _node.all_input_nodes:\n"
                "                            if each.target == 'get_index':\n"
                "                                index = indices[each.args[0]]\n"
                "                                varies |= step in index.free_symbols\n"
                "                        # a subblock may hold anything\n"
                "                        varies |= str(_node.target).startswith('masked_subblock')\n"
                "                        if varies or _node.target == 'store':\n"
                "                            varying.add(_node)\n"
                "            op_num = sum(each.target in stats.op_counter for each in varying)\n" + _SHORT_IF,
            ),
        ),
    ),
    "short_scalar": Patch(
        "vectorise no loop whose vectors are never full: the one extreme, to be measured",
        (Edit(f"{_CPP}:TilingSelect.select_tiling", _SHORT, "< tiling_factor\n"),),
        proposed=False,
    ),
    "short_vectorised": Patch(
        "vectorise loops however few of the lanes they fill: the other extreme",
        (Edit(f"{_CPP}:TilingSelect.select_tiling", _SHORT, "< 1\n"),),
        proposed=False,
    ),
    "tiles": Patch(
        "count what threads share: tiles of a loop that is vectorised, not its elements",
        (
            Edit(
                f"{_CPP}:CppKernel.decide_parallel_depth",
                "        par *= hint\n",
                "        # An outer loop fusion keeps the loops that are fused, and no others.\n"
                "        loops = getattr(getattr(self, 'loop_nest', None), 'loops', None) or []\n"
                "        level = max_parallel_depth.start_depth + depth - 1\n"
                "        steps = loops[level].steps if level < len(loops) else 1\n"
                "        par *= -(-hint // int(steps))\n",
            ),
        ),
    ),
    "collapsed": Patch(
        "mark as collapsed all loops below the first parallel one, wherever that is",
        (
            Edit(
                f"{_CPP}:LoopNest.mark_parallel",
                "range(par_depth.start_depth + 1, par_depth.parallel_depth)",
                "range(par_depth.start_depth + 1, par_depth.start_depth + par_depth.parallel_depth)",
            ),
        ),
    ),
    "mask_loads": Patch(
        "load a bool tensor as bytes, and compare them, in place of a branch for each lane",
        (
            Edit(
                f"{_CPP}:CppVecKernel._get_vec_load_line",
                '        line = f"{self._get_mask_type()}::from({loadbuf}, {cexpr_index(self.num_elems)})"\n',
                "        mask_type = self._get_mask_type(torch.int32)\n"
                "        count = cexpr_index(self.num_elems)\n"
                "        vectors = self._get_num_vectors(torch.float)\n"
                "        if vectors == 1 and self.vec_isa.bit_width() == 512:\n"
                "            pointer = f'reinterpret_cast<const uint8_t*>({loadbuf})'\n"
                "            loaded = f'at::vec::Vectorized<uint8_t>::loadu({pointer}, {count})'\n"
                "            zero = 'at::vec::Vectorized<int32_t>(0)'\n"
                "            mask = f'{mask_type}(at::vec::convert<int32_t>({loaded}) != {zero})'\n"
                "        else:\n"
                "            mask = f'{mask_type}::from({loadbuf}, {count})'\n"
                "        line = f'{mask}.template cast<float,{vectors}>()'\n",
            ),
        ),
    ),
    "mask_loads_lanes": Patch(
        "make masks of a bool tensor from integers lane by lane, as torch 2.11 did",
        (
            Edit(
                f"{_CPP}:CppVecKernel._get_vec_load_line",
                '        line = f"{self._get_mask_type()}::from({loadbuf}, {cexpr_index(self.num_elems)})"\n',
                "        mask = f'{self._get_mask_type(torch.int32)}::from'\n"
                "        vectors = self._get_num_vectors(torch.float)\n"
                "        count = cexpr_index(self.num_elems)\n"
                "        line = f'{mask}({loadbuf}, {count}).template cast<float,{vectors}>()'\n",
            ),
        ),
        proposed=False,
    ),
    "scaled_softmax": Patch(
        "find overflow in the largest value and in each, which takes no reduction of its own",
        (
            Edit(
                f"{_JOINT}:_preserve_scaled_softmax_nonfinite_semantics",
                "    original = scaled - torch.amax(scaled, dim=dim, keepdim=keepdim)\n"
                "    finite_scaled = torch.all(torch.isfinite(scaled), dim=dim, keepdim=True)\n"
                "    return torch.where(finite_scaled, stable, original)\n",
                "    # Of values with NaN or +inf the largest is not finite; -inf concerns itself alone.\n"
                "    largest = torch.amax(scaled, dim=dim, keepdim=keepdim)\n"
                "    finite = torch.isfinite(largest) & torch.isfinite(scaled)\n"
                "    return torch.where(finite, stable, scaled - largest)\n",
            ),
        ),
    ),
    "scaled_softmax_never": Patch(
        "leave infinite and NaN values to the stable form, as before that was mended",
        (
            Edit(
                f"{_JOINT}:_preserve_scaled_softmax_nonfinite_semantics",
                "    return torch.where(finite_scaled, stable, original)\n",
                "    return stable\n",
            ),
        ),
        proposed=False,
    ),
    "persistent_always": Patch(
        "Triton: hold rows of up to 8,192 elements in registers, whatever is done with them",
        (Edit(_PERSISTENT, "ReductionHint.INNER: 1024,", "ReductionHint.INNER: 8192,"),),
        proposed=False,
        device="cuda",
    ),
    "persistent_rows": Patch(
        "Triton: hold rows of up to 8,192 elements in registers where a loop would read them again",
        (
            Edit(
                _PERSISTENT,
                "    }.get(features.get_reduction_hint(), 64)\n",
                "    }.get(features.get_reduction_hint(), 64)\n"
                "    if features.get_reduction_hint() == ReductionHint.INNER:\n"
                "        stats = features.memory_stats()\n"
                "        looped, persistent = (\n"
                "            V.graph.sizevars.optimization_hint(each.memory.bytes, fallback=0)\n"
                "            for each in (stats.looped, stats.persistent)\n"
                "        )\n"
                "        # A loop reads its row again for what comes after the reduction.\n"
                "        if looped >= 1.3 * persistent and not cooperative_reduction:\n"
                "            threshold = 8192\n",
            ),
        ),
        device="cuda",
    ),
    "freezing": Patch(
        "let dynamo read whether parameters are frozen from the options of torch.compile, too",
        (
            Edit(
                "torch._dynamo.utils:is_parameter_freezing",
                "    return torch._inductor.config.freezing and not torch.is_grad_enabled()\n",
                "    from torch._dynamo.eval_frame import innermost_backend\n"
                "    from torch._dynamo.symbolic_convert import InstructionTranslator\n"
                "    backend = innermost_backend(InstructionTranslator.current_tx().output.compiler_fn)\n"
                "    options = getattr(backend, 'config', {})\n"
                "    freezing = options.get('freezing', torch._inductor.config.freezing)\n"
                "    return freezing and not torch.is_grad_enabled()\n",
            ),
        ),
    ),
}  # fmt: skip


def as_diff(patch: Patch) -> str:
    """Return a patch as a unified diff of torch's functions."""
    lines: list[str] = []
    for place, texts in patch.sources.items():
        old, new = (text.splitlines(keepends=True) for text in texts)
        lines += difflib.unified_diff(old, new, place, place)
    return "".join(lines)


def apply(*patches: Patch) -> None:
    """Change torch in this process: functions stay the same objects, whoever holds or wraps them.

    All patches at once: a second call would begin with the text of the file again.
    """
    together = Patch("all of them", tuple(edit for patch in patches for edit in patch.edits))
    for place in together.sources:
        _function(place).__code__ = patched(place, together).__code__


def patched(place: str, patch: Patch) -> Any:
    """Return a function of torch as the patch makes it, which torch itself does not call.

    Lines keep their file and numbers, so that what reads torch's frames finds them.
    """
    function = _function(place)
    tree = ast.parse(patch.sources[place][1])
    (definition,) = tree.body
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{place} is no function")
    definition.decorator_list = []  # they have run already
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    made: dict[str, Any] = {}
    code = compile(tree, function.__code__.co_filename, "exec")
    exec(code, vars(sys.modules[function.__module__]), made)  # noqa: S102 - torch's text and ours
    return made[definition.name]


def copy_of(place: str) -> Any:
    """Return a function that does what torch's does now, and still does when that is changed."""
    function = _function(place)
    return types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


def replace(place: str, replacement: Any) -> None:
    """Let whoever calls a function of torch call another one; it stays the same object."""
    function = _function(place)
    key = f"_instead_of_{place}"
    function.__globals__[key] = replacement
    source = f"def function(*args, **kwargs):\n    return globals()[{key!r}](*args, **kwargs)\n"
    made: dict[str, Any] = {}
    exec(source, made)  # noqa: S102 - the line above
    function.__defaults__ = function.__kwdefaults__ = None
    function.__code__ = made["function"].__code__


if __name__ == "__main__":
    apply(*(PATCHES[each] for each in sys.argv[1].split(",")))
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
