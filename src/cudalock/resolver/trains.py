"""Trains of nightlies: projects released together, of which some wheels do not say with which.

What a wheel declares counts: a nightly that pins another member exactly goes with that one, a day apart
or not. Only a nightly that pins no member is held to the others of its day, and that is an assumption,
said as one.
"""

from collections.abc import Callable, Mapping

from packaging.utils import canonicalize_name
from packaging.version import Version

from cudalock.resolver.demands import Demand
from cudalock.resolver.facts import Fact, FactKind
from cudalock.resolver.request import exact_pin
from cudalock.wheel.evidence import marker_holds
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.metadata import CoreMetadata
from cudalock.wheel.published import nightly_day

__all__ = ["ALIGNED_BY_DAY", "train_demand"]

ALIGNED_BY_DAY = "assumed: by the day in its version"
"""The source of such a demand."""


def train_demand(
    project: str,
    version: Version,
    metadata: CoreMetadata,
    *,
    knowledge: Knowledge,
    environment: Mapping[str, str],
    pinned: Callable[[str], bool],
) -> Demand | None:
    """Hold a nightly that pins no other member of its train to those of its day.

    ``pinned`` says whether the user pins a project to one version: a member is not held to another day
    than its own when the user pins both it and the first of the train.
    """
    train = next((t for t in knowledge.trains if project in t.projects), None)
    day = nightly_day(version)
    if train is None or day is None:
        return None
    others = frozenset(train.projects) - {project}
    for requirement in metadata.requires_dist:
        if (
            canonicalize_name(requirement.name) in others
            and exact_pin(requirement.specifier) is not None
            and marker_holds(requirement, environment)
        ):
            return None
    first = train.projects[0]
    if project != first and pinned(project) and pinned(first):
        return None
    package = f"<{train.name} nightly>"
    fact = Fact(
        kind=FactKind.FAMILY,
        subject=project,
        object=package,
        detail=f"shares its day with the other nightlies of {train.name}, of which it pins none",
        source=ALIGNED_BY_DAY,
    )
    return Demand(package=package, values=frozenset({f"{day:%Y%m%d}"}), fact=fact)
