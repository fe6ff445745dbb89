"""Words for why the code of a dump may not run, and for the next step."""

from __future__ import annotations

from inductor_probe.model.runs import OtherWriters, Trust

_BENCH = "output_code_bench.py"


def refusal(trust: Trust) -> tuple[str, str]:
    """Return why a graph's code may not run, and what to do."""
    graph = trust.graph
    hint = (
        f"read {graph / 'output_code.py'}, and {_BENCH} if there is one, then add --trust: "
        "it will be compiled and run as you"
    )
    match trust.reason:
        case "other-writers" if trust.others is not None:
            why = f"{graph} was made on this machine, but {_who(trust.others)}: it may hold their code"
            helps = (
                f"chmod go-w {trust.others.path} if nobody changed it; or " if not trust.others.owner else ""
            )
            return why, helps + hint
        case "moved-and-edited":
            why = (
                f"probe dump made {graph} in another folder: nothing shows whose variants and edits "
                f"{_BENCH} holds there, so it runs without any only"
            )
            path = graph / _BENCH
            return (
                why,
                f"read {path}, then add --trust; or delete it: the graph itself was made on this machine",
            )
        case "changed":
            return f"{graph} was made on this machine, and its files were changed since", hint
    why = f"nothing shows that {graph} was made on this machine"
    return why + (f": {trust.problem}" if trust.problem else _claim(trust)), hint


def _who(others: OtherWriters) -> str:
    if others.owner:
        return f"{others.path} belongs to {others.owner}"
    return f"other users may write to {others.path} (mode {others.mode or 0:04o})"


def _claim(trust: Trust) -> str:
    if trust.claims is None:
        return ", and it was not made by probe dump"
    facts = dict(trust.claims)
    where = " with ".join(facts[name] for name in ("host", "cpu") if name in facts)
    return f" (it says: on {where})" if where else ""
