"""Policies of a resolve that a flag sets, else a ``CUDALOCK_*`` variable, else the project's file."""

from argparse import Namespace
from collections.abc import Mapping

from cudalock.errors import UsageError
from cudalock.project.pyproject import ProjectFile
from cudalock.resolver.request import VERIFY_SM, VerifySm
from cudalock.wheel.published import AsOf, parse_as_of

__all__ = ["chosen_as_of", "chosen_verify_sm"]


def chosen_verify_sm(
    args: Namespace, environ: Mapping[str, str], project: ProjectFile | None
) -> VerifySm:
    """Return how much of wheels' device code must be seen; ``auto`` where nobody says."""
    given: VerifySm | None = args.verify_sm
    where, text = "CUDALOCK_VERIFY_SM", environ.get("CUDALOCK_VERIFY_SM", "").strip()
    if given is None and not text and project is not None and project.verify_sm is not None:
        where, text = "tool.cudalock.verify-sm", project.verify_sm
    for value in VERIFY_SM:
        if text == value:
            given = given or value
    if given is None and text:
        raise UsageError(
            f"expected {', '.join(VERIFY_SM)}, found `{text[:80]}`", where=where, flag="--verify-sm"
        )
    return given or "auto"


def chosen_as_of(
    args: Namespace, environ: Mapping[str, str], project: ProjectFile | None
) -> AsOf | None:
    """Return the point in time of `--as-of`: the flag's, the environment's, or the project's."""
    if args.as_of is not None:
        return parse_as_of(args.as_of, where="--as-of")
    given = environ.get("CUDALOCK_AS_OF", "").strip()
    if given:
        return parse_as_of(given, where="CUDALOCK_AS_OF")
    if project is None:
        return None
    return project.as_of if project.as_of is not None else project.uv.exclude_newer
