"""What ``[tool.uv]`` of a project says about where projects come from and what is held back.

Read here: ``sources``, ``index``, ``extra-index-url``, ``find-links``, ``constraint-dependencies``,
``override-dependencies``, ``conflicts`` and ``exclude-newer``, as uv's reference ("Settings",
"Dependency sources") defines them. Everything else in the table is
uv's own business and is not looked at. Which index is the default one is not decided here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from packaging.markers import InvalidMarker, Marker
from packaging.utils import canonicalize_name

from cudalock.errors import UsageError
from cudalock.project.faults import Faults, join, kind
from cudalock.project.index_url import IndexUrl, parse_index_url
from cudalock.project.requirement import RequestedRequirement
from cudalock.wheel.published import AsOf

__all__ = ["UvConflict", "UvIndex", "UvSettings", "UvSource", "parse_uv_settings"]

_SourceKind = Literal["index", "git", "url", "path", "workspace"]
_SOURCE_KINDS: tuple[_SourceKind, ...] = ("index", "git", "url", "path", "workspace")
_LONGEST_MARKER = 4096
# What uv takes for a span: `24 hours`, `1 week`, or ISO 8601's `PT24H`.
_SPAN = re.compile(r"P[0-9A-Z.]{1,40}|[0-9]{1,9} ?[A-Za-z]{1,20}(?: [0-9]{1,9} ?[A-Za-z]{1,20})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class UvIndex:
    """One ``[[tool.uv.index]]``: an ``explicit`` one serves only projects that name it.

    A ``url`` that is text is a folder. ``flat`` says that it is a page of links to files.
    """

    name: str | None
    url: IndexUrl | str
    explicit: bool
    default: bool
    flat: bool
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UvSource:
    """Where ``project`` comes from when ``marker``, ``extra`` and ``group`` apply.

    ``value`` is the index's name, the repository, the address or the path, by ``kind``.
    """

    project: str
    kind: _SourceKind
    value: str
    marker: Marker | None
    extra: str | None
    group: str | None
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UvConflict:
    """Extras and groups of which at most one may be asked for: pairs such as ``("extra", "cpu")``."""

    members: frozenset[tuple[str, str]]
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UvSettings:
    """The part of ``[tool.uv]`` that a lock has to obey, in the order it is written.

    ``unread`` are sentences about what a lock cannot obey, for a warning.
    """

    sources: tuple[UvSource, ...] = ()
    indexes: tuple[UvIndex, ...] = ()
    constraints: tuple[RequestedRequirement, ...] = ()
    overrides: tuple[RequestedRequirement, ...] = ()
    conflicts: tuple[UvConflict, ...] = ()
    find_links: tuple[str, ...] = ()
    exclude_newer: AsOf | None = None
    unread: tuple[str, ...] = ()


def parse_uv_settings(tool: Mapping[str, object], faults: Faults) -> UvSettings:
    """Read ``[tool.uv]`` out of the ``tool`` table, noting faults."""
    uv = faults.table(tool, "uv", "tool")
    prefix = "tool.uv"
    sources = [
        source
        for project, value in faults.table(uv, "sources", prefix).items()
        for source in _sources(project, value, faults)
    ]
    indexes = [
        index
        for number, value in enumerate(faults.items(uv, "index", prefix))
        if (index := _index(value, f"{prefix}.index[{number}]", faults)) is not None
    ]
    for number, text in enumerate(faults.texts(uv, "extra-index-url", prefix)):
        added = _index({"url": text}, f"{prefix}.extra-index-url[{number}]", faults)
        indexes += [] if added is None else [added]
    newer, unread = _exclude_newer(uv, faults)
    names: set[str] = set()
    for index in indexes:
        if index.name is not None and index.name in names:
            faults.add(f"{prefix}.index", f"two indexes are named `{index.name}`")
        names.add(index.name or "")
    if sum(index.default for index in indexes) > 1:
        faults.add(f"{prefix}.index", "more than one index is the default")
    return UvSettings(
        sources=tuple(sources),
        indexes=tuple(indexes),
        constraints=faults.requirements(uv, "constraint-dependencies", prefix),
        overrides=faults.requirements(uv, "override-dependencies", prefix),
        conflicts=tuple(_conflicts(uv, faults)),
        find_links=faults.texts(uv, "find-links", prefix),
        exclude_newer=newer,
        unread=unread,
    )


def _exclude_newer(uv: Mapping[str, object], faults: Faults) -> tuple[AsOf | None, tuple[str, ...]]:
    """Read ``exclude-newer``; a span before now, such as ``7 days``, would lock another set each day."""
    value = uv.get("exclude-newer")
    if isinstance(value, str) and _SPAN.fullmatch(value.strip()):
        sentence = (
            f"{faults.where}: tool.uv.exclude-newer: `{value[:80]}` counts back from now, which no lock "
            "can repeat, so it is not applied; --as-of says a day"
        )
        return None, (sentence,)
    return faults.as_of(uv, "exclude-newer", "tool.uv"), ()


def _conflicts(uv: Mapping[str, object], faults: Faults) -> Iterator[UvConflict]:
    """Read ``conflicts``; an entry of another package of a workspace says nothing here."""
    for number, group in enumerate(faults.items(uv, "conflicts", "tool.uv")):
        key = f"tool.uv.conflicts[{number}]"
        if not isinstance(group, list):
            faults.add(key, f"expected an array of tables, found {kind(group)}")
            continue
        members: set[tuple[str, str]] = set()
        for place, entry in enumerate(group):
            if not isinstance(entry, dict):
                faults.add(f"{key}[{place}]", f"expected a table, found {kind(entry)}")
                continue
            for word in ("extra", "group"):
                name = faults.text(entry, word, f"{key}[{place}]")
                if name is not None:
                    members.add((word, canonicalize_name(name)))
        yield UvConflict(members=frozenset(members), where=f"{faults.where}: {key}")


def _index(value: object, key: str, faults: Faults) -> UvIndex | None:
    if not isinstance(value, dict):
        faults.add(key, f"expected a table, found {kind(value)}")
        return None
    url = faults.text(value, "url", key)
    name = faults.text(value, "name", key)
    explicit = faults.flag(value, "explicit", key)
    default = faults.flag(value, "default", key)
    form = faults.text(value, "format", key)
    if form not in {None, "simple", "flat"}:
        faults.add(f"{key}.format", f"expected `simple` or `flat`, found `{form}`")
    if explicit and name is None:
        faults.add(key, "an explicit index needs a name")
    if url is None:
        if "url" not in value:
            faults.add(key, "expected a `url`")
        return None
    address: IndexUrl | str = url
    if "://" in url and not url.startswith("file:"):
        try:
            address = parse_index_url(url)
        except UsageError as error:
            faults.add(f"{key}.url", error.message)
            return None
    return UvIndex(
        name=name,
        url=address,
        explicit=explicit,
        default=default,
        flat=form == "flat",
        where=f"{faults.where}: {key}",
    )


def _sources(project: str, value: object, faults: Faults) -> list[UvSource]:
    key = join("tool.uv.sources", project)
    if isinstance(value, dict):
        entries: list[tuple[str, object]] = [(key, value)]
    elif isinstance(value, list):
        entries = [(f"{key}[{number}]", item) for number, item in enumerate(value)]
    else:
        faults.add(key, f"expected a table or an array of tables, found {kind(value)}")
        return []
    found = [_source(project, item, place, faults) for place, item in entries]
    return [source for source in found if source is not None]


def _source(project: str, value: object, key: str, faults: Faults) -> UvSource | None:
    if not isinstance(value, dict):
        faults.add(key, f"expected a table, found {kind(value)}")
        return None
    kinds = [name for name in _SOURCE_KINDS if name in value]
    if len(kinds) != 1:
        expected = ", ".join(f"`{name}`" for name in _SOURCE_KINDS)
        faults.add(key, f"expected exactly one of {expected}, found {len(kinds)}")
        return None
    if kinds[0] == "workspace":
        text = "true" if faults.flag(value, "workspace", key) else None
    else:
        text = faults.text(value, kinds[0], key)
    if text is None:
        return None
    return UvSource(
        project=canonicalize_name(project),
        kind=kinds[0],
        value=text,
        marker=_marker(value, key, faults),
        extra=faults.text(value, "extra", key),
        group=faults.text(value, "group", key),
        where=f"{faults.where}: {key}",
    )


def _marker(value: Mapping[str, object], key: str, faults: Faults) -> Marker | None:
    text = faults.text(value, "marker", key)
    if text is None:
        return None
    try:
        if len(text) > _LONGEST_MARKER:
            raise InvalidMarker(f"longer than {_LONGEST_MARKER} characters")
        return Marker(text)
    except (ValueError, RecursionError):
        faults.add(f"{key}.marker", f"expected an environment marker, found `{text[:80]}`")
        return None
