"""What should be said of a requirement because of nightlies: why a bound leaves them out, what is gone.

Publishers drop nightlies after some days, and a pre-release is before its release (PEP 440), which is
how a requirement that reads as if it took one does not. Nothing here decides anything.
"""

from collections.abc import Iterable
from datetime import date

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from cudalock.resolver.candidates import ProjectOptions
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.request import exact_pin
from cudalock.resolver.world import World
from cudalock.wheel.published import nightly_day

__all__ = ["requirement_note"]

_REQUIRING = (
    FactKind.REQUIREMENT,
    FactKind.DEPENDENCY,
    FactKind.CONSTRAINT,
    FactKind.OVERRIDE,
)


def requirement_note(world: World, fact: Fact) -> str:
    """Return what to say after a requirement of a conflict, or nothing.

    Only of projects whose pre-releases or nightlies something asks for.
    """
    project = fact.object
    if fact.kind not in _REQUIRING or " @ " in fact.detail:
        return ""
    nightly, early = world.opens_nightly(project), world.opens_early(project)
    if not (nightly or early):
        return ""
    options = world.options(project, nightly=nightly)
    specifier = Requirement(fact.detail).specifier
    versions = _versions(options)
    others = [edge for edge in world.roots if edge.node == project and edge.fact != fact]
    wanted = [version for version in versions if all(edge.admits(version) for edge in others)]
    return (
        _gone(world, project, options, versions, exact_pin(specifier))
        or _left_out(wanted, specifier)
        or _none(options, versions, allowed=world.allows_prereleases(project))
    )


def _versions(options: ProjectOptions) -> list[Version]:
    found = {candidate.version for candidate in options.candidates}
    found.update(ghost.version for ghost in options.ghosts if ghost.version is not None)
    return sorted(found)


def _gone(
    world: World,
    project: str,
    options: ProjectOptions,
    versions: Iterable[Version],
    pin: Version | None,
) -> str:
    """Say which days are listed when the day of a pinned nightly is not."""
    asked = None if pin is None else nightly_day(pin)
    days = sorted({day for version in versions if (day := nightly_day(version)) is not None})
    if asked is None or not days or asked in days:
        return ""
    told = f"the nightlies of {project} that are listed are of {_span(days)}"
    indices = sorted({file.index for file in options.listing.files if file.nightly})
    kept = next(((i, world.nightly_days[i]) for i in indices if i in world.nightly_days), None)
    if asked < days[0] and kept is not None:
        told += f", and `{kept[0]}` removes them after about {kept[1]} days"
    return told


def _span(days: list[date]) -> str:
    first, last = f"{days[0]:%Y%m%d}", f"{days[-1]:%Y%m%d}"
    return first if first == last else f"{first} to {last}"


def _left_out(versions: Iterable[Version], specifier: SpecifierSet) -> str:
    """Say of the newest pre-release that a bound leaves out although it names its release.

    ``versions`` are those that all else the user asks of the project admits.
    """
    told = ""
    for version in versions:
        if not version.is_prerelease or specifier.contains(version, prereleases=True):
            continue
        base = Version(version.base_version)
        if specifier.contains(base, prereleases=True):
            told = f"{version.public} is before {base}"
        elif _bounded_by(base, specifier):
            told = (
                f"{version.public} is a pre-release of {base}, which `<{base}` leaves out (PEP 440)"
            )
    return told


def _bounded_by(base: Version, specifier: SpecifierSet) -> bool:
    """Whether all that keeps a pre-release out is the bound ``<`` its own release."""
    bounds = [clause for clause in specifier if clause.operator == "<"]
    own = [clause for clause in bounds if Version(clause.version) == base]
    rest = SpecifierSet(",".join(str(clause) for clause in specifier if clause not in own))
    return bool(own) and rest.contains(base, prereleases=True)


def _none(options: ProjectOptions, versions: Iterable[Version], *, allowed: bool) -> str:
    """Say that a project whose nightlies are wanted has none, and where they were looked for."""
    if not allowed or any(version.is_prerelease for version in versions):
        return ""
    folders: dict[str, list[str]] = {}
    for answer in options.listing.answers:
        if answer.status == "absent" and answer.folder and answer.folder.startswith("nightly"):
            folders.setdefault(answer.index, []).append(answer.folder)
    spans = [
        f"`{index}` does not have it in {min(names)}"
        + (f" to {max(names)}" if len(set(names)) > 1 else "")
        for index, names in sorted(folders.items())
    ]
    where = f" ({', '.join(spans)})" if spans else ""
    return f"no nightly of {options.project} is listed{where}"
