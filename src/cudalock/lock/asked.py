"""What was asked of a resolve, in a form that does not change when only its spelling does.

The digest stands in the lock (``[tool.cudalock.inputs]``); `check` reads the inputs again, makes it
once more, and so finds an edited requirement without being disturbed by a comment or an order.
"""

import hashlib
from collections.abc import Iterable, Mapping

from packaging.utils import canonicalize_name

from cudalock.lock.model import TomlValue
from cudalock.resolver.request import Request, Requested

__all__ = ["describe_request", "request_digest"]


def request_digest(request: Request, sources: Mapping[str, str]) -> str:
    """Return the digest of what is asked: ``sha256:`` and 64 digits.

    Names and extras are normalised, clauses, extras and entries sorted; where an entry was written
    takes no part. ``sources`` names the index of each project that has one.
    """
    lines = [
        *(f"requires {text}" for text in _spell(request.requirements)),
        *(f"constrains {text}" for text in _spell(request.constraints)),
        *(f"overrides {text}" for text in _spell(request.overrides)),
        *(f"prerelease {name}" for name in sorted(request.prereleases)),
        *(f"source {project} {sources[project]}" for project in sorted(sources)),
        f"as-of {request.as_of or ''}",
        f"variants {request.variants}",
        f"verify-sm {request.verify_sm}",
    ]
    return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def describe_request(
    request: Request, sources: Mapping[str, str], inputs: Mapping[str, TomlValue]
) -> dict[str, TomlValue]:
    """Return the keys of ``[tool.cudalock]`` that say what was asked beside the requirements.

    ``inputs`` says where it was written.
    """
    described: dict[str, TomlValue] = {
        "inputs": {**inputs, "digest": request_digest(request, sources)}
    }
    for key, entries in (
        ("constraints", request.constraints),
        ("overrides", request.overrides),
    ):
        if entries:
            described[key] = sorted({str(entry.requirement) for entry in entries})
    return described


def _spell(entries: Iterable[Requested]) -> list[str]:
    return sorted({_spell_one(entry) for entry in entries})


def _spell_one(entry: Requested) -> str:
    requirement = entry.requirement
    extras = ",".join(sorted(canonicalize_name(extra) for extra in requirement.extras))
    clauses = ",".join(sorted(str(clause) for clause in requirement.specifier))
    marker = "" if requirement.marker is None else str(requirement.marker)
    hashes = ",".join(sorted(entry.sha256))
    url = requirement.url or ""
    return f"{entry.project}[{extras}] {clauses} @{url} ; {marker} # {hashes}"
