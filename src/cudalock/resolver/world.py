"""The problem to solve, read from a `Source` as far as a search needs it.

A `World` turns listings and metadata into options, edges and demands, each once, and is safe to
use from the crawl's threads. Both searches read it; neither changes it. Nothing here decides
anything: which option is taken is the searches' business.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.errors import UsageError, WheelError
from cudalock.host import Target, marker_environment, supported_tags
from cudalock.memo import Memo
from cudalock.resolver.admitted import admitted_by_request
from cudalock.resolver.candidates import (
    Candidate,
    ProjectOptions,
    build_options,
    last_resort,
    make_candidate,
    rejection_fact,
    rejection_kind,
)
from cudalock.resolver.demands import (
    Demand,
    Violation,
    knowledge_demands,
    make_pins,
    toolkit_demand,
    variant_violations,
)
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.openings import Openings
from cudalock.resolver.request import Edge, Request, Requested, exact_pin, make_edge
from cudalock.resolver.source import Source
from cudalock.resolver.toolkit import ToolkitReleases
from cudalock.wheel.evidence import (
    Variant,
    conclude,
    marker_holds,
    observe_file,
    observe_metadata,
    observe_part,
)
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.metadata import CoreMetadata

__all__ = ["Details", "World"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What is known of a candidate once its metadata is read.

    ``metadata`` is None when none can be had, and then ``rejection`` says so. ``violations`` are
    what the target contradicts, from the page and the metadata together.
    """

    metadata: CoreMetadata | None
    variant: Variant
    violations: tuple[Violation, ...] = ()
    demands: tuple[Demand, ...] = ()
    rejection: Fact | None = None
    last_resort: str | None = None

    @property
    def usable(self) -> bool:
        """Whether nothing about the wheel alone rules it out on this target."""
        return self.rejection is None and not self.violations


class World:
    """Everything the searches may ask. ``cuda_projects`` are those that definitions name."""

    def __init__(
        self,
        *,
        request: Request,
        target: Target,
        source: Source,
        knowledge: Knowledge,
        cuda_projects: frozenset[str] = frozenset(),
        executor: Executor | None = None,
    ) -> None:
        """Take the problem; nothing is asked of the source yet."""
        self.request = request
        self.target = target
        self.knowledge = knowledge
        self.cuda_projects = cuda_projects
        self.executor = executor
        self.environment = marker_environment(target)
        self.pins = make_pins(target)
        self._source = source
        self._tag_ranks = {tag: rank for rank, tag in enumerate(supported_tags(target))}
        self._python = Version(self.environment["python_full_version"])
        # An override takes the place of every requirement on its project, here where its marker
        # holds; one whose marker does not hold takes the place of them with nothing.
        self._overrides: dict[str, list[Requested]] = {}
        for entry in request.overrides:
            kept = self._overrides.setdefault(entry.project, [])
            if self._applies(entry):
                kept.append(entry)
        self._hashes: dict[str, frozenset[str]] = {}
        for entry in request.requirements:
            known = self._hashes.get(entry.project, frozenset())
            self._hashes[entry.project] = known | entry.sha256
        self._constraints: dict[str, list[tuple[Fact, SpecifierSet]]] = {}
        for entry in request.constraints:
            if self._applies(entry):
                fact = make_edge(
                    entry.requirement, kind=FactKind.CONSTRAINT, subject="", source=entry.where
                ).fact
                clauses = self._constraints.setdefault(entry.project, [])
                clauses.append((fact, entry.requirement.specifier))
        self._met: set[str] = set()
        self.openings = Openings()
        self._demands: dict[tuple[str, Version], tuple[Demand, ...]] = {}
        self._options = Memo[tuple[str, bool], ProjectOptions]()
        self._direct = Memo[tuple[str, str], Candidate]()
        self._details = Memo[str, Details]()
        self._toolkit = ToolkitReleases(
            source=source, knowledge=knowledge, target=target, executor=executor
        )
        self.roots = tuple(
            edge
            for entry in request.requirements
            if self._applies(entry)
            for edge in self._edges(
                entry.requirement, "", entry.where, kind=FactKind.REQUIREMENT, nightly=False
            )
        )
        self._admitted = admitted_by_request(request, self.environment)
        for edge in self.roots:
            self.openings.note(edge, None)

    def _applies(self, entry: Requested) -> bool:
        """Whether what the user wrote counts here; raises `UsageError` if its marker says nothing."""
        try:
            return marker_holds(entry.requirement, self.environment)
        except WheelError as error:
            raise UsageError(error.message, where=entry.where) from error

    def _edges(
        self,
        requirement: Requirement,
        subject: str,
        source: str,
        *,
        kind: FactKind,
        nightly: bool,
    ) -> list[Edge]:
        """Make the edge of a requirement, or those of what overrides its project."""
        overrides = self._overrides.get(canonicalize_name(requirement.name))
        written = [(requirement, source, kind)]
        if overrides is not None:
            written = [(o.requirement, o.where, FactKind.OVERRIDE) for o in overrides]
        return [
            make_edge(each, kind=word, subject=subject, source=where, opens_nightly=nightly)
            for each, where, word in written
        ]

    def opens_early(self, project: str) -> bool:
        """Whether anything met so far lets pre-releases of a project in."""
        return self.openings.early(project) or self.allows_prereleases(project)

    def opens_nightly(self, project: str) -> bool:
        """Whether anything met so far opens the nightly folders of a project's publisher."""
        return self.openings.nightly(project) or self.allows_prereleases(project)

    def allows_prereleases(self, project: str) -> bool:
        """Whether a flag or the project's configuration lets pre-releases of a project in."""
        return project in self.request.prereleases

    def options(self, project: str, *, nightly: bool = False) -> ProjectOptions:
        """Return a project's options, asking the source for its listing the first time."""
        nightly = nightly or project in self.request.prereleases

        def build() -> ProjectOptions:
            admitted = self._admitted.get(project, SpecifierSet())
            listing = self._source.listing(project, admitted=admitted, nightly=nightly)
            return build_options(
                listing,
                target=self.target,
                tag_ranks=self._tag_ranks,
                python=self._python,
                pins=self.pins,
                knowledge=self.knowledge,
                cuda_project=self.is_cuda_project(project),
                sha256=self._hashes.get(project, frozenset()),
                pinned=lambda version: self.user_pins(project, version),
            )

        return self._options.get((project, nightly), build)

    def direct(self, project: str, url: str) -> Candidate:
        """Return the candidate behind a URL; raises `WheelError` if it does not fit the target."""
        return self._direct.get((project, url), lambda: self._read_direct(project, url))

    def _read_direct(self, project: str, url: str) -> Candidate:
        hashes = sorted(self._hashes.get(project, ()))
        file = self._source.direct(project, url, hashes[0] if len(hashes) == 1 else None)
        if not any(tag in self._tag_ranks for tag in file.wheel.tags):
            raise WheelError(
                f"expected a wheel for {self.target.platform} and Python {self.target.python}, "
                f"found {file.filename}",
                where=url,
            )
        kind = rejection_kind(file, self.target, self._python, self.knowledge)
        if kind is not None and kind != "yanked":
            reason = rejection_fact(project, kind).detail
            raise WheelError(f"{file.filename} does not fit the target: it is {reason}", where=url)
        return make_candidate(file, pins=self.pins, knowledge=self.knowledge, address=url)

    def is_cuda_project(self, project: str) -> bool:
        """Whether a definition or knowledge names the project as one built for CUDA."""
        knowledge = self.knowledge
        return (
            project in self.cuda_projects
            or knowledge.mark("cuda-project", project) is not None
            or project in knowledge.partners
        )

    def constraint_violations(self, project: str, version: Version) -> list[Fact]:
        """Return the constraints that rule a version out."""
        clauses = self._constraints.get(project, ())
        return [fact for fact, spec in clauses if not spec.contains(version, prereleases=True)]

    def known(self, candidate: Candidate) -> Details | None:
        """Return the details of a candidate if a search asked for them before.

        What was only fetched ahead is not known: else an answer would depend on how far the
        threads had come.
        """
        return self._details.peek(candidate.url) if candidate.url in self._met else None

    def details(self, candidate: Candidate) -> Details:
        """Return the details of a candidate for a search, reading its metadata the first time."""
        details = self.fetch(candidate)
        if candidate.url not in self._met and not candidate.violations:
            self._met.add(candidate.url)
            for edge in self._every_edge(candidate, details):
                self.openings.note(edge, candidate)
        return details

    def fetch(self, candidate: Candidate) -> Details:
        """Return the details of a candidate without counting it as known; safe in threads."""
        if candidate.violations:
            # The page alone rules it out: its metadata would change nothing.
            return Details(
                metadata=None, variant=candidate.variant, violations=candidate.violations
            )
        return self._details.get(candidate.url, lambda: self._read_details(candidate))

    def _every_edge(self, candidate: Candidate, details: Details) -> Iterator[Edge]:
        """Yield the edges of a candidate whatever its markers say."""
        if details.metadata is not None:
            for requirement in details.metadata.requires_dist:
                nightly, kind = candidate.file.nightly, FactKind.DEPENDENCY
                yield from self._edges(
                    requirement, candidate.project, "", kind=kind, nightly=nightly
                )

    def _read_details(self, candidate: Candidate) -> Details:
        project, version = candidate.project, candidate.version
        try:
            metadata = self._source.metadata(candidate.file)
            for requirement in metadata.requires_dist if metadata is not None else ():
                marker_holds(requirement, self.environment)
        except WheelError as error:
            # One broken release must not stand in the way of the others.
            return self._ruled_out(candidate, None, "unreadable", str(error))
        if metadata is None:
            return self._ruled_out(candidate, None, "unknown")
        python = metadata.requires_python
        if python is not None and not python.contains(self._python, prereleases=True):
            return self._ruled_out(candidate, metadata, "requires-python")
        if self._unpaired(candidate, metadata):
            return self._ruled_out(candidate, metadata, "unpaired")
        observations = observe_file(candidate.file, self.knowledge)
        observations += observe_metadata(metadata, self.knowledge, self.environment)
        native = not candidate.file.wheel.any_platform or self.is_cuda_project(project)
        variant = conclude(observations, native=native)
        violations = variant_violations(project, variant, self.pins)
        demands = list(self.knowledge_demands(project, version))
        part = self._toolkit.releases_of(project, version)
        if part is not None:
            # What the toolkit says of its parts is shown like any evidence, and binds them to the
            # set's release; what a part can serve follows from the wheels that load it.
            demand = toolkit_demand(project, *part, self.pins)
            if isinstance(demand, Violation):
                violations.append(demand)
            elif demand is not None:
                demands.append(demand)
            observations += (observe_part(project, *part, self.target.cuda),)
        return Details(
            metadata=metadata,
            variant=conclude(observations, native=native),
            violations=tuple(violations),
            demands=tuple(demands),
            last_resort=last_resort(variant, self.target),
        )

    def _ruled_out(
        self, candidate: Candidate, metadata: CoreMetadata | None, kind: str, source: str = ""
    ) -> Details:
        fact = rejection_fact(candidate.project, kind, source)
        demands = self.knowledge_demands(candidate.project, candidate.version)
        variant = candidate.variant
        return Details(metadata=metadata, variant=variant, demands=demands, rejection=fact)

    def _unpaired(self, candidate: Candidate, metadata: CoreMetadata) -> bool:
        """Whether knowledge says that the project needs a pairing and this release has none."""
        mark = self.knowledge.mark("needs-pairing", candidate.project)
        if mark is None or self.knowledge.pairing(candidate.project, candidate.version):
            return False
        for requirement in metadata.requires_dist:
            if (
                canonicalize_name(requirement.name) == mark.value
                and exact_pin(requirement.specifier) is not None
                and marker_holds(requirement, self.environment)
            ):
                return False
        return not self.user_pins(candidate.project, candidate.version)

    def user_pins(self, project: str, version: Version) -> bool:
        """Whether the user asks for exactly this version: by requirement, override or constraint."""
        pinned = [
            edge.specifier
            for edge in self.roots
            if edge.node == project
            and (edge.url is not None or exact_pin(edge.specifier) is not None)
        ]
        overrides = [entry.requirement.specifier for entry in self._overrides.get(project, ())]
        constraints = [specifier for _, specifier in self._constraints.get(project, ())]
        pinned += [s for s in (*overrides, *constraints) if exact_pin(s) is not None]
        return any(specifier.contains(version, prereleases=True) for specifier in pinned)

    def edges(self, candidate: Candidate, extra: str | None = None) -> tuple[Edge, ...]:
        """Return the edges of a usable candidate: its own, or those one extra adds."""
        details = self.fetch(candidate)
        found: list[Edge] = []
        source = details.metadata.source if details.metadata is not None else ""
        for requirement in details.metadata.requires_dist if details.metadata is not None else ():
            if requirement.marker is None:
                applies = extra is None
            else:
                base = marker_holds(requirement, self.environment)
                applies = (
                    base
                    if extra is None
                    else not base and marker_holds(requirement, self.environment, extra)
                )
            if applies:
                found.extend(
                    self._edges(
                        requirement,
                        candidate.project,
                        source,
                        kind=FactKind.DEPENDENCY,
                        nightly=candidate.file.nightly,
                    )
                )
        if extra is None:
            found.extend(
                Edge(node=d.package, fact=d.fact, values=d.values) for d in details.demands
            )
        return tuple(found)

    def knowledge_demands(self, project: str, version: Version) -> tuple[Demand, ...]:
        """Return what any wheel of this version demands, by knowledge alone."""
        found = self._demands.get((project, version))
        if found is None:
            found = tuple(knowledge_demands(project, version, self.knowledge))
            self._demands[project, version] = found
        return found

    def release_for(self, project: str) -> CudaVersion | None:
        """Return the release that a project numbered by CUDA should follow, if it is one."""
        if self.knowledge.cuda_number(project) is None:
            return None
        return self.target.cuda
