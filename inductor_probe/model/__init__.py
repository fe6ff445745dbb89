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
expectation, kernel_causes  what is expected of a graph; what decided how its kernels are
flip, setting               a decision that is to be turned by name, and what became of that; one of torch's
timing, bench, cpp_program  bench files: what they measured, what that says; a kernel as a C++ program
comparison, own_call        a ratio with its interval; the user's own call, and its parts (call_parts)
profile, perf               where the time of a call goes; cases of scenarios in a table
whatif                      two ways to compile a graph, or many ways tried against it
kernel_check, op_check      whether Triton kernels are right, without a GPU; whether operators are
assembly, gpu_target        what a kernel is compiled to; a GPU that is simulated
health                      whether a machine is fit for dumps and timings
"""
