"""What an executor is, and the one that runs tasks on this machine: one after the other, or in threads.

A thread has a worker of its own, whose processes do the work. Tasks that are timed (`Needs.alone`) run one at
a time: two timings on one machine share its memory bandwidth and last-level cache, whatever cores they have.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from inductor_probe.errors import ProbeError
from inductor_probe.model.perf import RowFailure

Task = TypeVar("Task")
Result = TypeVar("Result")
_In_contra = TypeVar("_In_contra", contravariant=True)
_Out_co = TypeVar("_Out_co", covariant=True)
Tell: TypeAlias = Callable[[str], None]
ExecutorName: TypeAlias = Literal["local", "ray"]
EXECUTORS: tuple[ExecutorName, ...] = ("local", "ray")
_MOST_BYTES = 32 << 20


class Worker(Protocol[_In_contra, _Out_co]):
    """Runs tasks, one after the other, in processes of its own."""

    def open(self) -> None:
        """Start what the first task needs.

        Raises:
            ProbeError: tasks cannot run here; says why.
        """

    def prepare(self, tasks: Sequence[_In_contra], cores: int) -> None:
        """Do what can be done ahead for several tasks at once, on so many cores: compile."""

    def run(self, task: _In_contra) -> _Out_co:
        """Run a task.

        Raises:
            ProbeError: nothing that is asked for can run: a name is not known.
        """

    def close(self) -> None:
        """End its processes, from whatever thread."""


class Needs(Struct, frozen=True):
    """What a task holds while it runs.

    Attributes:
        device: `cpu`, or `cuda` for a GPU of its own.
        alone: it is timed: for `cpu` it has all cores of a machine, for `cuda` a GPU with its share of cores.
    """

    device: Literal["cpu", "cuda"] = "cpu"
    alone: bool = False


class Done(Struct, Generic[Task, Result], frozen=True):
    """The result of a task; None if it was lost, and why, in `lost`."""

    task: Task
    result: Result | None
    lost: RowFailure | None = None


class Executor(Protocol):
    """Runs tasks with workers."""

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
        """Yield what came of each task, in any order.

        Args:
            make: makes a worker; it is given whom to tell what is done next.
            tasks: they know nothing of each other. needs: what each holds while it runs.
            batch: tasks that a worker prepares at once.
            name: what a task is called in what is told.
            tell: is called with what is done next.

        Raises:
            ProbeError: as `Worker` does; there is no machine that has what is needed.
        """

    def close(self) -> None:
        """Leave the machines that it uses."""


class LocalExecutor:
    """Runs tasks on this machine, as many at once as there are `jobs`; timed ones alone."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    def map(
        self,
        make: Callable[[Tell], Worker[Task, Result]],
        tasks: Sequence[Task],
        needs: Needs,
        *,
        batch: int = 1,
        name: Callable[[Task], str] = str,  # workers tell it themselves
        tell: Tell = lambda text: None,
    ) -> Generator[Done[Task, Result], None, None]:
        """See `Executor.map`."""
        jobs = 1 if needs.alone else max(1, min(self._jobs, len(tasks)))
        workers = [make(tell) for _ in range(jobs if tasks else 0)]
        try:
            yield from _in_threads(workers, tasks) if jobs > 1 else _in_turn(workers, tasks, batch)
        finally:
            for worker in workers:
                worker.close()

    def close(self) -> None:
        """Nothing stays."""


def _in_turn(
    workers: Sequence[Worker[Task, Result]], tasks: Sequence[Task], batch: int
) -> Iterator[Done[Task, Result]]:
    for worker in workers:
        worker.open()
        for start in range(0, len(tasks), batch):
            group = tasks[start : start + batch]
            worker.prepare(group, len(os.sched_getaffinity(0)))
            for task in group:
                yield Done(task, worker.run(task))


def _in_threads(
    workers: Sequence[Worker[Task, Result]], tasks: Sequence[Task]
) -> Iterator[Done[Task, Result]]:
    """Let each worker take the next task as soon as it has done one; they end with whoever asks."""
    work: SimpleQueue[Task] = SimpleQueue()
    results: SimpleQueue[Done[Task, Result] | BaseException] = SimpleQueue()
    ended = Event()
    for task in tasks:
        work.put(task)

    def serve(worker: Worker[Task, Result]) -> None:
        try:
            worker.open()
            while not ended.is_set():
                task = work.get_nowait()
                worker.prepare([task], 1)
                results.put(Done(task, worker.run(task)))
        except Empty:
            return
        except BaseException as error:  # it is raised again where results are waited for
            results.put(error)

    threads = [Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        for _ in tasks:
            done = results.get()
            if isinstance(done, BaseException):
                raise done
            yield done
    finally:
        ended.set()
        for worker in workers:
            worker.close()
        for thread in threads:
            thread.join()


class UserFile(Struct, frozen=True):
    """A Python file of the user's with those beside it, as another machine gets them.

    Attributes:
        path: where it is. beside: names and contents of all Python files in its folder, itself among them.
    """

    path: Path
    beside: tuple[tuple[str, bytes], ...]

    @classmethod
    def read(cls, path: Path) -> UserFile:
        """Read a file and those beside it.

        Raises:
            ProbeError: they are too large to be sent, or cannot be read.
        """
        path = path.absolute()
        try:
            beside = tuple(
                (file.name, file.read_bytes()) for file in sorted(path.parent.glob("*.py")) if file.is_file()
            )
        except OSError as error:
            raise ProbeError(f"cannot read {error.filename}: {error.strerror}") from error
        size = sum(len(content) for _, content in beside)
        if size > _MOST_BYTES:
            raise ProbeError(
                f"the Python files beside {path} have {size >> 20} MiB: all of them are sent to the nodes",
                "put the script into a folder of its own",
            )
        return cls(path, beside)

    def place(self, folder: Path) -> Path:
        """Return where the file is here: its own path where that has the same text, else one in `folder`."""
        try:
            if self.path.read_bytes() == dict(self.beside)[self.path.name]:
                return self.path
        except OSError:  # there is none: another machine, which shares no folder with this one
            pass
        for name, content in self.beside:
            (folder / name).write_bytes(content)
        return folder / self.path.name
