"""The records that everything else passes around: frozen, with tuples. Read this room first, in this order.

span, codec, output         a place in a file; records to JSON and back; what `--json` of every verb has
remark, proof               typed conclusions, and what shows a link: codes with operands, no sentences
ir, fx, code                read: the scheduler's IR, FX graphs, `output_code.py` with its kernels
logs, manifest, debug_dir   read: the compiler's logs, `probe.json`, and a graph with all that was read of it
layouts, links              concluded: how buffers lie and are reached; user's line, FX node, node, kernel
nodes, kernels, formula     concluded: a row a node, a row a kernel, a loop body as mathematics
fusion, autotuning          concluded: what was fused and why, what a template was chosen among
pages, diff, check, runs    concluded: a page of a name, two graphs compared, a dump as a whole, runs on disk
flip                        a decision that is to be turned by name, and what became of that
timing, bench, cpp_program  bench files: what they measured, what that says; a kernel as a C++ program
whatif                      two ways to compile a graph, or many ways tried against it
health                      whether a machine is fit for dumps and timings
"""
