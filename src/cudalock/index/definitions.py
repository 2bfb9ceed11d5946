"""Publisher definitions: `indices/*.toml`, one file a publisher, knowledge and not code.

A definition says where a publisher keeps its wheels, how its pages are written, which answers mean
"absent" and of which projects it is the source. It is one index, whatever its templates: the
candidates of a project are the union over its populated folders. Which CUDA releases a publisher
serves is asked, never listed here. What stands in a template is known to `templates.py`; fetching and
routing belong to other modules of this room.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cudalock.errors import UsageError, WheelError
from cudalock.index.locate import DataFileError, FaultList, parse_toml, read_data_file
from cudalock.index.templates import names_partner, parse_template
from cudalock.wheel.names import format_quoted, parse_project_name

__all__ = [
    "Definition",
    "load_definitions",
    "parse_definition",
    "parse_template",
]

_KEYS = frozenset(
    {"name", "dialect", "absent", "labels", "projects", "nightly-projects", "nightly-days"}
    | {"cpu", "templates", "source", "serves", "partner", "targets"}
)
_TEMPLATES = ("stable", "nightly", "pinned")
_TARGETS = frozenset({"tegra"})
_DIALECTS = frozenset({"simple", "flat"})
_LABELS = frozenset({"local", "project", "folder", "none"})
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?\Z", re.ASCII)
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}\Z", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One publisher.

    ``stable`` and ``nightly`` are URL templates (`templates.py` has the placeholders); ``pinned``
    are those asked only for an exact pin that no other folder serves. ``cpu`` is what stands in
    place of ``{cuda}`` for a target without CUDA (None: such a target is not served).
    ``absent`` holds the HTTP statuses that mean "this publisher does not have it". ``labels`` says
    where the CUDA release of a wheel stands: ``local`` in its local version label, ``project`` in
    the project's name, ``folder`` in the folder only, ``none`` for wheels that carry it nowhere.
    ``projects`` is what the index is the source of, ``nightly_projects`` what it is the source of
    in its nightly templates only, ``serves`` what it builds too and is asked for only where the
    person says so. ``partner`` is the project whose releases stand for ``{partner}``.
    ``targets`` names the only kind of machine it is for (``tegra``), where it comes first.
    ``nightly_days`` is how long a nightly stays before the publisher drops it.
    """

    name: str
    stable: tuple[str, ...]
    nightly: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    cpu: str | None = None
    dialect: str = "simple"
    absent: frozenset[int] = frozenset({404})
    labels: tuple[str, ...] = ("local",)
    projects: frozenset[str] = frozenset()
    nightly_projects: frozenset[str] = frozenset()
    serves: frozenset[str] = frozenset()
    partner: str | None = None
    targets: str | None = None
    nightly_days: int | None = None
    source: str = ""

    @property
    def templates(self) -> tuple[str, ...]:
        """Every template, of whatever kind."""
        return (*self.stable, *self.nightly, *self.pinned)


def parse_definition(text: str, *, where: str) -> Definition:
    """Parse one definition file; raise `DataFileError` with every fault of it."""
    table = parse_toml(text, where=where)
    faults = FaultList(where)
    faults.check_keys(table, _KEYS)
    name = faults.text(table, "name")
    if name and not _NAME.match(name):
        faults.add(
            "name", f"expected lower-case letters, digits and `-`, found {format_quoted(name)}"
        )
    stable, nightly, pinned = _parse_templates(table.get("templates"), faults)
    absent = table.get("absent", [404])
    if not isinstance(absent, list) or not all(
        type(code) is int and 400 <= code < 500 for code in absent
    ):
        faults.add("absent", f"expected HTTP statuses from 400 to 499, found `{absent!r}`")
        absent = []
    days = table.get("nightly-days")
    if days is not None and (type(days) is not int or days <= 0):
        faults.add("nightly-days", f"expected a positive number of days, found `{days!r}`")
    dialect = table.get("dialect", "simple")
    if dialect not in _DIALECTS:
        faults.add(
            "dialect", f"expected one of {', '.join(sorted(_DIALECTS))}, found `{dialect!r}`"
        )
    labels = faults.texts(table, "labels") or ("local",)
    if not _LABELS.issuperset(labels):
        faults.add("labels", f"expected among {', '.join(sorted(_LABELS))}, found `{labels!r}`")
    cpu = table.get("cpu")
    if cpu is not None and not (isinstance(cpu, str) and _FOLDER.match(cpu)):
        faults.add("cpu", f"expected the name of a folder, found `{cpu!r}`")
    definition = Definition(
        name=name,
        stable=stable,
        nightly=nightly,
        pinned=pinned,
        cpu=cpu if isinstance(cpu, str) else None,
        dialect=str(dialect),
        absent=frozenset(code for code in absent if isinstance(code, int)),
        labels=labels,
        projects=_parse_projects(table, "projects", faults),
        nightly_projects=_parse_projects(table, "nightly-projects", faults),
        serves=_parse_projects(table, "serves", faults),
        partner=_parse_partner(table, faults),
        targets=_parse_targets(table, faults),
        nightly_days=days if isinstance(days, int) else None,
        source=faults.text(table, "source"),
    )
    if definition.nightly_projects and not nightly:
        faults.add("nightly-projects", "expected templates.nightly for them, found none")
    _check_whole(definition, faults)
    faults.raise_if_any()
    return definition


def _check_whole(definition: Definition, faults: FaultList) -> None:
    """Note what each key allows and the keys together do not."""
    named = any(names_partner(template) for template in definition.templates)
    if named and definition.partner is None:
        faults.add("partner", "expected the project that {partner} stands for, found nothing")
    if definition.partner is not None and not named:
        faults.add("partner", "expected a template with {partner}, found none")
    own = definition.projects | definition.nightly_projects
    if definition.partner in own:
        faults.add("partner", "expected another project than those the index is the source of")
    both = sorted(definition.projects & definition.serves)
    if both:
        faults.add("serves", f"expected none of `projects`, found `{both[0]}`")


def _parse_partner(table: dict[str, object], faults: FaultList) -> str | None:
    if "partner" not in table:
        return None
    try:
        return parse_project_name(faults.text(table, "partner"))
    except WheelError as error:
        faults.add("partner", error.message)
        return None


def _parse_targets(table: dict[str, object], faults: FaultList) -> str | None:
    found = table.get("targets")
    if found is None or (isinstance(found, str) and found in _TARGETS):
        return found
    faults.add("targets", f"expected one of {', '.join(sorted(_TARGETS))}, found `{found!r}`")
    return None


def _parse_templates(table: object, faults: FaultList) -> tuple[tuple[str, ...], ...]:
    if not isinstance(table, dict):
        faults.add("templates", "expected a table with `stable`, `nightly` or `pinned`")
        return ((),) * len(_TEMPLATES)
    faults.check_keys(table, _TEMPLATES, "templates.")
    found: list[tuple[str, ...]] = []
    for name in _TEMPLATES:
        templates = []
        for text in faults.texts(table, name, "templates."):
            try:
                templates.append(parse_template(text, where=faults.where))
            except UsageError as error:
                faults.add(f"templates.{name}", error.message)
        found.append(tuple(templates))
    if not table.get("stable") and not table.get("nightly"):
        faults.add("templates.stable", "expected at least one URL template, found nothing")
    return tuple(found)


def _parse_projects(table: dict[str, object], name: str, faults: FaultList) -> frozenset[str]:
    projects = set()
    for text in faults.texts(table, name):
        try:
            projects.add(parse_project_name(text))
        except WheelError as error:
            faults.add(name, error.message)
    return frozenset(projects)


def load_definitions(directory: Path) -> tuple[Definition, ...]:
    """Read every ``*.toml`` of a folder, by file name; raise one error with all faults of all."""
    found: list[Definition] = []
    faults: list[str] = []
    owners: dict[tuple[str, str | None], str] = {}
    for path in sorted(directory.glob("*.toml")):
        try:
            text = read_data_file(path).decode("utf-8")
            definition = parse_definition(text, where=path.name)
        except UnicodeDecodeError:
            faults.append(f"{path.name}: expected UTF-8")
            continue
        except DataFileError as error:
            faults += [f"{path.name}: {fault}" for fault in error.faults]
            continue
        for taken in [other for other in found if other.name == definition.name]:
            faults.append(f"{path.name}: name: `{taken.name}` is the name of another definition")
        # A project comes from one index; two sources would make the answer depend on file order.
        # An index for one kind of machine only goes before the one for all.
        for project in sorted(definition.projects):
            owner = owners.setdefault((project, definition.targets), definition.name)
            if owner != definition.name:
                faults.append(f"{path.name}: projects: `{project}` is already named by `{owner}`")
        found.append(definition)
    faults += _circles(found)
    if faults:
        raise DataFileError(faults, where=str(directory))
    return tuple(found)


def _circles(definitions: Sequence[Definition]) -> list[str]:
    """Say which partner comes from an index that needs a partner itself, which could go round."""
    return [
        f"{one.name}: partner: `{one.partner}` comes from `{other.name}`, which has a partner itself"
        for one in definitions
        for other in definitions
        if other.partner is not None and one.partner in other.projects | other.nightly_projects
    ]
