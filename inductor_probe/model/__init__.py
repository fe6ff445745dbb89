"""The records that everything else passes around: frozen, with tuples. Read this room first, in this order.

span, codec, output         a place in a file; records to JSON and back; what `--json` of every verb has
remark, proof               typed conclusions, and what shows a link: codes with operands, no sentences
ir, fx, code                read: the scheduler's IR, FX graphs, `output_code.py` with its kernels
logs, manifest, debug_dir   read: the compiler's logs, `probe.json`, and a graph with all that was read of it
layouts, links              concluded: how buffers lie and are reached; user's line, FX node, node, kernel
nodes, kernels, formula     concluded: a row a node, a row a kernel, a loop body as mathematics
fusion, autotuning          concluded: what was fused and why, what a template was chosen among
pages, diff, check, runs    concluded: a page of a name, two graphs compared, a dump as a whole, runs on disk
decision, cause             recorded: what torch decided, on what; concluded: why, and what turns it
expectation, explanation    what is expected of a graph; what a cause means
flip, setting               a decision that is to be turned by name, and what became of that; one of torch's
timing, bench, cpp_program  bench files: what they measured, what that says; a kernel as a C++ program
comparison, own_call        a ratio with its interval; the user's own call, and its parts (call_parts)
profile, perf               where the time of a call goes; cases of scenarios in a table
whatif                      two ways to compile a graph, or many ways tried against it
kernel_check, op_check      whether Triton kernels are right, without a GPU; whether operators are
assembly, gpu_target        what a kernel is compiled to; a GPU that is simulated
health                      whether a machine is fit for dumps and timings

What was decided here:

- A number that torch cannot have stays text. Sizes are int64 in torch; a larger one is shown as printed and
  not computed with, and a polynomial or power beyond any index is not multiplied out (`analysis/index.py`).
- A bad part does not hide the good parts. What cannot be read is a `Problem` with path and line beside what
  could; the exit status is 2 then.
- What is read and what is concluded are different types. Conclusions name their proof (`Proof`: a code, its
  operands, and whether it is recorded, read or inferred; `LayoutRow.evidence`), and their words are made in
  `report/words`; what cannot be proved is AMBIGUOUS with its candidates.
- JSON is the records. A verb's `--json` is one record (`LayoutsOutput` in `layouts.py`), written by the
  codec: there are no functions from records to JSON. Its schema (`--json-schema`) and the page of all
  records (`make docs`) are made from the same annotations and docstrings when they are asked for.
"""
