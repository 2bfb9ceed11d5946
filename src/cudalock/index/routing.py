"""Which index serves a project, and which addresses to ask for it: pure, no network.

Each project comes from one index: the one whose definition names it, else the default index. What
the person said comes first: `[tool.uv.sources]`, then indexes they added, then definitions they
asked for by name. A definition for one kind of machine goes before the one for all. A definition's
templates are filled in for the target: ``{cuda}`` stands for each release the policy allows, newest
first; ``{version}`` and ``{partner}`` stand for releases that a listing shows, which the caller
fills in (`FolderRequest.at_version`, `FolderRequest.at_partner`).

Asking is left to `source.py`: a `Route` says where to ask and, in ``otherwise``, where the project
comes from when every folder asked answers "absent".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import quote, urlsplit, urlunsplit

from cudalock.cuda import CudaVersion
from cudalock.errors import UsageError
from cudalock.index.address import shown_url
from cudalock.index.definitions import Definition
from cudalock.index.find_links import DIRECT_INDEX, FIND_LINKS_INDEX
from cudalock.index.routes import (
    ABSENT_STATUSES,
    DEFAULT_INDEX,
    AddedIndex,
    FolderRequest,
    Route,
    RoutingOptions,
    cuda_folders,
)
from cudalock.index.templates import names_partner
from cudalock.wheel.names import format_quoted

__all__ = ["Router"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_RESERVED = frozenset({DEFAULT_INDEX, DIRECT_INDEX, FIND_LINKS_INDEX})
_FOLDER = re.compile(r"(?:cu[1-9][0-9]{2,3}|cpu)\Z")


class Router:
    """Decides for each project where it is asked for. Immutable once made, so threads may share.

    ``cuda`` is the newest release the set may be built for, None for a CPU target. Raises
    `UsageError` when the options name an index that is not there or give one name two addresses.
    """

    def __init__(
        self,
        *,
        definitions: Sequence[Definition],
        options: RoutingOptions,
        cuda: CudaVersion | None,
        compat: Literal["strict", "minor"] = "strict",
        newest_minor: int | None = None,
        tegra: bool = False,
    ) -> None:
        self._tegra = tegra
        # Definitions the person named bare, which then serve what they build beside their own.
        self._asked_for: dict[str, Definition] = {}
        self._default_url = options.default_url
        self._folders: tuple[str, ...] | None = None
        if cuda is not None:
            releases = cuda_folders(cuda, compat=compat, newest_minor=newest_minor)
            self._folders = tuple(release.label for release in releases)
        # Where the person gave a definition's address, by the definition's name.
        self._addresses: dict[str, list[str]] = {}
        self._added: dict[str, AddedIndex] = {}
        self._sources = dict(options.sources)
        self._published = tuple(definitions)
        # The narrower comes first: it is the source of its projects where it counts at all.
        ordered = sorted(definitions, key=lambda d: d.targets is None)
        self._definitions = {} if options.only_default else {d.name: d for d in ordered}
        for added in options.added:
            self._add(added)
        known = {*(d.name for d in definitions), *self._added, DEFAULT_INDEX}
        for name in sorted(options.excluded):
            _check_known(name, known - {DEFAULT_INDEX}, where=f"--exclude-index {name}")
            self._definitions.pop(name, None)
            self._added.pop(name, None)
            self._asked_for.pop(name, None)
        for project, index in sorted(self._sources.items()):
            _check_known(index, known, where=f"tool.uv.sources.{project}")

    def _add(self, added: AddedIndex) -> None:
        name = added.name
        if not added.url:
            self._ask_for(str(name))
            return
        publisher = next((d for d in self._published if _lies_under(added.url, d)), None)
        if names_partner(added.url) and (publisher is None or publisher.partner is None):
            raise UsageError(
                "expected {partner} only below the address of a publisher that has one",
                where=f"--index {shown_url(added.url)}",
            )
        if name is None:
            name = self._name_for(added.url)
        elif name in _RESERVED:
            raise UsageError(
                f"expected another name: `{name}` means something of its own",
                where=f"--index {name}={shown_url(added.url)}",
                flag="--default-index URL" if name == DEFAULT_INDEX else None,
            )
        elif not _NAME.match(name):
            raise UsageError(
                "expected an index name of letters, digits, `.`, `_` and `-`",
                where=f"--index {shown_url(name)}={shown_url(added.url)}",
            )
        elif name in self._added or name in self._addresses:
            raise UsageError(
                f"expected one address for index `{name}`, found two",
                where=f"--index {name}={shown_url(added.url)}",
            )
        # An explicit index serves what a source names and nothing else, so that a definition of the
        # same name keeps its own address for its other projects.
        if name in self._definitions and not added.explicit:
            self._addresses.setdefault(name, []).append(added.url)
        else:
            self._added[name] = replace(added, name=name)

    def _ask_for(self, name: str) -> None:
        """Take a definition the person named bare; what two of them serve has no one source."""
        where = f"--index {name}"
        _check_known(name, set(self._definitions), where=where)
        definition = self._definitions[name]
        for other in self._asked_for.values():
            both = sorted(definition.serves & other.serves)
            if both and other.name != name:
                raise UsageError(
                    f"expected one index for {both[0]}, found `{other.name}` and `{name}`:"
                    " say which in [tool.uv.sources]",
                    where=where,
                )
        self._asked_for[name] = definition

    def _name_for(self, url: str) -> str:
        """Name an address given without a name: a known publisher's, else its host."""
        for definition in self._definitions.values():
            if _lies_under(url, definition):
                return definition.name
        host = urlsplit(url).hostname or "index"
        name, number = host, 2
        while name in {*self._added, *self._definitions, *_RESERVED}:
            name, number = f"{host}-{number}", number + 1
        return name

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions in force, in the order they are asked."""
        return tuple(self._definitions.values())

    def route(self, project: str, *, nightly: bool) -> Route:
        """Return where ``project`` (normalised) is asked for, and in ``otherwise`` where next."""
        named = self._sources.get(project)
        if named == DEFAULT_INDEX:
            return self.default_route(project, reason=f"tool.uv.sources names it for {project}")
        if named is not None and (named in self._added or named in self._definitions):
            return self._sourced(project, named, nightly=nightly)
        route = self.default_route(project)
        for definition in reversed(self.sources_of(project, nightly=nightly)):
            folders = self.folders_of(definition, project, nightly=nightly)
            if folders:
                route = Route(
                    project=project,
                    index=definition.name,
                    folders=folders,
                    reason=f"{definition.name} is the source of {project}",
                    otherwise=route,
                    recordable=definition.name not in self._addresses,
                    partner=definition.partner,
                )
        for name, added in reversed(self._added.items()):
            if not added.explicit:
                route = Route(
                    project=project,
                    index=name,
                    folders=self._added_folders(added, project),
                    reason=f"index {name} was added and is asked first",
                    otherwise=route,
                    partner=self._manners(added).partner,
                )
        return route

    def default_route(self, project: str, *, reason: str = "no other index is its source") -> Route:
        """Return the route to the default index."""
        return Route(
            project=project,
            index=DEFAULT_INDEX,
            folders=(_request(self._default_url, project),),
            reason=reason,
        )

    def sources_of(self, project: str, *, nightly: bool) -> tuple[Definition, ...]:
        """Return the definitions that are the source of ``project``, the one to ask first first.

        One the person asked for by name goes before its owner, and one for this kind of machine
        before the one for all. A project of ``nightly_projects`` is the definition's only while
        its nightly templates are open; else it comes from the default index.
        """
        named = [d for d in self._asked_for.values() if project in d.serves]
        owners = [
            definition
            for definition in self._definitions.values()
            if (definition.targets is None or self._tegra)
            and (
                project in definition.projects
                or (nightly and project in definition.nightly_projects)
            )
        ]
        return (*named, *(owner for owner in owners if owner not in named))

    def folders_of(
        self, definition: Definition, project: str, *, nightly: bool
    ) -> tuple[FolderRequest, ...]:
        """Return every page of ``definition`` to ask for ``project``; addresses are distinct."""
        given = self._addresses.get(definition.name)
        wanted: list[tuple[str, bool]] = []
        if given is not None:
            return self._filled(definition, [(template, False) for template in given], project)
        stable = project in definition.projects | definition.serves
        if stable:
            wanted = [(template, False) for template in definition.stable]
        if nightly:
            wanted += [(template, True) for template in definition.nightly]
        found = self._filled(definition, wanted, project)
        if not stable:
            return found
        known = {folder.url for folder in found}
        pinned = self._filled(definition, [(text, False) for text in definition.pinned], project)
        return (*found, *(replace(f, pinned=True) for f in pinned if f.url not in known))

    def _sourced(self, project: str, index: str, *, nightly: bool) -> Route:
        reason = f"tool.uv.sources names {index} for {project}"
        if index in self._added:
            added = self._added[index]
            return Route(
                project=project,
                index=index,
                folders=self._added_folders(added, project),
                reason=reason,
                partner=self._manners(added).partner,
            )
        definition = self._definitions[index]
        # The source's word makes the definition responsible, whatever its own list says.
        widened = replace(definition, projects=frozenset({*definition.projects, project}))
        return Route(
            project=project,
            index=index,
            folders=self.folders_of(widened, project, nightly=nightly),
            reason=reason,
            recordable=index not in self._addresses,
            partner=definition.partner,
        )

    def _added_folders(self, added: AddedIndex, project: str) -> tuple[FolderRequest, ...]:
        return self._filled(self._manners(added), [(added.url, False)], project)

    def _manners(self, added: AddedIndex) -> Definition:
        """Return how an added index is asked: a known publisher's address keeps its manners."""
        publisher = next((d for d in self._published if _lies_under(added.url, d)), None)
        return publisher or Definition(name=str(added.name), stable=(added.url,), cpu="cpu")

    def _filled(
        self, definition: Definition, templates: Iterable[tuple[str, bool]], project: str
    ) -> tuple[FolderRequest, ...]:
        found: dict[str, FolderRequest] = {}
        for template, nightly in templates:
            for address, folder in self._with_folder(definition, template):
                request = _request(
                    address,
                    project,
                    folder=folder,
                    absent=definition.absent | ABSENT_STATUSES,
                    nightly=nightly,
                    flat=definition.dialect == "flat",
                )
                found.setdefault(request.url, request)
        return tuple(found.values())

    def _with_folder(self, definition: Definition, template: str) -> list[tuple[str, str | None]]:
        if "{cuda}" not in template:
            last = urlsplit(template).path.rstrip("/").rpartition("/")[2]
            return [(template, last if _FOLDER.match(last) else None)]
        if self._folders is None:
            folders: tuple[str, ...] = (definition.cpu,) if definition.cpu else ()
        else:
            folders = self._folders
        return [(template.replace("{cuda}", folder), folder) for folder in folders]


def _lies_under(url: str, definition: Definition) -> bool:
    """Whether ``url`` is an address of the publisher: below the fixed part of a template."""
    for template in definition.templates:
        before, brace, _ = template.partition("{")
        fixed = before.rpartition("/")[0] if brace else before.rstrip("/")
        if f"{url.rstrip('/')}/".startswith(f"{fixed}/"):
            return True
    return False


def _check_known(name: str, known: set[str], *, where: str) -> None:
    if name not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"expected the name of an index ({listed}), found {format_quoted(name)}", where=where
        )


def _request(
    address: str,
    project: str,
    *,
    folder: str | None = None,
    absent: frozenset[int] = ABSENT_STATUSES,
    nightly: bool = False,
    flat: bool = False,
) -> FolderRequest:
    """Return the request for a project's page under an index address.

    Simple repository API (PEP 503): a project's page lies at its normalised name, with a slash at
    the end. A flat page is the address itself and lists every project of its publisher.
    """
    url = address
    if not flat:
        parts = urlsplit(address)
        url = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{quote(project)}/"))
    return FolderRequest(
        url=url,
        index_url=shown_url(address),
        folder=folder,
        absent=absent,
        nightly=nightly,
        flat=flat,
    )
