"""An executor over the nodes of a Ray cluster: an actor holds what a task needs, and a task runs in it.

Ray gives each actor what it declares, to no one else. A task that is timed holds all processors of a node, or
a GPU with its share of them; so nothing that Ray knows of runs beside it, be it a timing or another job:

    node a: 8 CPU          timed on a CPU: an actor of 8 CPU
    node b: 32 CPU, 4 GPU  timed on a GPU: four actors of 8 CPU and 1 GPU
    head:   0 CPU          (`ray start --head --num-cpus=0`) runs nothing

The package itself is lent to the nodes (Ray's `py_modules`): they need ray and torch. A task whose actor dies
runs once more, on another node where there is one; if that one dies, too, the task is lost, and no other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, Generic

from msgspec import Struct

import inductor_probe
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.executors.local import Done, Needs, Result, Task, Tell, Worker
from inductor_probe.model.perf import RowFailure

_POLL_S = 2.0
_MOST_TRIES = 2
_MOST_DEATHS = 3
_CLOSE_S = 10.0


class _Node(Struct, frozen=True):
    """A node as Ray knows it."""

    id: str
    host: str
    cpus: int
    gpus: int


@dataclass
class _Slot:
    """An actor, and what it was told to do; `None` stands for what is done before tasks.

    Attributes:
        work: the call that it was told to do, with the number of its task.
        group: the tasks that are given to it next, one after the other: when an actor dies, Ray may lose the
            answer of the call before, and of several it would not be known which one ended it.
        dead: the actor has died, and no other one has taken its place yet.
        deaths: of actors that had no task yet, since one finished a task: more will not help.
        lost: why nothing is given to it any more; empty while it lives.
    """

    node: _Node
    actor: Any
    work: deque[tuple[Any, int | None]] = field(default_factory=deque)
    group: deque[int] = field(default_factory=deque)
    opened: bool = False
    dead: bool = False
    deaths: int = 0
    lost: str = ""

    @property
    def has_tasks(self) -> bool:
        """Whether it does a task, or is given one next."""
        return bool(self.group) or any(index is not None for _, index in self.work)


class _Actor(Generic[Task, Result]):
    """What runs on a node: a worker, which is made there."""

    def __init__(self, make: Callable[[Tell], Worker[Task, Result]]) -> None:
        self._worker = make(lambda text: None)

    def open(self) -> None:
        self._worker.open()

    def prepare(self, tasks: Sequence[Task], cores: int) -> None:
        self._worker.prepare(tasks, cores)

    def run(self, task: Task) -> Result:
        return self._worker.run(task)

    def close(self) -> None:
        self._worker.close()


class RayExecutor:
    """Runs tasks on the Ray cluster that `RAY_ADDRESS` names, or that this machine is a node of.

    Attributes:
        gpus: how many the cluster has.
    """

    def __init__(self, jobs: int | None = None, warn: Tell = lambda text: None) -> None:
        """Connect to the cluster.

        Args:
            jobs: at most so many tasks at once; as many as there is room for if None.
            warn: is called with a sentence when a node is not used any more.

        Raises:
            ProbeError: ray cannot be imported, or no cluster can be reached.
        """
        self._jobs, self._warn = jobs, warn
        self._warned = set[str]()
        self._ray, self._connected = _ray(), False
        if not self._ray.is_initialized():
            _connect(self._ray)
            self._connected = True
        self._print = _silence(self._ray)
        self.gpus = sum(node.gpus for node in self._nodes())

    def close(self) -> None:
        """Disconnect, unless the process had been connected before."""
        if self._print is not None:
            self._ray._private.worker.print_to_stdstream = self._print
        if self._connected:
            self._ray.shutdown()

    def map(
        self,
        make: Callable[[Tell], Worker[Task, Result]],
        tasks: Sequence[Task],
        needs: Needs,
        *,
        batch: int = 1,
        name: Callable[[Task], str] = str,
        tell: Tell = lambda text: None,
    ) -> Generator[Done[Task, Result], None, None]:
        """See `Executor.map`; a task is lost when two actors died of it, or no node is left.

        Raises:
            ProbeError: no node has what is needed, or no worker can start on any; what a task raises.
        """
        if not tasks:
            return
        room = (slot for node in self._nodes() for slot in self._slots(node, make, needs))
        slots = [*islice(room, min(self._jobs or len(tasks), len(tasks)))]
        if not slots:
            what = "GPU" if needs.device == "cuda" else "CPU"
            raise ProbeError(f"no node of the Ray cluster has a {what}", "`ray status` lists its resources")
        queue = _Queue(len(tasks))
        try:
            while queue.waiting or any(slot.has_tasks for slot in slots):
                self._assign(slots, queue, tasks, batch, needs)
                if not any(slot.work for slot in slots):
                    break  # no node is left
                tell(_doing(slots, tasks, name))
                first = {slot.work[0][0]: slot for slot in slots if slot.work}
                ready, _ = self._ray.wait([*first], num_returns=1, timeout=_POLL_S)
                for reference in ready:
                    done: Done[Task, Result] | None = self._take(first[reference], queue, tasks, slots)
                    if first[reference].dead:
                        self._replace(slots, first[reference], room, make, needs)
                    if done is not None:
                        yield done
            why = next((slot.lost for slot in slots if slot.lost), "")
            for index in queue.waiting:
                yield Done(tasks[index], None, RowFailure("no-node-left", why))
        finally:
            self._end(slots)

    def _nodes(self) -> list[_Node]:
        """Return the nodes that are alive."""
        nodes = []
        for facts in self._ray.nodes():
            if facts["Alive"]:
                resources = facts["Resources"]
                cpus, gpus = (int(resources.get(kind, 0)) for kind in ("CPU", "GPU"))
                nodes.append(_Node(facts["NodeID"], facts["NodeManagerHostname"], cpus, gpus))
        return nodes

    def _slots(
        self, node: _Node, make: Callable[[Tell], Worker[Task, Result]], needs: Needs
    ) -> Iterator[_Slot]:
        """Start the actors that a node has room for."""
        count = node.gpus if needs.device == "cuda" else min(node.cpus, 1) if needs.alone else node.cpus
        for _ in range(count):
            yield self._started(_Slot(node, None), make, needs)

    def _started(self, slot: _Slot, make: Callable[[Tell], Worker[Task, Result]], needs: Needs) -> _Slot:
        """Let Ray start an actor, which waits until the node has what it needs."""
        from ray.util.scheduling_strategies import (  # noqa: PLC0415 - an extra: only where it is asked for
            NodeAffinitySchedulingStrategy,
        )

        slot.actor = (
            self._ray.remote(_Actor)
            .options(
                num_cpus=_cores(slot.node, needs),
                num_gpus=int(needs.device == "cuda"),
                max_restarts=0,  # another actor takes its place, and it is known which task it had
                scheduling_strategy=NodeAffinitySchedulingStrategy(slot.node.id, soft=False),
            )
            .remote(make)
        )
        slot.work, slot.opened = deque([(slot.actor.open.remote(), None)]), False
        return slot

    def _assign(
        self, slots: Sequence[_Slot], queue: _Queue, tasks: Sequence[Task], batch: int, needs: Needs
    ) -> None:
        """Give each actor that has nothing to do its next tasks, with what it prepares for them."""
        alive = [slot for slot in slots if not slot.lost]
        for slot in alive:
            if slot.work or not slot.opened:
                continue
            others = {other.node.id for other in alive if other.opened} - {slot.node.id}
            share = max(1, min(batch, -(-len(queue.waiting) // len(alive))))
            indices = queue.take(slot.node.id, others, share)
            if indices:
                group = [tasks[index] for index in indices]
                slot.work.append((slot.actor.prepare.remote(group, _cores(slot.node, needs)), None))
                slot.group.extend(indices)

    def _take(
        self, slot: _Slot, queue: _Queue, tasks: Sequence[Task], slots: Sequence[_Slot]
    ) -> Done[Task, Result] | None:
        """Return what came of what an actor was doing; None where that was no task, or is done once more."""
        errors = self._ray.exceptions
        reference, index = slot.work[0]
        try:
            result = self._ray.get(reference)
        except errors.RayActorError:
            return self._died(slot, queue, tasks)
        except errors.RayTaskError as error:
            if not isinstance(error.cause, ProbeError):
                raise RunFailedError(f"{slot.node.host}: {_last_line(error)}") from error
            if slot.opened:
                raise error.cause from None
            self._drop(slot, error.cause.message)
            if all(other.lost for other in slots):
                raise error.cause from None
            return None
        except errors.RayError as error:  # the package could not be lent, or the node has no room for it
            queue.waiting.extendleft(reversed(slot.group))
            queue.waiting.extendleft([] if index is None else [index])
            slot.group.clear()
            self._drop(slot, _last_line(error))
            if all(other.lost for other in slots):
                raise RunFailedError(f"{slot.node.host}: {slot.lost}") from error
            return None
        slot.work.popleft()
        slot.opened = True
        if slot.group:
            following = slot.group.popleft()
            slot.work.append((slot.actor.run.remote(tasks[following]), following))
        if index is None:
            return None
        slot.deaths = 0
        return Done(tasks[index], result)

    def _died(self, slot: _Slot, queue: _Queue, tasks: Sequence[Task]) -> Done[Task, Result] | None:
        """Give back what a dead actor had to do; return the task that it was doing if it was its second."""
        _, running = slot.work.popleft()
        slot.dead = True
        queue.waiting.extendleft(reversed(slot.group))
        slot.group.clear()
        if running is None:
            slot.deaths += 1
            return None
        hosts = queue.note_death(running, slot.node)
        if len(hosts) < _MOST_TRIES:
            queue.waiting.appendleft(running)
            return None
        return Done(tasks[running], None, RowFailure("workers-died", hosts=tuple(hosts)))

    def _replace(
        self,
        slots: list[_Slot],
        slot: _Slot,
        room: Iterator[_Slot],
        make: Callable[[Tell], Worker[Task, Result]],
        needs: Needs,
    ) -> None:
        """Start an actor in the place of one that died: where there is still room, else on the same node."""
        slot.dead = False
        if slot.node.id not in {node.id for node in self._nodes()}:
            self._drop(slot, "the node has left the cluster")
        elif slot.deaths >= _MOST_DEATHS:
            self._drop(slot, f"{slot.deaths} processes died there before they had begun")
        elif (other := next(room, None)) is not None:
            slots[slots.index(slot)] = other
        else:
            self._started(slot, make, needs)

    def _drop(self, slot: _Slot, why: str) -> None:
        """Give nothing more to an actor."""
        slot.lost = why
        slot.work.clear()
        self._kill(slot)
        text = f"node {slot.node.host} is not used any more: {why}"
        if text not in self._warned:  # an actor for each of its cores may say it
            self._warned.add(text)
            self._warn(text)

    def _end(self, slots: Sequence[_Slot]) -> None:
        """End the actors; those that have nothing to do clean up first."""
        alive = [slot for slot in slots if not slot.lost]
        closing = [slot.actor.close.remote() for slot in alive if slot.opened and not slot.work]
        with suppress(self._ray.exceptions.RayError):
            if closing:
                self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_S)
        for slot in alive:
            self._kill(slot)

    def _kill(self, slot: _Slot) -> None:
        """End an actor. What it had started ends when it hears nothing any more: see `harness/server.py`."""
        with suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(slot.actor)


class _Queue:
    """The tasks that wait, by their numbers, and where actors died of them."""

    def __init__(self, count: int) -> None:
        self.waiting = deque(range(count))
        self._deaths: dict[int, list[_Node]] = {}

    def note_death(self, index: int, node: _Node) -> list[str]:
        """Note that an actor died; return the hosts of all that died of this task."""
        nodes = self._deaths.setdefault(index, [])
        nodes.append(node)
        return [one.host for one in nodes]

    def take(self, node: str, others: set[str], count: int) -> list[int]:
        """Take tasks for a node: none that an actor died of there, if another node could try it."""
        taken: list[int] = []
        for index in [*self.waiting]:
            tried = {one.id for one in self._deaths.get(index, ())}
            if len(taken) < count and (node not in tried or not others - tried):
                taken.append(index)
                self.waiting.remove(index)
        return taken


def _cores(node: _Node, needs: Needs) -> int:
    """Return how many processors of a node an actor holds."""
    if needs.device == "cuda":
        return node.cpus // node.gpus if needs.alone else min(node.cpus // node.gpus, 1)
    return node.cpus if needs.alone else 1


def _doing(slots: Sequence[_Slot], tasks: Sequence[Task], name: Callable[[Task], str]) -> str:
    """Return what each actor does: `first on a, second on b; waiting for c`."""
    running = []
    for slot in slots:
        index = next((index for _, index in slot.work if index is not None), None)
        if index is not None:
            running.append(f"{name(tasks[index])} on {slot.node.host}")
    waiting = dict.fromkeys(slot.node.host for slot in slots if slot.work and not slot.opened)
    clauses = [", ".join(running), f"waiting for {', '.join(waiting)}" if waiting else ""]
    return "; ".join(filter(None, clauses))


def _last_line(error: BaseException) -> str:
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), repr(error))


def _silence(ray: Any) -> Callable[..., object] | None:
    """Keep Ray's messages out of what a verb prints; return what prints them, None where it is not there.

    A thread of the driver prints on standard output that a worker has died, `log_to_driver` or not
    (ray/_private/worker.py, listen_error_messages): among a table, or JSON. The executor says it itself.
    """
    worker = getattr(getattr(ray, "_private", None), "worker", None)
    before: Callable[..., object] | None = getattr(worker, "print_to_stdstream", None)
    if before is not None:
        worker.print_to_stdstream = lambda *args, **kwargs: None  # type: ignore[union-attr] # it has one
    return before


def _ray() -> ModuleType:
    try:
        import ray  # noqa: PLC0415 - an extra: only where it is asked for
        import ray.exceptions  # noqa: PLC0415
    except ImportError as error:
        raise ProbeError(
            f"--executor ray needs ray, which cannot be imported: {error}",
            "pip install 'inductor-probe[ray]', here and on each node",
        ) from error
    module: ModuleType = ray
    return module


def _connect(ray: Any) -> None:
    """Connect to a cluster that is there: none is started, which would be this machine alone."""
    try:
        ray.init(
            address="auto",
            log_to_driver=False,
            logging_level="ERROR",
            runtime_env={"py_modules": [str(Path(inductor_probe.__file__).parent)]},
        )
    except ConnectionError as error:
        raise ProbeError(
            f"there is no Ray cluster: {_last_line(error)}",
            "set RAY_ADDRESS=HOST:6379, or start one: ray start --head",
        ) from error
    except (RuntimeError, ValueError, OSError) as error:  # another version of ray or Python, a bad address
        raise ProbeError(
            f"cannot connect to the Ray cluster: {_last_line(error)}",
            "RAY_ADDRESS is HOST:PORT; the cluster needs the same ray and Python as this machine",
        ) from error
