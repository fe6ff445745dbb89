"""inductor_probe: a microscope for TorchInductor.

    import inductor_probe as ip
    run = ip.dump("scenarios/check_hflip.py")
    run.graphs[0].layouts("buf0")

Names are loaded when first used: importing the package costs nothing and imports neither torch nor rich.
"""

# No import here: `python -m inductor_probe` runs this file while the working folder, perhaps a stranger's
# dump with a `typing.py` in it, comes first on the path. `__main__` takes it away.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from inductor_probe.api.accuracy import Accuracy, accuracy
    from inductor_probe.api.assembly import Asm, ask_compiler, asm, find_kernel, find_kernels
    from inductor_probe.api.bench import Bench, CppProgram, WrittenBenchFile
    from inductor_probe.api.bench_kernel import bench_kernel
    from inductor_probe.api.check import Check, Health, check, doctor
    from inductor_probe.api.compile_time import CompileTimeRows, compile_time
    from inductor_probe.api.diff import Diff
    from inductor_probe.api.expect import Expectations
    from inductor_probe.api.issue import issue_of
    from inductor_probe.api.kernel_check import CheckedKernels
    from inductor_probe.api.memory import Memory, memory
    from inductor_probe.api.notebook import recording
    from inductor_probe.api.op_check import OpCheck, check_op
    from inductor_probe.api.opened import expect, profile
    from inductor_probe.api.otherwise import whatif
    from inductor_probe.api.overview import Overview, overview
    from inductor_probe.api.perf import (
        Compare,
        NotSavedError,
        PerfTable,
        ResultHistory,
        ResultRows,
        compare,
        open_results,
        perf,
        result_history,
        results,
    )
    from inductor_probe.api.portable import Portable, portability
    from inductor_probe.api.profile import Profiles
    from inductor_probe.api.report import Report, report_of
    from inductor_probe.api.rows import (
        Causes,
        ConfigSweeps,
        Explanations,
        FusionRows,
        KernelRows,
        LayoutRows,
        NodeRows,
        RewriteRows,
        Tunings,
    )
    from inductor_probe.api.runs import RunList, plan_removal, remove_run, runs
    from inductor_probe.api.session import Graph, Run
    from inductor_probe.api.show import Page, Pages
    from inductor_probe.api.trials import Trials
    from inductor_probe.api.verbs import (
        candidates_of,
        check_kernel,
        debug,
        diff,
        dump,
        explain,
        export_cpp,
        fusion,
        kernels,
        layouts,
        nodes,
        open_graph,
        open_kernel,
        open_run,
        rewrite,
        rewrites,
        show,
        sweep_configs,
        tunings,
        verdict,
        why,
    )
    from inductor_probe.api.whatif import WhatIf
    from inductor_probe.errors import NotFoundError, ProbeError
    from inductor_probe.model.bench import BenchSettings
    from inductor_probe.model.whatif import Candidate
    from inductor_probe.op_checks.graphs import OpRecorder, compile_graph, trace_op
    from inductor_probe.reduction.bisection import Bisection, bisect
    from inductor_probe.reduction.reduce import Reduction, reduce

__version__ = "0.1.0"

__all__ = [
    "Accuracy", "Asm", "Bench", "BenchSettings", "Bisection", "Candidate", "Causes", "Check",
    "CheckedKernels", "Compare", "CompileTimeRows", "ConfigSweeps", "CppProgram", "Diff", "Expectations",
    "Explanations", "FusionRows", "Graph", "Health", "KernelRows", "LayoutRows", "Memory", "NodeRows",
    "NotFoundError", "NotSavedError", "OpCheck", "OpRecorder", "Overview", "Page", "Pages", "PerfTable",
    "Portable", "ProbeError", "Profiles", "Reduction", "Report", "ResultHistory", "ResultRows",
    "RewriteRows", "Run", "RunList", "Trials", "Tunings", "WhatIf", "WrittenBenchFile", "accuracy",
    "ask_compiler", "asm", "bench_kernel", "bisect", "candidates_of", "check", "check_kernel", "check_op",
    "compare", "compile_graph", "compile_time", "debug", "diff", "doctor", "dump", "expect", "explain",
    "export_cpp", "find_kernel", "find_kernels", "fusion", "issue_of", "kernels", "layouts", "memory",
    "nodes", "open_graph", "open_kernel", "open_results", "open_run", "overview", "perf", "plan_removal",
    "portability", "profile", "recording", "reduce", "remove_run", "report_of", "result_history",
    "results", "rewrite", "rewrites", "runs", "show", "sweep_configs", "trace_op", "tunings", "verdict",
    "whatif", "why",
]  # fmt: skip

_MODULES = {
    "api.accuracy": "Accuracy accuracy",
    "api.assembly": "Asm ask_compiler asm find_kernel find_kernels",
    "api.bench": "Bench CppProgram WrittenBenchFile",
    "api.bench_kernel": "bench_kernel",
    "api.trials": "Trials",
    "api.check": "Check Health check doctor",
    "api.compile_time": "CompileTimeRows compile_time",
    "api.diff": "Diff",
    "api.expect": "Expectations",
    "api.issue": "issue_of",
    "api.kernel_check": "CheckedKernels",
    "api.memory": "Memory memory",
    "api.notebook": "recording",
    "api.op_check": "OpCheck check_op",
    "api.overview": "Overview overview",
    "api.perf": "Compare NotSavedError PerfTable ResultHistory ResultRows compare open_results perf "
    "result_history results",
    "api.portable": "Portable portability",
    "api.profile": "Profiles",
    "api.report": "Report report_of",
    "api.rows": "Causes ConfigSweeps Explanations FusionRows KernelRows LayoutRows NodeRows RewriteRows "
    "Tunings",
    "api.runs": "RunList plan_removal remove_run runs",
    "api.session": "Graph Run",
    "api.show": "Page Pages",
    "api.opened": "expect profile",
    "api.otherwise": "whatif",
    "api.whatif": "WhatIf",
    "errors": "NotFoundError ProbeError",
    "model.bench": "BenchSettings",
    "model.whatif": "Candidate",
    "op_checks.graphs": "OpRecorder compile_graph trace_op",
    "reduction.bisection": "Bisection bisect",
    "reduction.reduce": "Reduction reduce",
}
"""Where each name is defined; those that are not here are verbs of `api.verbs`."""


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only when a name is asked for

    module = next((module for module, names in _MODULES.items() if name in names.split()), "api.verbs")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> "list[str]":
    return sorted([*globals(), *__all__])
