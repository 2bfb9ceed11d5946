"""Which locked wheels have a newer release on their index, and what keeps the lock from it."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from cudalock.errors import IndexAccessError, UsageError
from cudalock.host.target import Target, marker_environment, supported_tags
from cudalock.index.client import Client
from cudalock.index.definitions import Definition
from cudalock.index.pages import PageReader
from cudalock.index.routes import Route
from cudalock.lock.model import Lock
from cudalock.verify.closure import parse
from cudalock.verify.graph import LockGraph, Node, lock_graph
from cudalock.verify.listed import page_request
from cudalock.verify.recorded import read_target, texts
from cudalock.wheel.evidence import label_of
from cudalock.wheel.listing import ListedFile

__all__ = ["NewerRelease", "find_newer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRelease:
    """A locked entry and the newest release of its index that the target could install.

    ``newest`` is None where there is none newer, ``error`` is why that could not be told. ``kept_by``
    says what in the lock excludes it; empty where only the lock itself does.
    """

    name: str
    version: str
    newest: str | None = None
    kept_by: tuple[str, ...] = ()
    error: str | None = None


def find_newer(
    lock: Lock, *, client: Client, definitions: Sequence[Definition], executor: Executor
) -> tuple[NewerRelease, ...]:
    """Ask the index of every entry for newer wheels of the same CUDA; by name.

    Raises `UsageError` for a lock that names no target: which wheels fit is not known then.
    """
    target = read_target(lock)
    if target is None:
        raise UsageError("expected the target it was made for in the lock, found none")
    graph, reader = lock_graph(lock), PageReader(client)
    held = texts(lock.tool, "held-back") or ()
    fits = frozenset(supported_tags(target))

    def ask(node: Node) -> NewerRelease:
        package = node.package
        found = NewerRelease(name=package.name, version=package.version)
        if package.index is None:
            return _but(found, error="it is of no index")
        request = page_request(package.index, package.name, definitions)
        route = Route(
            project=package.name, index=package.index, folders=(request,), reason="the lock"
        )
        try:
            answer = reader.ask(route, [request], None)[0]
        except (IndexAccessError, UsageError) as error:
            return _but(found, error=str(error))
        newer = [
            file.wheel.version
            for file in answer.files
            if file.wheel.tags & fits and _may_replace(file, Version(package.version), target)
        ]
        if not newer:
            return found
        newest = max(newer)
        return _but(found, newest=newest, kept_by=_kept_by(graph, package.name, newest, held))

    try:
        return tuple(executor.map(ask, graph.nodes.values()))
    finally:
        reader.close()


def _but(
    found: NewerRelease,
    *,
    newest: Version | None = None,
    kept_by: tuple[str, ...] = (),
    error: str | None = None,
) -> NewerRelease:
    return NewerRelease(
        name=found.name,
        version=found.version,
        newest=None if newest is None else str(newest),
        kept_by=kept_by,
        error=error,
    )


def _may_replace(file: ListedFile, locked: Version, target: Target) -> bool:
    """Whether a wheel is of a newer release and the same CUDA; a release is not replaced by a nightly."""
    version = file.wheel.version
    if file.yanked is not False or (version.is_prerelease and not locked.is_prerelease):
        return False
    if Version(version.public) <= Version(locked.public):
        return False
    if label_of(version.local).cuda != label_of(locked.local).cuda:
        return False
    try:
        python = SpecifierSet(file.requires_python or "")
    except InvalidSpecifier:
        return False
    return python.contains(marker_environment(target)["python_full_version"], prereleases=True)


def _kept_by(
    graph: LockGraph, project: str, newest: Version, held: Sequence[str]
) -> tuple[str, ...]:
    """Return which requirements exclude a release, and what was said of those held back."""
    found = [
        f"you require `{one.text}`" for one in graph.asked if _excludes(one.text, project, newest)
    ]
    found += [
        f"{node} requires `{one.text}`"
        for node, one in graph.required_by(project)
        if _excludes(one.text, project, newest)
    ]
    told = [text for text in held if text.removeprefix("held back: ").startswith(f"{project} ")]
    return (*found, *told)


def _excludes(text: str | None, project: str, version: Version) -> bool:
    requirement = None if text is None else parse(text)
    if requirement is None or requirement.name.lower().replace("_", "-") != project:
        return False
    return not requirement.specifier.contains(version, prereleases=True)
