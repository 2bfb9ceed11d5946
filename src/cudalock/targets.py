"""Several targets in one go: each solved on the metadata of its own wheels, with shared pins preferred.

The first target is solved as if it were alone. Each other one prefers the releases that were chosen
before, so that the sets differ only where something makes them. Where they do, `pin_differences`
asks again with the other's pin, and so knows whether they must.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement

from cudalock.errors import IndexAccessError, ResolutionStoppedError, WheelError
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict, NoSolutionError
from cudalock.resolver.request import Preference, Request, Requested
from cudalock.resolver.resolution import Resolution
from cudalock.session import IndexOptions, Session

__all__ = ["PinDifference", "TargetRequest", "pin_differences", "resolve_for"]

# Each asks one resolve more, of pages that were read.
_MOST_REASONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRequest:
    """What is asked for one target; ``options`` differ where a source is for some targets only."""

    target: Target
    request: Request
    options: IndexOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class PinDifference:
    """A project of which two targets have different releases.

    ``must`` says whether ``target`` cannot have the release of ``other``: True with the ``conflict`` that
    proves it; False where it can, though not beside the rest of what the two share; None where that
    could not be told, and for a pin that only follows others, which is not ``tried``.
    """

    project: str
    other: str
    other_version: str
    target: str
    version: str
    tried: bool = False
    must: bool | None = None
    conflict: Conflict | None = None


def resolve_for(
    session: Session, asked: TargetRequest, earlier: Sequence[Resolution] = ()
) -> Resolution:
    """Return the set for one target, sharing pins with those solved ``earlier`` where it can.

    Preferences of the request itself (an existing lock's) come before those. Leaves the session with
    the options of this target. Raises what `Session.resolve` raises.
    """
    session.options = asked.options
    preferences = dict(asked.request.preferences)
    for resolution in earlier:
        for package in resolution.packages:
            preferences.setdefault(package.project, Preference(public=package.version.public))
    return session.resolve(replace(asked.request, preferences=preferences), asked.target)


def pin_differences(
    session: Session, asked: Sequence[TargetRequest], resolutions: Sequence[Resolution]
) -> tuple[PinDifference, ...]:
    """Return where a target's releases differ from the first one's, and whether they must.

    What a person asked for comes first, and of the first few it is proved, at the cost of a resolve each.
    """
    first = resolutions[0]
    versions = {package.project: package.version.public for package in first.packages}
    found: list[PinDifference] = []
    tries = 0
    for each, resolution in zip(asked[1:], resolutions[1:], strict=True):
        direct = {entry.project for entry in each.request.requirements}
        differing = [
            package
            for package in resolution.packages
            if versions.get(package.project, package.version.public) != package.version.public
        ]
        differing.sort(key=lambda package: (package.project not in direct, package.project))
        asks = [p for p in differing if p.project in direct] or differing
        for package in differing:
            difference = PinDifference(
                project=package.project,
                other=first.target.name or "",
                other_version=versions[package.project],
                target=resolution.target.name or "",
                version=package.version.public,
            )
            if package in asks and tries < _MOST_REASONS:
                tries += 1
                difference = _proved(session, each, difference)
            found.append(difference)
    return tuple(found)


def _proved(session: Session, asked: TargetRequest, difference: PinDifference) -> PinDifference:
    """Solve for the target with the other's release, and say what came of it."""
    pin = Requirement(f"{difference.project}=={difference.other_version}")
    entry = Requested(requirement=pin, where=f"the set for {difference.other}")
    difference = replace(difference, tried=True)
    request = replace(asked.request, constraints=(*asked.request.constraints, entry))
    try:
        resolve_for(session, replace(asked, request=request))
    except NoSolutionError as error:
        return replace(difference, must=True, conflict=error.conflict)
    except (ResolutionStoppedError, IndexAccessError, WheelError):
        return difference
    return replace(difference, must=False)
