"""Who requires whom in a lock: the graph of its entries for the target it was made for.

Requirements are those of the wheels' records; of a lock without records, the ``dependencies`` that
PEP 751 has "for people to read". A lock that names no target is taken whole, the first entry of a name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from cudalock.lock.model import Lock, LockedPackage
from cudalock.verify.closure import asked_requirements, parse
from cudalock.verify.recorded import WheelRecord, read_records, read_target, texts
from cudalock.verify.selection import select

__all__ = ["LockGraph", "Node", "Requires", "lock_graph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requires:
    """One requirement: on whom, and its text (None where only the name is known)."""

    project: str
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One entry: its package, its wheel's record, and what it requires, by project."""

    package: LockedPackage
    record: WheelRecord | None
    requires: tuple[Requires, ...]

    @property
    def cuda(self) -> str | None:
        """The CUDA it is built for, as far as it is known: ``13.0`` or ``13``."""
        if self.record is None or self.record.runtime is None:
            return None
        return str(self.record.cuda or self.record.runtime)

    def __str__(self) -> str:
        return f"{self.package.name} {self.package.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockGraph:
    """The entries by project, and what was asked for: each requirement's text and project."""

    nodes: Mapping[str, Node]
    asked: tuple[Requires, ...]

    @property
    def roots(self) -> tuple[str, ...]:
        """The projects that were asked for, else those that nobody requires; sorted."""
        named = {one.project for one in self.asked if one.project in self.nodes}
        if not named:
            required = {one.project for node in self.nodes.values() for one in node.requires}
            named = self.nodes.keys() - required
        return tuple(sorted(named))

    def required_by(self, project: str) -> Iterator[tuple[Node, Requires]]:
        """Yield the entries that require a project, with the requirement; by name."""
        for name in sorted(self.nodes):
            for one in self.nodes[name].requires:
                if one.project == project:
                    yield self.nodes[name], one

    def chain(self, project: str) -> tuple[str, ...]:
        """Return the shortest way from what was asked for to a project; () where there is none."""
        ways: dict[str, tuple[str, ...]] = {name: (name,) for name in self.roots}
        waiting = list(ways)
        for name in waiting:
            if name == project:
                return ways[name]
            for one in self.nodes[name].requires:
                if one.project in self.nodes and one.project not in ways:
                    ways[one.project] = (*ways[name], one.project)
                    waiting.append(one.project)
        return ()


def lock_graph(lock: Lock) -> LockGraph:
    """Return the graph of a lock. Linear in its entries and requirements."""
    target = read_target(lock)
    chosen: dict[str, tuple[LockedPackage, WheelRecord | None]] = {}
    asked: list[Requires] = []
    if target is not None:
        selection = select(lock, target)
        chosen = {name: (e.package, e.record) for name, e in selection.entries.items()}
        for text, requirement in asked_requirements(lock, selection.environment) or ():
            asked.append(Requires(project=canonicalize_name(requirement.name), text=text))
    else:
        for package in lock.packages:
            record = read_records(package).get(package.wheels[0].name)
            chosen.setdefault(package.name, (package, record))
        for text in texts(lock.tool, "requirements") or ():
            wanted = parse(text)
            if wanted is not None:
                asked.append(Requires(project=canonicalize_name(wanted.name), text=text))
    return LockGraph(
        nodes={
            name: Node(package=package, record=record, requires=_requires(package, record))
            for name, (package, record) in sorted(chosen.items())
        },
        asked=tuple(asked),
    )


def _requires(package: LockedPackage, record: WheelRecord | None) -> tuple[Requires, ...]:
    found: dict[str, Requires] = {
        name: Requires(project=name, text=None) for name, _ in package.dependencies
    }
    for text in record.requires if record is not None else ():
        requirement = parse(text)
        if requirement is not None:
            name = canonicalize_name(requirement.name)
            found[name] = Requires(project=name, text=text)
    return tuple(found[name] for name in sorted(found))
