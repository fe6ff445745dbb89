"""Which candidates are worth compiling, in which order, and which at once in one dump.

A dump takes seconds, and few of a hundred candidates can gain anything. So

- what a candidate is about has a share of the call, and one with a smaller share than the margin is dropped;
- the others come in the order of what they may gain;
- those that have nothing to do with each other are compiled together: then the loop nests of each are held
  against those of A, and only one whose nests became faster is compiled, checked and timed by itself.

That is group testing (Dorfman, The Detection of Defective Members of Large Populations, 1943), where the
parts of a pooled sample can be told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.causes.candidates import Offer, offers_of, times_code
from inductor_probe.analysis.causes.times import Times
from inductor_probe.analysis.links import links
from inductor_probe.api.candidate_dumps import most_at_once
from inductor_probe.api.on_disk import GraphOnDisk, RunOnDisk
from inductor_probe.bench.looks import seconds_of
from inductor_probe.errors import ProbeError
from inductor_probe.executors.server import Server
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.whatif import Candidate

PROFILE_S = 1.5
"""Seconds in which loop nests are timed, of A and of each group."""
_LOOK_S, _GROUP_S = 4.0, 8.0
"""About how long a first look at a candidate takes, and at a group."""
_ALONE, _BROAD = 0.05, 0.5
"""Of the call: what may gain more than the first, or is about more than the second, is tried by itself."""
_LEAST, _MOST = 3, 8
_FASTER = 0.97
"""Times of two processes differ by some percent: a piece that is faster by less is not."""

Progress = Callable[[str], None]


class Plan(Struct, frozen=True):
    """What is to be tried, in this order, and what is not.

    Attributes:
        entries: candidates that are compiled at once; of most there is one.
        dropped: that can gain less than the margin. offers: all that is offered, by candidate.
    """

    entries: tuple[tuple[Candidate, ...], ...]
    dropped: tuple[Offer, ...] = ()
    offers: Mapping[Candidate, Offer] = {}

    def seconds(self, dump_s: float, most_at_once: int) -> float:
        """Return about how long all of it takes: dumps, and what is measured of each."""
        groups = sum(len(entry) > 1 for entry in self.entries)
        looks = (len(self.entries) - groups) * _LOOK_S + groups * _GROUP_S
        return looks + len(self.entries) / most_at_once * dump_s


def plan_of(
    a: RunOnDisk, candidates: Sequence[Candidate], settings: BenchSettings, threads: int | None = None
) -> Plan:
    """Return what is to be tried of some candidates, by what was timed of A; all where nothing was."""
    times = {graph.name: graph.times for graph in a.graphs}
    offers = {
        offer.candidate: offer for offer in offers_of([graph.compiled for graph in a.graphs], threads, times)
    }
    known = [offers[candidate] for candidate in candidates if candidate in offers]
    dropped = [one for one in known if one.at_most is not None and one.at_most < settings.margin]
    open_offers = [one for one in known if one not in dropped]
    given = [(candidate,) for candidate in candidates if candidate not in offers]  # by somebody who wants it
    alone = [one for one in open_offers if not _may_be_grouped(one)]
    grouped = _groups([one for one in open_offers if _may_be_grouped(one)])
    several = [group for group in grouped if len(group) >= _LEAST]
    alone += [one for group in grouped if group not in several for one in group]
    entries = [(max(one.expected for one in group), group) for group in (*([one] for one in alone), *several)]
    entries.sort(key=lambda entry: (any(times_code(one.candidate) for one in entry[1]), -entry[0]))
    ordered = [tuple(one.candidate for one in group) for _, group in entries]
    return Plan((*given, *ordered), tuple(dropped), offers)


def planned(
    a: RunOnDisk,
    candidates: Sequence[Candidate],
    settings: BenchSettings,
    server: Server | None,
    *,
    again: bool,
    trust: bool,
    progress: Progress | None,
) -> Plan:
    """Return what to try, by the times of the loop nests of A: they are measured where they were not."""
    if again or not all(graph.times.call for graph in a.graphs):
        time_nests(a.graphs, settings, server, trust=trust, progress=progress)
    return plan_of(a, candidates, settings, settings.threads)


def plan_text(plan: Plan, a: RunOnDisk, budget: float, margin: float) -> str:
    """`67 candidates: 36 can gain more than 1 % of a call; that takes about 2 min, 5 min at most`."""
    count = sum(map(len, plan.entries))
    seconds = plan.seconds(a.manifest.duration_s if a.manifest else 0.0, most_at_once(a))
    times = [f"{one / 60:.0f} min" if one >= 120 else f"{one:.0f} s" for one in (seconds, budget)]
    can = f"{count} can gain more than {margin * 100:.3g} % of a call"
    return f"{count + len(plan.dropped)} candidates: {can}; that takes about {times[0]}, {times[1]} at most"


def _may_be_grouped(offer: Offer) -> bool:
    candidate = offer.candidate
    decides_alone = not (candidate.knobs or candidate.variables or times_code(candidate))
    broad = offer.at_most is None or offer.at_most > _BROAD
    return decides_alone and bool(offer.pieces) and not broad and offer.expected < _ALONE


def _groups(offers: Iterable[Offer]) -> list[list[Offer]]:
    """Put offers into groups whose members are about different pieces: first fit, the best first."""
    groups: list[tuple[set[tuple[str, str]], list[Offer]]] = []
    for offer in sorted(offers, key=lambda one: -one.expected):
        pieces = set(offer.pieces)
        for taken, members in groups:
            if len(members) < _MOST and taken.isdisjoint(pieces):
                taken.update(pieces)
                members.append(offer)
                break
        else:
            groups.append((pieces, [offer]))
    return [members for _, members in groups]


def at_once(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate that turns all of them."""
    return reduce(or_, candidates)


def time_nests(
    graphs: Sequence[GraphOnDisk],
    settings: BenchSettings,
    server: Server | None,
    *,
    trust: bool,
    progress: Progress | None,
) -> bool:
    """Time the loop nests of graphs, in one process each, and store that in their run; whether it worked.

    `server` has imported torch for others.
    """
    from inductor_probe.api.profile import profile_graphs

    pairs = [(graph, write) for graph in graphs if (write := getattr(graph, "write_bench_file", None))]
    quick = replace(settings, budget=PROFILE_S, own=False, processes=1)
    try:
        profile_graphs(pairs, quick, trust=trust, progress=progress, shared=server)
    except ProbeError:
        return False
    for graph in graphs:
        graph.forget_times()
    return True


class Member(Struct, frozen=True):
    """What came of a candidate among others: the time of what it is about over that of A.

    `promising`: by itself it may gain more than the margin. `gained`: the share of the call.
    """

    candidate: Candidate
    ratio: float
    gained: float
    promising: bool


def members_of(
    group: Sequence[Candidate],
    plan: Plan,
    pairs: Sequence[tuple[GraphOnDisk, GraphOnDisk]],
    margin: float,
) -> tuple[Member, ...] | None:
    """Return what came of each member of a group, by the times of both; None where that is not known.

    A piece of B is a part of the piece of A whose FX nodes are most like its own (Jaccard's index). What no
    member is about says how much faster or slower the machine was meanwhile.
    """
    before, after = dict[tuple[str, str], float](), dict[tuple[str, str], float]()
    calls_a = calls_b = 0.0
    for a, b in pairs:
        if a.times.call is None or b.times.call is None:
            return None
        calls_a, calls_b = calls_a + a.times.call, calls_b + b.times.call
        old, new = _pieces_with_fx(a.generated, a.times), _pieces_with_fx(b.generated, b.times)
        before |= {(a.name, name): seconds for name, seconds, _ in old}
        for _, seconds, fx in new:
            name, _, other = max(old, key=lambda piece: _alike(piece[2], fx), default=("", 0.0, frozenset()))
            if other & fx:
                after[a.name, name] = after.get((a.name, name), 0.0) + seconds
    taken = {piece for candidate in group for piece in plan.offers[candidate].pieces}
    rest = [piece for piece in before if piece in after and piece not in taken]
    drift = 1.0
    if rest and (changed := sum(after[piece] for piece in rest)) > 0:
        drift = sum(before[piece] for piece in rest) / changed
    members = []
    for candidate in group:
        pieces = [piece for piece in plan.offers[candidate].pieces if piece in before]
        was, now = sum(before[one] for one in pieces), drift * sum(after.get(one, 0.0) for one in pieces)
        gained = (was - now) / calls_a
        ratio = now / was if was else 1.0
        members.append(Member(candidate, ratio, gained, ratio < _FASTER and gained > margin / 2))
    faster = (calls_a - drift * calls_b) / calls_a > 2 * margin
    if faster and not any(member.promising for member in members):  # elsewhere than what they are about
        return tuple(replace(member, promising=True) for member in members)
    return tuple(members)


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0


def _pieces_with_fx(graph: CompiledGraph, times: Times) -> list[tuple[str, float, frozenset[str]]]:
    """Return what was timed of a graph with the FX nodes that each computes."""
    linked = links(graph).nodes
    nodes = dict[str, Sequence[str]]()
    for kernel in times.kernels:
        whole = [name for name, link in linked.items() if link.kernel == kernel]
        nests = {
            f"{kernel}, loop nest {one.number}": one.nodes for one in times.nests if one.kernel == kernel
        }
        nodes |= {piece: nests.get(piece, whole) for piece, _ in times.pieces([kernel])}
    seconds = dict(piece for kernel in times.kernels for piece in times.pieces([kernel]))
    return [
        (
            piece,
            seconds[piece],
            frozenset(name for node in names if node in linked for name in linked[node].fx),
        )
        for piece, names in nodes.items()
    ]


@dataclass
class Clock:
    """How long things take here, and what there is time for yet.

    Attributes:
        deadline: of all, by `time.monotonic`.
        dump_s: the longest that dumps took; before the first one how long that of A took, perhaps on a busy
            machine.
        first_look: seconds of the first look at a candidate.
        around_s: the longest that a look took besides what it measures.
    """

    deadline: float
    dump_s: float
    first_look: float
    around_s: float = 0.0
    _dumped: bool = False

    def dumped(self, seconds: float) -> None:
        """Record how long dumps took, several at once or one."""
        self.dump_s = max(self.dump_s, seconds) if self._dumped else seconds
        self._dumped = True

    def looked(self, seconds: float, measured: float) -> None:
        """Record how long a look took that was to measure for so long."""
        self.around_s = max(self.around_s, seconds - measured)

    def seconds_of(self, look: int) -> float:
        """Return how long a look measures."""
        return seconds_of(look, self.first_look)

    def fits(self, look: int = 1, *, dump: bool = False) -> bool:
        """Whether there is time for a look, and for a dump before it."""
        seconds = self.around_s + self.seconds_of(look) + (self.dump_s if dump else 0.0)
        return time.monotonic() + seconds <= self.deadline

    @property
    def left(self) -> str:
        """What is left of the budget: `at most 4 min left`."""
        left = max(0.0, self.deadline - time.monotonic())
        return f"at most {left / 60:.0f} min left" if left >= 60 else f"at most {left:.0f} s left"
