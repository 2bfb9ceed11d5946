"""Reads the bytes of wheels, many at a time, into the book of facts, and keeps what was read.

A wheel that cannot be read stays unknown, with the reason. Nothing is downloaded whole to be kept:
parts are asked for, and streams end where they told enough.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass

from cudalock.cuda import ComputeCapability, CudaVersion
from cudalock.errors import CudalockError, WheelError
from cudalock.index.client import Client
from cudalock.index.fact_files import KeptFacts
from cudalock.index.find_links import local_path
from cudalock.wheel.byte_evidence import speaks_of_cuda
from cudalock.wheel.contents import inspect_wheel
from cudalock.wheel.contents_form import shortened
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile
from cudalock.wheel.range_source import FileSource, RangeSource
from cudalock.wheel.wheel_facts import DEPTHS, FactBook, Tier, WheelFacts, fact_key

__all__ = ["ReadingTask", "WheelReading"]

_TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingTask:
    """A wheel to read, and how deep; one below ``whole_below`` bytes that speaks of CUDA is read whole."""

    file: ListedFile
    tier: Tier
    whole_below: int = 0


@dataclass(slots=True)
class _Running:
    """A reading under way, for the progress line."""

    task: ReadingTask
    source: RangeSource | None = None


class WheelReading:
    """Reads for one question. ``readable`` says whether a file's index may be asked for its bytes."""

    def __init__(
        self,
        *,
        client: Client,
        book: FactBook,
        knowledge: Knowledge,
        executor: Executor,
        readable: Callable[[ListedFile], bool],
        progress: Callable[[str, str, int], None] | None = None,
    ) -> None:
        """Take what is needed; nothing is read yet."""
        self._client = client
        self._book = book
        self._kept = KeptFacts(client)
        self._knowledge = knowledge
        self._executor = executor
        self._readable = readable
        self._progress = progress
        self._done: set[tuple[str, Tier, tuple[ComputeCapability, ...]]] = set()
        self.wheels_read = 0
        self.bytes_read = 0

    def read(
        self,
        tasks: Sequence[ReadingTask],
        *,
        targets: tuple[ComputeCapability, ...],
        driver_cuda: CudaVersion | None,
    ) -> bool:
        """Read wheels, each at most once to a depth; return whether anything was learnt."""
        running: dict[Future[WheelFacts | CudalockError], _Running] = {}
        for task in tasks:
            mark = (fact_key(task.file), task.tier, targets)
            if mark in self._done:
                continue
            self._done.add(mark)
            if not self._may_read(task.file):
                continue
            state = _Running(task)
            running[self._executor.submit(self._read_one, state, targets, driver_cuda)] = state
        learnt, total = False, len(running)
        while running:
            done, _ = wait(running, timeout=_TICK_SECONDS, return_when="FIRST_COMPLETED")
            for future in done:
                learnt |= self._take(running.pop(future), future.result())
            self._tell(running, total)
        return learnt

    def _may_read(self, file: ListedFile) -> bool:
        if local_path(file.url) is not None:
            return True
        if not self._readable(file):
            self._book.add_failure(file, "its index answers from a recording")
            return False
        kept = self._kept.find(file)
        if isinstance(kept, str):
            self._book.add_failure(file, kept)
            return False
        if self._client.offline:
            deep = " so deep" if isinstance(kept, WheelFacts) else ""
            self._book.add_failure(file, f"offline, and never read{deep} before")
            return False
        return True

    def _read_one(
        self,
        state: _Running,
        targets: tuple[ComputeCapability, ...],
        driver_cuda: CudaVersion | None,
    ) -> WheelFacts | CudalockError:
        task = state.task
        path = local_path(task.file.url)
        try:
            if path is None:
                state.source = self._client.open_file(task.file.url, size=task.file.size)
                return self._inspect(state.source, task, targets, driver_cuda)
            with path.open("rb") as opened:
                state.source = FileSource(opened, where=str(path))
                return self._inspect(state.source, task, targets, driver_cuda)
        except CudalockError as error:
            return error
        except OSError as error:
            return WheelError(f"cannot read it: {error.strerror}", where=str(path))

    def _inspect(
        self,
        source: RangeSource,
        task: ReadingTask,
        targets: tuple[ComputeCapability, ...],
        driver_cuda: CudaVersion | None,
    ) -> WheelFacts:
        contents = inspect_wheel(
            source, depth=DEPTHS[task.tier], targets=targets, driver_cuda=driver_cuda
        )
        small = source.size < task.whole_below and task.tier != "T4"
        if small and speaks_of_cuda(contents, self._knowledge):
            contents = inspect_wheel(source, depth="full")
        return WheelFacts(filename=task.file.filename, contents=shortened(contents))

    def _take(self, state: _Running, found: WheelFacts | CudalockError) -> bool:
        file = state.task.file
        self.bytes_read += _bytes_of(state)
        if isinstance(found, WheelFacts):
            self.wheels_read += 1
            self._book.add(file, found)
            self._kept.keep(file, found)
            return True
        self._book.add_failure(file, str(found))
        if isinstance(found, WheelError) and local_path(file.url) is None:
            self._kept.keep_failure(file, str(found))
        return False

    def _tell(
        self, running: dict[Future[WheelFacts | CudalockError], _Running], total: int
    ) -> None:
        if self._progress is None or not running:
            return
        name = min(state.task.file.filename for state in running.values())
        done = self.bytes_read + sum(_bytes_of(state) for state in running.values())
        self._progress("read", f"{name}, {total - len(running)} of {total} done,", done)


def _bytes_of(state: _Running) -> int:
    return int(getattr(state.source, "bytes_read", 0))
