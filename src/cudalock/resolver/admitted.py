"""What a request by itself admits of each project, before anything is asked of an index.

Publishers that keep a folder a release are asked only for releases that are admitted. What wheels
require is not known yet and narrows it further, so this is never too little.
"""

from collections.abc import Mapping

from packaging.specifiers import SpecifierSet

from cudalock.errors import UsageError, WheelError
from cudalock.resolver.request import Request, Requested
from cudalock.wheel.evidence import marker_holds

__all__ = ["admitted_by_request"]


def admitted_by_request(
    request: Request, environment: Mapping[str, str]
) -> dict[str, SpecifierSet]:
    """Return what requirements and constraints admit, by project, where their markers hold.

    An override takes the place of the requirements on its project. Raises `UsageError` for a
    marker that means nothing.
    """
    overrides: dict[str, list[Requested]] = {}
    for entry in request.overrides:
        kept = overrides.setdefault(entry.project, [])
        if _applies(entry, environment):
            kept.append(entry)
    entries = [
        used
        for entry in request.requirements
        if _applies(entry, environment)
        for used in overrides.get(entry.project, [entry])
    ]
    entries += [entry for entry in request.constraints if _applies(entry, environment)]
    admitted: dict[str, SpecifierSet] = {}
    for entry in entries:
        found = admitted.get(entry.project, SpecifierSet())
        admitted[entry.project] = found & entry.requirement.specifier
    return admitted


def _applies(entry: Requested, environment: Mapping[str, str]) -> bool:
    try:
        return marker_holds(entry.requirement, environment)
    except WheelError as error:
        raise UsageError(error.message, where=entry.where) from error
