"""The problem to solve, read from a `Source` as far as a search needs it.

A `World` turns listings and metadata into options, edges and demands, each once, and is safe to
use from the crawl's threads. Both searches read it; neither changes it. Nothing here decides
anything: which option is taken is the searches' business.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.cuda import CudaVersion, parse_cuda_version
from cudalock.errors import WheelError
from cudalock.host import Target, marker_environment, supported_tags
from cudalock.memo import Memo
from cudalock.resolver.candidates import (
    Candidate,
    Ghost,
    ProjectOptions,
    build_options,
    last_resort,
    make_candidate,
    rejection_fact,
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
from cudalock.resolver.request import Edge, Request, exact_pin, make_edge
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
from cudalock.wheel.listing import ListedFile
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
        self._overrides = {entry.project: entry for entry in request.overrides}
        self._admitted = _admitted(request)
        self._hashes: dict[str, frozenset[str]] = {}
        for entry in request.requirements:
            if entry.sha256:
                known = self._hashes.get(entry.project, frozenset())
                self._hashes[entry.project] = known | entry.sha256
        self._constraints: dict[str, list[tuple[Fact, SpecifierSet]]] = {}
        for entry in request.constraints:
            if marker_holds(entry.requirement, self.environment):
                fact = make_edge(
                    entry.requirement, kind=FactKind.CONSTRAINT, subject="", source=entry.where
                ).fact
                clauses = self._constraints.setdefault(entry.project, [])
                clauses.append((fact, entry.requirement.specifier))
        self._early: set[str] = set()
        self._nightly: set[str] = set()
        self._options = Memo[tuple[str, bool], ProjectOptions]()
        self._details = Memo[str, Details]()
        self._toolkit = ToolkitReleases(
            source=source, knowledge=knowledge, target=target, executor=executor
        )
        self.roots = self._root_edges()

    def _root_edges(self) -> tuple[Edge, ...]:
        return tuple(
            self._edge(entry.requirement, "", entry.where, root=True)
            for entry in self.request.requirements
            if marker_holds(entry.requirement, self.environment)
        )

    def _edge(
        self,
        requirement: Requirement,
        subject: str,
        source: str,
        *,
        root: bool,
        nightly: bool = False,
    ) -> Edge:
        """Make an edge, with the override of its project in place of what was written."""
        project = canonicalize_name(requirement.name)
        override = self._overrides.get(project)
        if override is not None:
            requirement, source, kind = override.requirement, override.where, FactKind.OVERRIDE
        else:
            kind = FactKind.REQUIREMENT if root else FactKind.DEPENDENCY
        edge = make_edge(
            requirement, kind=kind, subject=subject, source=source, opens_nightly=nightly
        )
        # A set only grows, and a thread that sees it a moment late asks again.
        if edge.pins_prerelease:
            self._early.add(project)
        if edge.nightly:
            self._nightly.add(project)
        return edge

    def opens_early(self, project: str) -> bool:
        """Whether anything met so far lets pre-releases of a project in."""
        return project in self._early or self.allows_prereleases(project)

    def opens_nightly(self, project: str) -> bool:
        """Whether anything met so far opens the nightly folders of a project's publisher."""
        return project in self._nightly or self.allows_prereleases(project)

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
            )

        return self._options.get((project, nightly), build)

    def direct(self, project: str, url: str) -> Candidate:
        """Return the candidate behind a URL requirement."""
        hashes = sorted(self._hashes.get(project, ()))
        file = self._source.direct(project, url, hashes[0] if len(hashes) == 1 else None)
        if not any(tag in self._tag_ranks for tag in file.wheel.tags):
            raise WheelError(
                f"expected a wheel for {self.target.platform} and Python {self.target.python}, "
                f"found {file.filename}",
                where=url,
            )
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
        """Return the details of a candidate if its metadata was read already."""
        return self._details.peek(candidate.url)

    def details(self, candidate: Candidate) -> Details:
        """Return the details of a candidate, reading its metadata the first time."""
        if candidate.violations:
            # The page alone rules it out: its metadata would change nothing.
            return Details(
                metadata=None, variant=candidate.variant, violations=candidate.violations
            )
        return self._details.get(candidate.url, lambda: self._read_details(candidate))

    def _read_details(self, candidate: Candidate) -> Details:
        project, version = candidate.project, candidate.version
        metadata = self._source.metadata(candidate.file)
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
        demands = knowledge_demands(project, version, self.knowledge)
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

    def _ruled_out(self, candidate: Candidate, metadata: CoreMetadata | None, kind: str) -> Details:
        return Details(
            metadata=metadata,
            variant=candidate.variant,
            demands=tuple(knowledge_demands(candidate.project, candidate.version, self.knowledge)),
            rejection=rejection_fact(candidate.project, kind),
        )

    def _unpaired(self, candidate: Candidate, metadata: CoreMetadata) -> bool:
        """Whether knowledge says that the project needs a pairing and this release has none."""
        mark = self.knowledge.mark("needs-pairing", candidate.project)
        if mark is None or self.knowledge.pairing(candidate.project, candidate.version):
            return False
        for requirement in metadata.requires_dist:
            if canonicalize_name(requirement.name) == mark.value and exact_pin(
                requirement.specifier
            ):
                return False
        return not self.user_pins(candidate.project, candidate.version)

    def user_pins(self, project: str, version: Version) -> bool:
        """Whether the user asks for exactly this version."""
        return any(
            edge.node == project
            and (edge.url is not None or exact_pin(edge.specifier) is not None)
            and edge.admits(version)
            for edge in self.roots
        )

    def edges(self, candidate: Candidate, extra: str | None = None) -> tuple[Edge, ...]:
        """Return the edges of a usable candidate: its own, or those one extra adds."""
        details = self.details(candidate)
        nightly = candidate.file.nightly
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
                found.append(
                    self._edge(
                        requirement,
                        candidate.project,
                        source,
                        root=False,
                        nightly=nightly,
                    )
                )
        if extra is None:
            found.extend(
                Edge(node=d.package, fact=d.fact, values=d.values) for d in details.demands
            )
        return tuple(found)

    def ghost_demands(self, ghost: Ghost, version: Version | None) -> list[Demand]:
        """Return what any wheel of this version would demand, by knowledge alone."""
        version = version or ghost.version
        if version is None:
            return []
        return knowledge_demands(ghost.project, version, self.knowledge)

    def release_for(self, project: str) -> CudaVersion | None:
        """Return the release that a project numbered by CUDA should follow, if it is one."""
        if self.knowledge.cuda_number(project) is None:
            return None
        return self.target.cuda

    @staticmethod
    def parse_release(text: str) -> CudaVersion:
        """Read a value of ``<cuda-toolkit>`` back."""
        return parse_cuda_version(text)

    def files_of(self, project: str) -> tuple[ListedFile, ...]:
        """Return every listed file of a project that was asked for so far."""
        for nightly in (True, False):
            options = self._options.peek((project, nightly))
            if options is not None:
                return options.listing.files
        return ()


def _admitted(request: Request) -> dict[str, SpecifierSet]:
    """Return what the user's own requirements admit, by project."""
    admitted: dict[str, SpecifierSet] = {}
    for entry in (*request.requirements, *request.constraints):
        known = admitted.get(entry.project, SpecifierSet())
        admitted[entry.project] = known & entry.requirement.specifier
    return admitted
