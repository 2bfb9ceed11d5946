"""What is known of one wheel once its metadata is read: what it demands, and what speaks against it.

Everything here is about a single wheel on one target; how wheels go together is the searches'
business. An answer is a fact of the wheel and never changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.errors import WheelError
from cudalock.resolver.bonds import (
    abi_demands,
    knowledge_demands,
    label_requirement,
    labelled_release,
)
from cudalock.resolver.byte_demands import (
    path_demands,
    release_demands,
    symbol_demands,
    without_refuted,
)
from cudalock.resolver.candidates import Candidate, last_resort, rejection_fact
from cudalock.resolver.demands import (
    Demand,
    Pins,
    Violation,
    toolkit_demand,
    variant_violations,
)
from cudalock.resolver.facts import Fact
from cudalock.resolver.request import exact_pin
from cudalock.resolver.source import Source
from cudalock.resolver.toolkit import ToolkitReleases
from cudalock.resolver.trains import train_demand
from cudalock.wheel.byte_evidence import observe_bytes, speaks_of_cuda
from cudalock.wheel.evidence import (
    Observation,
    Variant,
    add_device_code,
    conclude,
    marker_holds,
    may_hold_code,
    observe_file,
    observe_metadata,
    observe_part,
)
from cudalock.wheel.gpu_service import gpu_service
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.wheel_facts import FactBook, WheelFacts

__all__ = ["Details", "DetailsReader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What is known of a candidate once its metadata is read.

    ``metadata`` is None when none can be had, and then ``rejection`` says so. ``violations`` are
    what the target contradicts, from the page and the metadata together. ``by_label`` is what its
    label requires beside its metadata.
    """

    metadata: CoreMetadata | None
    variant: Variant
    violations: tuple[Violation, ...] = ()
    demands: tuple[Demand, ...] = ()
    rejection: Fact | None = None
    last_resort: str | None = None
    by_label: Requirement | None = None

    @property
    def usable(self) -> bool:
        """Whether nothing about the wheel alone rules it out on this target."""
        return self.rejection is None and not self.violations


class DetailsReader:
    """Reads wheels for one world.

    ``user_pins`` says whether the user asks for exactly a version, ``pinned`` whether for exactly one.
    """

    def __init__(
        self,
        *,
        source: Source,
        knowledge: Knowledge,
        pins: Pins,
        environment: Mapping[str, str],
        toolkit: ToolkitReleases,
        is_cuda_project: Callable[[str], bool],
        user_pins: Callable[[str, Version], bool],
        pinned: Callable[[str], bool] = lambda _: False,
        facts: FactBook | None = None,
        contested: frozenset[str] = frozenset(),
    ) -> None:
        """Take what a wheel is judged by; nothing is asked of the source yet.

        ``facts`` is what was read of wheels, ``contested`` the paths that two of them own.
        """
        self._source = source
        self._knowledge = knowledge
        self._pins = pins
        self._environment = environment
        self._python = Version(environment["python_full_version"])
        self._toolkit = toolkit
        self._is_cuda_project = is_cuda_project
        self._user_pins = user_pins
        self._pinned = pinned
        self._facts = facts or FactBook()
        self._contested = contested
        self._demands: dict[tuple[str, Version], tuple[Demand, ...]] = {}

    def read(self, candidate: Candidate) -> Details:
        """Read a wheel's metadata and say what follows; safe in threads."""
        project, version = candidate.project, candidate.version
        try:
            metadata = self._source.metadata(candidate.file)
            for requirement in metadata.requires_dist if metadata is not None else ():
                marker_holds(requirement, self._environment)
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
        facts = None if self._pins.target.cpu else self._facts.of(candidate.file)
        observations = observe_file(candidate.file, self._knowledge)
        observations += observe_metadata(metadata, self._knowledge, self._environment)
        if facts is not None:
            cuda = self._pins.target.cuda
            wanted = None if cuda is None else cuda.major
            observations += observe_bytes(facts, self._knowledge, wanted=wanted)
        native = may_hold_code(candidate.file) or self._is_cuda_project(project)
        variant = self._variant(candidate, observations, facts, native=native)
        violations = variant_violations(project, variant, self._pins)
        demands = list(self.demands_of(project, version))
        demands += abi_demands(project, version, variant.cuda, self._knowledge)
        if facts is not None:
            loads = symbol_demands(project, facts, self._facts.tables)
            demands = without_refuted(demands, loads)
            demands += [demand for demand in loads.values() if demand is not None]
            demands += path_demands(project, facts, self._contested)
        train = train_demand(
            project,
            version,
            metadata,
            knowledge=self._knowledge,
            environment=self._environment,
            pinned=self._pinned,
        )
        if train is not None:
            demands.append(train)
        part = self._toolkit.releases_of(project, version)
        if part is not None:
            # What the toolkit says of its parts is shown like any evidence, and binds them to the
            # set's release; what a part can serve follows from the wheels that load it.
            demand = toolkit_demand(project, *part, self._pins)
            if isinstance(demand, Violation):
                violations.append(demand)
            elif demand is not None:
                demands.append(demand)
            observations += (observe_part(project, *part, self._pins.target.cuda),)
        return Details(
            metadata=metadata,
            variant=self._variant(candidate, observations, facts, native=native),
            violations=tuple(violations),
            demands=tuple(demands),
            last_resort=None
            if self._decided(project, variant)
            else last_resort(variant, self._pins),
            by_label=label_requirement(project, version, self._knowledge),
        )

    def _variant(
        self,
        candidate: Candidate,
        observations: tuple[Observation, ...],
        facts: WheelFacts | None,
        *,
        native: bool,
    ) -> Variant:
        if facts is not None and facts.contents.complete:
            # All of it was read: what has nothing to do with CUDA is built for none.
            native = speaks_of_cuda(facts.contents, self._knowledge)
        variant = replace(conclude(observations, native=native), facts=facts)
        machine = self._pins.machine
        return add_device_code(variant, candidate.file, self._knowledge, machine=machine)

    def _decided(self, project: str, variant: Variant) -> bool:
        """Whether the bytes of a wheel tell of each GPU what it holds for it."""
        services = [
            gpu_service(
                variant,
                capability,
                driver_cuda=self._pins.driver_cuda,
                knowledge=self._knowledge,
                project=project,
            )
            for capability in self._pins.target.capabilities
        ]
        return all(each is not None and each.read and not each.undecided for each in services)

    def _ruled_out(
        self, candidate: Candidate, metadata: CoreMetadata | None, kind: str, source: str = ""
    ) -> Details:
        fact = rejection_fact(candidate.project, kind, source)
        demands = self.demands_of(candidate.project, candidate.version)
        variant = candidate.variant
        return Details(metadata=metadata, variant=variant, demands=demands, rejection=fact)

    def _unpaired(self, candidate: Candidate, metadata: CoreMetadata) -> bool:
        """Whether knowledge says that the project needs a pairing and this release has none."""
        mark = self._knowledge.mark("needs-pairing", candidate.project)
        project, version = candidate.project, candidate.version
        if mark is None or self._knowledge.pairing(project, version):
            return False
        partner, release = labelled_release(project, version, self._knowledge)
        if partner == mark.value and release is not None:
            return False
        for requirement in metadata.requires_dist:
            if (
                canonicalize_name(requirement.name) == mark.value
                and exact_pin(requirement.specifier) is not None
                and marker_holds(requirement, self._environment)
            ):
                return False
        return not self._user_pins(project, version)

    def demands_of(self, project: str, version: Version) -> tuple[Demand, ...]:
        """Return what any wheel of this version demands, by knowledge and known exports alone."""
        found = self._demands.get((project, version))
        if found is None:
            found = (
                *knowledge_demands(project, version, self._knowledge),
                *release_demands(project, version, self._facts.tables),
            )
            self._demands[project, version] = found
        return found
