"""Why newer releases of what the user asked for are not in a set: the reason, and what is against it.

A release is told of when the user's own requirements admit it. Nothing here changes the set.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from packaging.version import Version

from cudalock.resolver.admission import obstacle
from cudalock.resolver.candidates import Candidate, ProjectOptions
from cudalock.resolver.demands import Violation
from cudalock.resolver.engine import Solution
from cudalock.resolver.request import Edge
from cudalock.resolver.resolution import SetWarning, edges_in_force
from cudalock.resolver.tag_reasons import GLIBC
from cudalock.resolver.world import World

__all__ = ["format_versions", "held_back_warnings", "plural"]


def format_versions(versions: Sequence[Version], besides: Iterable[Version] = ()) -> str:
    """Format ascending versions as a person says them: one, two with "and", else the first to the last.

    None of ``besides``, of which the same is not said, lies within what is told as a range. Where
    that would make a list, the ends and the number are told.
    """
    runs: list[list[Version]] = []
    others = sorted(besides)
    for version in versions:
        place = bisect_left(others, version)
        if runs and (place == 0 or others[place - 1] < runs[-1][-1]):
            runs[-1].append(version)
        else:
            runs.append([version])
    if len(runs) > 3:
        return f"{versions[0]} to {versions[-1]} ({len(versions)} of its releases)"
    parts = [
        part
        for run in runs
        for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))
    ]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def held_back_warnings(world: World, solution: Solution) -> Iterator[SetWarning]:
    """Say which newer releases of what the user asked for were not taken, and why."""
    forced: dict[str, list[Edge]] = {}
    for edge in edges_in_force(world, solution):
        forced.setdefault(edge.node, []).append(edge)
    for project in dict.fromkeys(edge.node for edge in world.roots):
        chosen = solution.candidates[project]
        options = world.options(project, nightly=chosen.file.nightly)
        public = Version(chosen.version.public)
        asked = [edge for edge in world.roots if edge.node == project]
        groups: dict[tuple[str, str], tuple[str, list[Candidate]]] = {}
        for candidate in options.candidates:
            if Version(candidate.version.public) <= public:
                continue
            if obstacle(world, options, candidate, asked) is None:
                reason = _reason(world, solution, candidate, forced)
                if reason is not None:
                    detail, source, against = reason
                    groups.setdefault((detail, against), (source, []))[1].append(candidate)
        for (detail, against), (source, held) in groups.items():
            yield _held_back_warning(project, held, detail, source, against)
        yield from _held_back_by_glibc(options, chosen, asked)


def _held_back_by_glibc(
    options: ProjectOptions, chosen: Candidate, asked: list[Edge]
) -> Iterator[SetWarning]:
    """Say which newer releases need a newer glibc than the target's, where none of them fits it."""
    fitting = {Version(c.version.public) for c in options.candidates}
    for detail in dict.fromkeys(ghost.fact.detail for ghost in options.ghosts):
        versions = sorted(
            {
                version
                for ghost in options.ghosts
                if ghost.version is not None
                and ghost.fact.detail == detail
                and ghost.fact.object.startswith(GLIBC)
                and (version := Version(ghost.version.public)) > Version(chosen.version.public)
                and version not in fitting
                and not version.is_prerelease
                and all(edge.admits(ghost.version) for edge in asked)
            }
        )
        if versions:
            word = "are" if len(versions) > 1 else "is"
            yield SetWarning(
                code="held-back",
                message=f"held back: {options.project} {format_versions(versions)} {word} {detail};"
                f" the target has {options.platform}",
                facts=(detail, options.platform),
            )


def _held_back_warning(
    project: str, held: list[Candidate], detail: str, source: str, against: str
) -> SetWarning:
    versions = sorted({Version(candidate.version.public) for candidate in held})
    indices = " and ".join(sorted({f"`{candidate.file.index}`" for candidate in held}))
    told = [f"held back: {project} {format_versions(versions)} on {indices}"]
    if detail:
        told.append(plural(detail) if len(versions) > 1 else detail)
    if source:
        told.append(f"({_place(source)})")
    joint = "; " if detail else ", because "
    message = " ".join(told) + (joint + against if against else "")
    return SetWarning(
        code="held-back", message=message, facts=tuple(filter(None, (detail, against)))
    )


def plural(detail: str) -> str:
    """Say of several what was said of one: "is built for" becomes "are built for"."""
    for one, several in (
        ("is ", "are "),
        ("shares its day", "share their day"),
        ("shares ", "share "),
        ("requires ", "require "),
        ("asks ", "ask "),
        ("needs ", "need "),
        ("loads ", "load "),
        ("holds ", "hold "),
        ("installs ", "install "),
    ):
        if detail.startswith(one):
            return several + detail.removeprefix(one).replace(" it pins", " they pin")
    return detail


def _reason(
    world: World, solution: Solution, candidate: Candidate, forced: dict[str, list[Edge]]
) -> tuple[str, str, str] | None:
    """Return (what is said of the wheel, where, what is against it), if it is known."""
    details = world.known(candidate)
    violations = details.violations if details is not None else candidate.violations
    if violations:
        told = min(violations, key=_telling)
        return told.fact.detail, told.fact.source, told.pin.detail
    if details is None:
        return None
    if details.rejection is not None:
        return f"is {details.rejection.detail}", "", ""
    for demand in details.demands:
        value = solution.values.get(demand.package)
        if value is None or value in demand.values:
            continue
        for edge in forced.get(demand.package, ()):
            if edge.fact.subject != candidate.project and not (edge.values or set()) & (
                demand.values
            ):
                who = solution.candidates[edge.fact.subject]
                against = f"{who.project} {who.version} {edge.fact.detail} ({edge.fact.source})"
                return "", "", against
    return None


def _place(source: str) -> str:
    """Shorten what was seen to what a sentence can carry."""
    return source if len(source) <= 60 else f"{source[:57]}…"


def _telling(violation: Violation) -> int:
    order = ("<driver>", "<gpu", "<cuda-runtime>", "<cuda>")
    return next(i for i, prefix in enumerate(order) if violation.package.startswith(prefix))
