"""The problem to solve, read from a `Source` as far as a search needs it.

A `World` turns listings and metadata into options, edges and demands, each once, and is safe to
use from the crawl's threads. Both searches read it; neither changes it. Nothing here decides
anything: which option is taken is the searches' business.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import replace

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
    make_candidate,
    rejection_fact,
    rejection_kind,
)
from cudalock.resolver.demands import Demand, make_pins
from cudalock.resolver.details import Details, DetailsReader
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.openings import Openings
from cudalock.resolver.request import Edge, Request, Requested, exact_pin, make_edge
from cudalock.resolver.source import Source
from cudalock.resolver.toolkit import ToolkitReleases
from cudalock.resolver.variants import VariantAnswers, read_variants, settle_variant
from cudalock.wheel.evidence import marker_holds
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.listing import ListedFile, ProjectListing
from cudalock.wheel.wheel_facts import FactBook

__all__ = ["World"]


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
        nightly_days: Mapping[str, int] | None = None,
        facts: FactBook | None = None,
        contested: frozenset[str] = frozenset(),
    ) -> None:
        """Take the problem; nothing is asked of the source yet.

        ``nightly_days`` says by index after how many days it drops its nightlies. ``facts`` is what was
        read of wheels so far, ``contested`` the paths that two wheels of a set were seen to own.
        """
        self.nightly_days = dict(nightly_days or {})
        self.request = request
        self.target = target
        self.knowledge = knowledge
        self.cuda_projects = cuda_projects
        self.executor = executor
        self.environment = marker_environment(target)
        asked = frozenset(entry.project for entry in request.requirements)
        self.pins = make_pins(target, knowledge, request.verify_sm, asked)
        self.facts = facts or FactBook()
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
        self._options = Memo[tuple[str, bool], ProjectOptions]()
        self._direct = Memo[tuple[str, str], Candidate]()
        self._details = Memo[str, Details]()
        self._reader = DetailsReader(
            source=source,
            knowledge=knowledge,
            pins=self.pins,
            environment=self.environment,
            toolkit=ToolkitReleases(
                source=source, knowledge=knowledge, target=target, executor=executor
            ),
            is_cuda_project=self.is_cuda_project,
            user_pins=self.user_pins,
            pinned=self.pinned_by_user,
            facts=self.facts,
            contested=contested,
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
            answers = None
            if self.request.variants:
                answers = read_variants(
                    self._source,
                    (
                        file
                        for file in listing.files
                        if self.fits(file)
                        and admitted.contains(file.wheel.version, prereleases=True)
                    ),
                )
            return self._build_options(listing, answers)

        return self._options.get((project, nightly), build)

    def _build_options(
        self, listing: ProjectListing, answers: VariantAnswers | None
    ) -> ProjectOptions:
        project = listing.project
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
            as_of=self.request.as_of,
            variants=answers,
            facts=self.facts,
            preferred=self.request.preferences.get(project),
        )

    def fits(self, file: ListedFile) -> bool:
        """Whether the target accepts one of a file's tags."""
        return any(tag in self._tag_ranks for tag in file.wheel.tags)

    def variants_beside(self, candidate: Candidate) -> tuple[ProjectOptions, VariantAnswers] | None:
        """Return the wheel variants of a candidate's version as if they had been asked for.

        With what was read of them. None where there are none for the target's tags. Raises `IndexAccessError`.
        """
        listing = self.options(candidate.project, nightly=candidate.file.nightly).listing
        files = tuple(
            file
            for file in listing.files
            if file.wheel.variant_label is not None
            and file.wheel.version == candidate.version
            and self.fits(file)
        )
        if not files:
            return None
        answers = read_variants(self._source, files)
        return self._build_options(replace(listing, files=files, unfit=()), answers), answers

    def direct(self, project: str, url: str) -> Candidate:
        """Return the candidate behind a URL; raises `WheelError` if it does not fit the target."""
        return self._direct.get((project, url), lambda: self._read_direct(project, url))

    def _read_direct(self, project: str, url: str) -> Candidate:
        hashes = sorted(self._hashes.get(project, ()))
        file = self._source.direct(project, url, hashes[0] if len(hashes) == 1 else None)
        if not self.fits(file):
            raise WheelError(
                f"expected a wheel for {self.target.platform} and Python {self.target.python}, "
                f"found {file.filename}",
                where=url,
            )
        kind = rejection_kind(file, self.target, self._python, self.knowledge)
        answers = read_variants(self._source, [file]) if self.request.variants else None
        settled = settle_variant(file, answers, self.target)
        kind = settled.reason if kind in (None, "yanked") else kind
        if kind is not None:
            reason = rejection_fact(project, kind).detail
            raise WheelError(f"{file.filename} does not fit the target: it is {reason}", where=url)
        return make_candidate(
            settled,
            pins=self.pins,
            knowledge=self.knowledge,
            address=url,
            facts=self.facts,
        )

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
        return self._details.get(candidate.url, lambda: self._reader.read(candidate))

    def _every_edge(self, candidate: Candidate, details: Details) -> Iterator[Edge]:
        """Yield the edges of a candidate whatever its markers say."""
        if details.metadata is not None:
            for requirement in details.metadata.requires_dist:
                nightly, kind = candidate.file.nightly, FactKind.DEPENDENCY
                yield from self._edges(
                    requirement, candidate.project, "", kind=kind, nightly=nightly
                )

    def user_pins(self, project: str, version: Version) -> bool:
        """Whether the user asks for exactly this version: by requirement, override or constraint."""
        pinned = self._pins_of_user(project)
        return any(specifier.contains(version, prereleases=True) for specifier in pinned)

    def pinned_by_user(self, project: str) -> bool:
        """Whether the user asks for exactly one version of a project."""
        return bool(self._pins_of_user(project))

    def _pins_of_user(self, project: str) -> list[SpecifierSet]:
        pinned = [
            edge.specifier
            for edge in self.roots
            if edge.node == project
            and (edge.url is not None or exact_pin(edge.specifier) is not None)
        ]
        overrides = [entry.requirement.specifier for entry in self._overrides.get(project, ())]
        constraints = [specifier for _, specifier in self._constraints.get(project, ())]
        return pinned + [s for s in (*overrides, *constraints) if exact_pin(s) is not None]

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
        if extra is None and details.by_label is not None:
            source, kind = f"label +{candidate.version.local}", FactKind.DEPENDENCY
            found.extend(
                self._edges(details.by_label, candidate.project, source, kind=kind, nightly=False)
            )
        if extra is None:
            found.extend(
                Edge(node=d.package, fact=d.fact, values=d.values) for d in details.demands
            )
        return tuple(found)

    def knowledge_demands(self, project: str, version: Version) -> tuple[Demand, ...]:
        """Return what any wheel of this version demands, by knowledge alone."""
        return self._reader.demands_of(project, version)

    def release_for(self, project: str) -> CudaVersion | None:
        """Return the release that a project numbered by CUDA should follow, if it is one."""
        if self.knowledge.cuda_number(project) is None:
            return None
        return self.target.cuda
