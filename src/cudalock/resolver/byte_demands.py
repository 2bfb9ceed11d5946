"""What a wheel's bytes demand of the wheels beside it: symbols of torch, and paths that are its own.

``<libtorch 2.11.0>`` is there once for each release whose exports are known: that release says ``this``,
an extension that misses a symbol there says ``another``. ``<path …>`` is there for a path that two wheels
were seen to own with different bytes; each says which bytes are its own.
"""

from collections.abc import Iterable

from packaging.version import Version

from cudalock.resolver.demands import Demand
from cudalock.resolver.facts import Fact, FactKind
from cudalock.wheel.byte_evidence import (
    builds_of_libraries,
    installed_libraries,
    names_a_torch,
)
from cudalock.wheel.contents import WheelContents
from cudalock.wheel.torch_exports import missing_symbols
from cudalock.wheel.torch_symbols import format_symbol
from cudalock.wheel.wheel_facts import ExportTable, WheelFacts

__all__ = ["missing_in", "path_demands", "release_demands", "symbol_demands", "without_refuted"]


def missing_in(contents: WheelContents, table: ExportTable) -> tuple[tuple[str, str], ...] | None:
    """Return what a wheel wants of a release and does not find there, as (library, symbol).

    Of builds of one library the one that fits best counts; where they are builds for releases of torch and
    none fits, the wheel may do without. None where that cannot be told.
    """
    found: list[tuple[str, str]] = []
    unknown = False
    for group in builds_of_libraries(contents):
        answers = [(lib.path, missing_symbols(contents, lib, table)) for lib in group]
        known = [(path, missing) for path, missing in answers if missing is not None]
        if any(not missing for _, missing in known):
            continue
        if len(known) < len(answers) or any(names_a_torch(path) for path, _ in answers):
            unknown = True
            continue
        path, missing = min(known, key=lambda each: len(each[1]))
        found.extend((path, symbol) for symbol in sorted(missing))
    return None if unknown and not found else tuple(found)


def release_demands(project: str, version: Version, tables: Iterable[ExportTable]) -> list[Demand]:
    """Say of a release whose exports are known that it is that one."""
    return [
        Demand(
            package=_package(table),
            values=frozenset({"this"}),
            fact=Fact(
                kind=FactKind.RELEASE,
                subject=project,
                object=_package(table),
                detail="is a release whose exports were read",
                source=table.source,
            ),
        )
        for table in tables
        if table.project == project and Version(table.release.public) == Version(version.public)
    ]


def symbol_demands(
    project: str, facts: WheelFacts, tables: Iterable[ExportTable]
) -> dict[Version, Demand | None]:
    """Return for each release whether the wheel can be loaded with it: None, or what speaks against it.

    Releases of which that cannot be told are left out.
    """
    found: dict[Version, Demand | None] = {}
    for table in tables:
        missing = missing_in(facts.contents, table) if table.project != project else None
        if missing is None:
            continue
        found[table.release] = _demand(project, facts, table, missing) if missing else None
    return found


def _demand(
    project: str, facts: WheelFacts, table: ExportTable, missing: tuple[tuple[str, str], ...]
) -> Demand:
    # A plain name tells a reader more than a constructor or a template.
    path, symbol = min(missing, key=lambda each: (format_symbol(each[1]) == each[1], each))
    more = len({each for _, each in missing}) - 1
    others = f" and {more} more" if more else ""
    fact = Fact(
        kind=FactKind.SYMBOL,
        subject=project,
        object=_package(table),
        detail=f"needs `{format_symbol(symbol)}`{others}, which {table.project} {table.release} "
        "does not export",
        source=f"{path} in {facts.filename}",
    )
    return Demand(package=fact.object, values=frozenset({"another"}), fact=fact)


def without_refuted(demands: Iterable[Demand], loads: dict[Version, Demand | None]) -> list[Demand]:
    """Leave out pairings that the bytes contradict: their own minor lacks symbols that another has."""
    minors = {f"{v.major}.{v.minor}" for v, demand in loads.items() if demand is not None}
    minors -= {f"{v.major}.{v.minor}" for v, demand in loads.items() if demand is None}
    elsewhere = any(demand is None for demand in loads.values())
    return [
        demand
        for demand in demands
        if not (elsewhere and demand.fact.kind is FactKind.PAIRING and demand.values <= minors)
    ]


def path_demands(project: str, facts: WheelFacts, contested: Iterable[str]) -> list[Demand]:
    """Say which bytes of contested paths are this wheel's."""
    wanted = set(contested)
    return [
        Demand(
            package=f"<path {path}>",
            values=frozenset({f"{crc32:08x} {size}"}),
            fact=Fact(
                kind=FactKind.PATH,
                subject=project,
                object=f"<path {path}>",
                detail=f"installs {path}, with bytes of its own",
                source=facts.filename,
            ),
        )
        for path, (crc32, size) in installed_libraries(facts.contents)
        if path in wanted
    ]


def _package(table: ExportTable) -> str:
    return f"<lib{table.project} {table.release}>"
