"""One snapshot of the indices, for as many resolves as a question takes: what is read once is kept.

A `Session` hands the knowledge and the indices' answers to the resolver, and its result to the
lock. What it read for a resolve it does not read again, not for a remedy either. It prints nothing
and reads no environment: the default index, the cache folder, the executor, the clock and the
transport are arguments.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cudalock.cuda import CudaVersion, known_majors, newest_minor
from cudalock.errors import IndexAccessError, ResolutionStoppedError, UsageError, WheelError
from cudalock.explain.remedies import Remedy, find_remedies
from cudalock.host import Target, marker_environment, releases_to_try, supported_tags
from cudalock.index.client import Client, open_client
from cudalock.index.definitions import Definition, load_definitions
from cudalock.index.fact_files import open_book
from cudalock.index.find_links import local_path
from cudalock.index.knowledge_files import load_knowledge
from cudalock.index.locate import find_indices
from cudalock.index.observing import observe_hash
from cudalock.index.options import IndexOptions
from cudalock.index.recorded import Recording, load_recording
from cudalock.index.routes import RoutingOptions, newest_known_minor
from cudalock.index.routing import Router
from cudalock.index.source import IndexSource
from cudalock.index.survey import Survey, listed_projects, listed_releases, survey_index
from cudalock.index.wheel_reading import WheelReading
from cudalock.lock.asked import describe_request
from cudalock.lock.build import build_lock
from cudalock.lock.model import Lock
from cudalock.resolver.admitted import admitted_by_request
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.file_notes import hash_warnings
from cudalock.resolver.notes import unpublished_warnings
from cudalock.resolver.request import Request
from cudalock.resolver.resolution import Resolution, ResolvedPackage, SetWarning
from cudalock.resolver.source import Source
from cudalock.resolver.world import World
from cudalock.solving import Progress, resolve_and_read
from cudalock.wheel.file_hash import HashedBytes, claimed_hash
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.tag_filter import TagFilter
from cudalock.wheel.wheel_facts import FactBook

__all__ = ["IndexOptions", "Session"]

_THREADS = 24


class Session:
    """One snapshot of the indices, for as many resolves as a question takes.

    Use as a context manager, or `close` it. ``executor`` runs the fetching (threads; 24 of our
    own by default); ``client`` replaces the HTTP client and stays the caller's to close.
    """

    def __init__(
        self,
        options: IndexOptions,
        *,
        executor: Executor | None = None,
        client: Client | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Take the options; nothing is asked of an index yet."""
        self.options = options
        self._directory = options.directory or find_indices()
        self._executor = executor or ThreadPoolExecutor(_THREADS, thread_name_prefix="cudalock")
        self._own_executor = executor is None
        self._given_client = client
        self._progress = progress
        self._source: IndexSource | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Who interrupts does not wait for an index that does not answer.
        self.close(wait=not (kind is not None and issubclass(kind, KeyboardInterrupt)))

    def close(self, *, wait: bool = True) -> None:
        """Stop what is still being fetched and close what this session opened.

        What is under way is waited for, unless ``wait`` is false; nothing new begins.
        """
        if self._own_executor:
            self._executor.shutdown(wait=wait, cancel_futures=True)
        if self._source is not None:
            self._source.close()
        if self._given_client is None and "client" in self.__dict__:
            self.client.close()

    @cached_property
    def knowledge(self) -> Knowledge:
        """The knowledge entries of the index directory."""
        return load_knowledge(self._directory / "knowledge")

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """The publishers' definitions of the index directory."""
        return load_definitions(self._directory)

    @cached_property
    def client(self) -> Client:
        """The HTTP client: it opens no connection before the first request."""
        if self._given_client is not None:
            return self._given_client
        return open_client(cache_dir=self.options.cache_dir, offline=self.options.offline)

    @property
    def requests(self) -> int:
        """How many requests went to an index so far."""
        return self.client.statistics.requests

    @cached_property
    def _recordings(self) -> dict[str, Recording]:
        if not self.options.recorded:
            return {}
        folder = self._directory / "recorded"
        found = {d.name: load_recording(folder, d.name) for d in self.definitions}
        return {name: recording for name, recording in found.items() if recording is not None}

    @cached_property
    def _book(self) -> FactBook:
        """What is known of wheels' bytes: facts that came with cudalock, were kept, or are read now."""
        return open_book(self._directory / "evidence", self.client)

    @cached_property
    def _reading(self) -> WheelReading:
        return WheelReading(
            client=self.client,
            book=self._book,
            knowledge=self.knowledge,
            executor=self._executor,
            readable=lambda file: file.index not in self._recordings,
            progress=self._progress,
        )

    def _newest_minor(self, target: Target) -> int | None:
        """Return the newest minor of the target's major that a table or a recording has shown.

        Under ``minor`` the folders of publishers are asked from there down.
        """
        if target.cuda is None:
            return None
        major = target.cuda.major
        known = newest_minor(major)
        folders = [name for r in self._recordings.values() for name in r.folder_names]
        shown = [known.minor if known is not None else None, newest_known_minor(major, folders)]
        return max((minor for minor in shown if minor is not None), default=None)

    def source(self, target: Target, request: Request | None = None) -> IndexSource:
        """Return the source for a target; every page is read once for all targets.

        What a ``request`` admits narrows down what is asked of publishers that keep a folder a
        release of another project.
        """
        options = self.options
        router = Router(
            definitions=self.definitions,
            options=RoutingOptions(
                default_url=options.default_index,
                added=options.added,
                excluded=options.excluded,
                only_default=options.only_default,
                sources=options.sources,
            ),
            cuda=target.cuda,
            compat="minor" if target.any_minor else "strict",
            newest_minor=self._newest_minor(target),
            tegra=target.tegra,
        )
        admitted = {}
        as_of = None if request is None else request.as_of
        if request is not None:
            admitted = admitted_by_request(request, marker_environment(target))
        fit = TagFilter(supported_tags(target))
        if self._source is not None:
            return self._source.rerouted(router, fit, admitted, as_of)
        self._source = IndexSource(
            router=router,
            client=self.client,
            knowledge=self.knowledge,
            recordings=self._recordings,
            find_links=options.find_links,
            fit=fit,
            admitted=admitted,
            as_of=as_of,
        )
        return self._source

    def survey(self, definition: Definition, projects: Iterable[str] = ()) -> Survey:
        """Return what a publisher serves, of all its projects or of some, for any machine and CUDA."""
        every = definition.projects | definition.nightly_projects | definition.serves
        recording = self._recordings.get(definition.name)
        listed, unasked = frozenset[CudaVersion](), frozenset[CudaVersion]()
        if recording is None:
            listed, unasked = listed_releases(self.client, definition)
        majors = sorted({*known_majors(), *(cuda.major for cuda in listed)})
        found = survey_index(
            definition,
            sources=[self._source_of_major(major, listed) for major in majors],
            projects=tuple(projects) or every,
            executor=self._executor,
            progress=None if self._progress is None else partial(self._progress, "survey"),
            recorded=recording is not None,
        )
        if recording is not None:
            return replace(found, beside=recording.project_names)
        found = replace(found, unasked=unasked)
        files = [file for project in found.projects for file in project.files]
        # Only a variant folder has a list that is worth reading: an index of everything lists too much.
        files = [file for file in files if file.folder is not None]
        if definition.dialect == "flat" or not files:
            return found
        newest = max(files, key=lambda file: (file.folder or "", file.index_url))
        return replace(found, beside=listed_projects(self.client, newest.index_url))

    def _source_of_major(self, major: int, listed: Iterable[CudaVersion]) -> IndexSource:
        """Return a source that asks for every release of a CUDA major, for any machine."""
        known = newest_minor(major) or CudaVersion(major=major, minor=0)
        newest = max([known, *(cuda for cuda in listed if cuda.major == major)])
        target = Target(
            python="3.12", platform="manylinux_2_28_x86_64", cuda=newest, cuda_compat="minor"
        )
        return self.source(target).for_any_machine()

    def resolve(self, request: Request, target: Target) -> Resolution:
        """Return the set for a target.

        Raises `NoSolutionError`, `ResolutionStoppedError`, `IndexAccessError`, `WheelError`.
        With ``--cuda any`` the majors the driver runs are tried newest first.
        """
        if target.cuda_any:
            return self._resolve_any(request, target)
        source = self.source(target, request)
        resolution = self._solve(request, target, source)
        notes = [SetWarning(code="index", message=note) for note in source.origin_notes]
        known = {warning.message for warning in resolution.warnings}
        extra = [
            *unpublished_warnings(resolution, source.absent_folders()),
            *(note for note in notes if note.message not in known),
        ]
        return replace(resolution, warnings=(*resolution.warnings, *extra))

    def _solve(self, request: Request, target: Target, source: Source) -> Resolution:
        projects = frozenset[str]()
        if not self.options.only_default:
            projects = frozenset(p for d in self.definitions for p in d.projects)

        def make_world(contested: frozenset[str]) -> World:
            return World(
                request=request,
                target=target,
                source=source,
                knowledge=self.knowledge,
                cuda_projects=projects,
                executor=self._executor,
                nightly_days={d.name: d.nightly_days for d in self.definitions if d.nightly_days},
                facts=self._book,
                contested=contested,
            )

        return resolve_and_read(make_world, self._reading, target, progress=self._progress)

    def _resolve_any(self, request: Request, target: Target) -> Resolution:
        refused: list[tuple[CudaVersion, NoSolutionError]] = []
        for release in releases_to_try(target):
            one = replace(target, cuda=release, cuda_any=False)
            try:
                resolution = self.resolve(request, one)
            except NoSolutionError as error:
                refused.append((release, error))
                continue
            if not refused:
                return resolution
            names = ", ".join(f"CUDA {r}" for r, _ in refused)
            warning = SetWarning(
                code="cuda-any", message=f"CUDA {release} is taken: no set was found for {names}"
            )
            return replace(resolution, warnings=(*resolution.warnings, warning))
        if not refused:
            raise UsageError("expected a driver that runs a known CUDA release", flag="--cuda")
        raise refused[0][1]

    def attempt(self, request: Request, target: Target) -> Resolution:
        """Return a set without the notes about indices; raises as `resolve`."""
        return self._solve(request, target, self.source(target, request))

    def remedies(self, request: Request, target: Target, conflict: Conflict) -> tuple[Remedy, ...]:
        """Return changes that solve; each was solved. Costs a resolve each, at most 20."""

        def attempt(changed: Request, other: Target) -> Resolution | None:
            if self._progress is not None:
                words = ", ".join(str(e.requirement) for e in changed.requirements[:3])
                self._progress("remedy", words, 0)
            try:
                return self.attempt(changed, other)
            except (NoSolutionError, ResolutionStoppedError, IndexAccessError, WheelError):
                return None

        return find_remedies(
            conflict, request=request, target=target, knowledge=self.knowledge, solve=attempt
        )

    def lock(
        self,
        resolution: Resolution,
        request: Request,
        *,
        download_hashes: bool = False,
        folder: Path | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Lock:
        """Return the lock of a resolution, to stand in ``folder``; see `settle_hashes`.

        ``inputs`` says where the request was written, so that `check` can read it again.

        Raises `HashesNeededError` when a hash is open, unless ``download_hashes``.
        """
        settled = self.settle_hashes(resolution, request, download=download_hashes)
        requirements = [str(entry.requirement) for entry in request.requirements]
        asked = describe_request(request, self.options.sources, inputs or {})
        return build_lock(settled, requirements=requirements, folder=folder, asked=asked)

    def settle_hashes(
        self, resolution: Resolution, request: Request, *, download: bool = False
    ) -> Resolution:
        """Return the resolution with the hash of every file that can be settled.

        Wheels of this machine are hashed, which costs reading them once; those whose hash an index
        leaves open are too, where that was done before or with ``download``. Raises
        `HashMismatchError` for bytes of a hash that nobody claims.
        """
        source = self.source(resolution.target)
        packages = tuple(
            self._settled(package, source, _asked_hashes(request, package.project), download)
            for package in resolution.packages
        )
        kept = [w for w in resolution.warnings if w.code != "hash-conflict"]
        return replace(resolution, packages=packages, warnings=(*kept, *hash_warnings(packages)))

    def _settled(
        self,
        package: ResolvedPackage,
        source: IndexSource,
        asked: frozenset[str],
        download: bool,
    ) -> ResolvedPackage:
        file = package.file
        claimed = claimed_hash(file)
        if package.hash is not None:
            return package
        if claimed is not None and local_path(file.url) is None:
            return replace(package, hash=claimed)
        if download:
            found: HashedBytes | None = source.compute_hash(
                file, self._bytes_progress(file.filename)
            )
        else:
            found = source.recall_hash(file)
        if found is None:
            return package
        settled = observe_hash(file, found, asked=asked, others=package.rivals)
        return replace(package, hash=settled)

    def _bytes_progress(self, name: str) -> Callable[[int, int | None], None] | None:
        progress = self._progress
        if progress is None:
            return None
        return lambda done, _total: progress("hash", name, done)


def _asked_hashes(request: Request, project: str) -> frozenset[str]:
    """Return the hashes that the person gives with the requirements on a project."""
    entries = [entry for entry in request.requirements if entry.project == project]
    return frozenset(sha256 for entry in entries for sha256 in entry.sha256)
