"""What is asked of the resolver, and the edges that requirements make between projects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.resolver.facts import Fact, FactKind
from cudalock.wheel.published import AsOf

__all__ = [
    "VERIFY_SM",
    "Edge",
    "Preference",
    "Request",
    "Requested",
    "VerifySm",
    "exact_pin",
    "format_requirement",
    "make_edge",
]


VerifySm = Literal["off", "auto", "strict"]
VERIFY_SM: tuple[VerifySm, ...] = ("off", "auto", "strict")
"""How much of wheels' device code must be seen: nothing, that it is not all wrong, or every library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """A requirement (or constraint, or override) and where it was written.

    With ``sha256`` only wheels of one of these hashes are taken, as `--hash` in a requirements
    file asks.
    """

    requirement: Requirement
    where: str
    sha256: frozenset[str] = frozenset()

    @property
    def project(self) -> str:
        """The normalised project."""
        return canonicalize_name(self.requirement.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A release that is taken before newer ones where it may be: a lock has it, or another target.

    ``filename`` is the very wheel, where that is known; else the target's own order decides which
    build of the release.
    """

    public: str
    filename: str | None = None

    def rank(self, version: Version, filename: str) -> int:
        """Rank a candidate: 2 the very wheel, 1 another build of the release, else 0."""
        return (version.public == self.public) + (filename == self.filename)


def _no_preferences() -> Mapping[str, Preference]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything a person asked for. ``prereleases`` are projects whose pre-releases count too.

    With ``as_of`` only files published before it count. ``verify_sm`` is how much of the device code
    must be seen. ``preferences`` change the order in which candidates are tried, by project, and never what may be in a set.
    With ``variants`` wheel variants are candidates (PEP 825), which few installers take from a lock.
    """

    requirements: tuple[Requested, ...]
    constraints: tuple[Requested, ...] = ()
    overrides: tuple[Requested, ...] = ()
    prereleases: frozenset[str] = field(default_factory=frozenset)
    as_of: AsOf | None = None
    variants: bool = False
    verify_sm: VerifySm = "auto"
    preferences: Mapping[str, Preference] = field(default_factory=_no_preferences, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edge:
    """A requirement in force: on a project, or (``values``) on a virtual package.

    ``nightly`` opens the publisher's nightly folders for it; ``pins_prerelease`` lets a
    pre-release in. ``fact`` is why the edge exists.
    """

    node: str
    fact: Fact
    specifier: SpecifierSet = field(default_factory=SpecifierSet)
    extras: frozenset[str] = frozenset()
    url: str | None = None
    values: frozenset[str] | None = None
    nightly: bool = False
    pins_prerelease: bool = False

    def admits(self, version: Version) -> bool:
        """Whether the specifier admits a version, pre-releases included."""
        return self.specifier.contains(version, prereleases=True)


def exact_pin(specifier: SpecifierSet) -> Version | None:
    """Return the version that an ``==`` clause without a wildcard pins."""
    for clause in specifier:
        if clause.operator in ("==", "===") and not clause.version.endswith(".*"):
            try:
                return Version(clause.version)
            except ValueError:
                return None
    return None


def format_requirement(requirement: Requirement) -> str:
    """Format a requirement as its author would: without its marker, extras sorted."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    if requirement.url:
        return f"{requirement.name}{extras} @ {requirement.url}"
    return f"{requirement.name}{extras}{requirement.specifier}"


def make_edge(
    requirement: Requirement,
    *,
    kind: FactKind,
    subject: str,
    source: str,
    opens_nightly: bool = False,
) -> Edge:
    """Make the edge of one requirement whose marker holds.

    ``opens_nightly``: an exact pin on this edge reaches into the publisher's nightly folders.
    """
    project = canonicalize_name(requirement.name)
    pin = exact_pin(requirement.specifier)
    fact = Fact(
        kind=kind,
        subject=subject,
        object=project,
        detail=format_requirement(requirement),
        source=source,
    )
    return Edge(
        node=project,
        fact=fact,
        specifier=requirement.specifier,
        extras=frozenset(canonicalize_name(extra) for extra in requirement.extras),
        url=requirement.url,
        nightly=pin is not None and (opens_nightly or pin.is_prerelease),
        pins_prerelease=pin is not None and pin.is_prerelease,
    )
