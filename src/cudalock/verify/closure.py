"""Whether a lock is closed: everything that is required is there, in a version that is wanted.

What a wheel required when it was locked stands in its record; what was asked for stands in
``[tool.cudalock]``. An override of a person replaces every requirement on its project.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.lock.model import Lock
from cudalock.verify.problems import Problem
from cudalock.verify.recorded import texts
from cudalock.verify.selection import Entry, Selection, marker_holds

__all__ = ["asked_requirements", "closure_problems", "parse", "unneeded"]


@cache
def parse(text: str) -> Requirement | None:
    """Parse a requirement; None for what is none."""
    try:
        return Requirement(text)
    except (InvalidRequirement, ValueError, RecursionError):
        return None


def asked_requirements(
    lock: Lock, environment: Mapping[str, str]
) -> list[tuple[str, Requirement]] | None:
    """Return the requirements asked for that hold in an environment, each with its text.

    None where the lock does not record them readably.
    """
    asked, overrides = texts(lock.tool, "requirements"), texts(lock.tool, "overrides")
    if asked is None or overrides is None or "requirements" not in lock.tool:
        return None
    replaced: dict[str, list[str]] = {}
    found: list[tuple[str, Requirement]] = []
    for text in overrides:
        requirement = parse(text)
        if requirement is None:
            return None
        replaced.setdefault(canonicalize_name(requirement.name), []).append(text)
    for text in asked:
        requirement = parse(text)
        if requirement is None:
            return None
        if not _holds(requirement, environment):
            continue
        instead = replaced.get(canonicalize_name(requirement.name))
        for one in [text] if instead is None else instead:
            wanted = parse(one)
            if wanted is not None and _holds(wanted, environment):
                found.append((one, wanted))
    return found


def _holds(requirement: Requirement, environment: Mapping[str, str]) -> bool:
    if requirement.marker is None:
        return True
    return marker_holds(str(requirement.marker), {**environment, "extras": frozenset()})


def closure_problems(
    lock: Lock, selection: Selection, *, where: str = "you require"
) -> Iterator[Problem]:
    """Yield what is required and not there, or there in a version that is not wanted."""
    asked = asked_requirements(lock, selection.environment)
    if asked is None:
        yield Problem(
            code="not-recorded",
            severity="unknown",
            message="expected the requirements it was made for in [tool.cudalock], found none "
            f"(the lock says it was made by {lock.created_by[:60]})",
            hint="lock again with `cudalock resolve`",
        )
    for text, requirement in asked or ():
        yield from _unmet(f"{where} `{text}`", text, requirement, selection)
    for name in sorted(selection.entries):
        entry = selection.entries[name]
        for text in entry.record.requires if entry.record is not None else ():
            wanted = parse(text)
            if wanted is None:
                yield Problem(
                    code="not-recorded",
                    severity="unknown",
                    message=f"expected requirements in the record of {entry}, found `{text[:80]}`",
                    package=name,
                )
                continue
            yield from _unmet(f"{entry} requires `{text}`", text, wanted, selection)
    yield from _constraint_problems(lock, selection)
    missing = sorted(str(entry) for entry in selection.entries.values() if entry.record is None)
    if missing and asked is not None:
        yield Problem(
            code="not-recorded",
            severity="unknown",
            message="what these wheels require and are built for is not recorded under their file "
            f"names: {_some(missing)}",
            hint="an entry that was edited by hand loses its record; lock again with `cudalock resolve`",
        )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _unmet(
    who: str, text: str, requirement: Requirement, selection: Selection
) -> Iterator[Problem]:
    project = canonicalize_name(requirement.name)
    entry = selection.entries.get(project)
    if entry is None:
        message = f"{who}, found no entry of {project} for this target"
        yield Problem(code="missing", severity="broken", message=message, package=project)
        return
    if requirement.url is not None:
        if requirement.url.partition("#")[0] != entry.wheel.url:
            found = entry.wheel.url or entry.wheel.path
            message = f"{who}, found {entry} from {found}"
            yield Problem(code="unmet", severity="broken", message=message, package=project)
    elif not _admits(text, entry.version):
        message = f"{who}, found {entry}"
        yield Problem(code="unmet", severity="broken", message=message, package=project)
    extras = {canonicalize_name(extra) for extra in requirement.extras}
    lacking = sorted(extras - (entry.record.extras if entry.record is not None else extras))
    if lacking:
        message = f"{who}, found that {entry} was locked without the extra {', '.join(lacking)}"
        yield Problem(code="missing-extra", severity="broken", message=message, package=project)


@cache
def _admits(text: str, version: Version) -> bool:
    requirement = parse(text)
    return requirement is not None and requirement.specifier.contains(version, prereleases=True)


def _constraint_problems(lock: Lock, selection: Selection) -> Iterator[Problem]:
    for text in texts(lock.tool, "constraints") or ():
        constraint = parse(text)
        if constraint is None or not _holds(constraint, selection.environment):
            continue
        entry = selection.entries.get(canonicalize_name(constraint.name))
        if entry is not None and not constraint.specifier.contains(entry.version, prereleases=True):
            yield Problem(
                code="unmet",
                severity="broken",
                message=f"you constrain `{text}`, found {entry}",
                package=entry.name,
            )


def unneeded(lock: Lock, selection: Selection) -> list[Entry]:
    """Return the entries that nothing asks for, by name; none where that cannot be told."""
    asked = asked_requirements(lock, selection.environment)
    if asked is None or any(entry.record is None for entry in selection.entries.values()):
        return []
    reached: set[str] = set()
    waiting = [canonicalize_name(requirement.name) for _, requirement in asked]
    while waiting:
        name = waiting.pop()
        entry = selection.entries.get(name)
        if entry is None or name in reached:
            continue
        reached.add(name)
        found = map(parse, entry.record.requires if entry.record is not None else ())
        waiting += [canonicalize_name(r.name) for r in found if r is not None]
    return [selection.entries[name] for name in sorted(selection.entries) if name not in reached]
