"""``pyproject.toml``: what a project asks for, and the targets it names.

Specifications: pyproject.toml (``[project]``, PEP 621), dependency groups (PEP 735), and
cudalock's own ``[tool.cudalock]``. ``[tool.uv]`` is read by `uv_settings`. Unknown keys are faults
in our own table only; other tables belong to other tools.

Reading is pure: text in, value out, every fault of the file in one error.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from cudalock.errors import UsageError
from cudalock.host.options import OPTION_KEYS, NamedTarget, TargetOptions, option_faults
from cudalock.project.faults import Faults, join, kind
from cudalock.project.requirement import RequestedRequirement, near_name
from cudalock.project.uv_settings import UvSettings, parse_uv_settings
from cudalock.wheel.published import AsOf

__all__ = [
    "ProjectFile",
    "RequirementGroup",
    "parse_pyproject",
    "project_requirements",
    "read_script_tables",
    "read_toml",
    "select_target",
]

_LARGEST_FILE = 4 << 20
_CUDALOCK_KEYS = (
    "as-of",
    "default-target",
    "recorded",
    "nightly",
    "targets",
    "variants",
    "verify-sm",
)
_LISTS = frozenset({"sm", "gpu"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementGroup:
    """The requirements of one extra, one dependency group or one target, by normalised name."""

    name: str
    requirements: tuple[RequestedRequirement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """A project as its file describes it; extras and groups have their includes filled in.

    ``dynamic`` names the fields of ``[project]`` that only a build would tell.
    """

    where: str
    name: str | None = None
    requires_python: SpecifierSet | None = None
    dynamic: tuple[str, ...] = ()
    dependencies: tuple[RequestedRequirement, ...] = ()
    extras: tuple[RequirementGroup, ...] = ()
    groups: tuple[RequirementGroup, ...] = ()
    targets: tuple[NamedTarget, ...] = ()
    target_requirements: tuple[RequirementGroup, ...] = ()
    default_target: str | None = None
    recorded: bool = False
    variants: bool = False
    verify_sm: str | None = None
    nightly: tuple[str, ...] = ()
    as_of: AsOf | None = None
    uv: UvSettings = field(default_factory=UvSettings)


def parse_pyproject(text: str, *, where: str) -> ProjectFile:
    """Read the text of a ``pyproject.toml`` named ``where``.

    Raises:
        UsageError: the text is not TOML.
        ProjectFileError: it is, and says something that cannot be; all of its faults at once.

    """
    document = read_toml(text, where=where)
    faults = Faults(where)
    result = _Reader(faults, "project").read(document, faults.table(document, "project", ""))
    faults.finish()
    return result


def read_script_tables(document: Mapping[str, object], *, where: str) -> ProjectFile:
    """Read the metadata of a script: the keys of ``[project]`` it may have stand at the top.

    Raises:
        ProjectFileError: it says something that cannot be; all of its faults at once.

    """
    faults = Faults(where)
    faults.known_keys(document, ("dependencies", "requires-python", "tool"), "")
    project = {key: document[key] for key in document if key != "tool"}
    result = _Reader(faults, "").read({"tool": document.get("tool", {})}, project)
    faults.finish()
    return result


def read_toml(text: str, *, where: str) -> Mapping[str, object]:
    """Read TOML text, turning whatever ``tomllib`` raises into a `UsageError`."""
    if len(text) > _LARGEST_FILE:
        message = f"expected at most {_LARGEST_FILE} characters, found {len(text)}"
        raise UsageError(message, where=where)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"expected TOML: {error}", where=where) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits is a bare ``ValueError``, deep nesting a RecursionError.
        reason = "nested too deep" if isinstance(error, RecursionError) else "a number is too long"
        raise UsageError(f"expected TOML that can be read: {reason}", where=where) from error


def select_target(project: ProjectFile, name: str | None) -> NamedTarget | None:
    """Choose the named target: the one asked for, the default one, the only one, or none.

    Raises:
        UsageError: the name is unknown, or several targets exist and none is the default.

    """
    wanted = name or project.default_target
    if wanted is None:
        if len(project.targets) > 1:
            names = ", ".join(f"`{target.name}`" for target in project.targets)
            raise UsageError(
                f"expected one target, found {names}; name one, or set `default-target`",
                where=f"{project.where}: tool.cudalock.targets",
                flag="--target",
            )
        return project.targets[0] if project.targets else None
    for target in project.targets:
        if target.name == wanted:
            return target
    known_names = [target.name for target in project.targets]
    known = (
        f"the targets are {', '.join(known_names)}" if known_names else "no target is defined there"
    )
    raise UsageError(
        f"unknown target `{wanted[:80]}`{near_name(wanted, known_names)}; {known}",
        where=f"{project.where}: tool.cudalock.targets",
        flag="--target",
    )


def project_requirements(
    project: ProjectFile,
    *,
    extras: tuple[str, ...] = (),
    groups: tuple[str, ...] = (),
    target: str | None = None,
) -> tuple[RequestedRequirement, ...]:
    """List what the project asks for: its dependencies, then extras, groups and the target's.

    Raises:
        UsageError: an extra or group is unknown, or the dependencies are known only to a build.

    """
    for field_name in ("dependencies", "optional-dependencies"):
        if field_name in project.dynamic and (field_name == "dependencies" or extras):
            raise UsageError(
                f"expected `{field_name}` in the file, found it in `dynamic`: only a build tells",
                where=f"{project.where}: project.dynamic",
            )
    found = list(project.dependencies)
    for name in extras:
        found += _group(project.extras, name, "extra", project.where)
    for name in groups:
        found += _group(project.groups, name, "group", project.where)
    for group in project.target_requirements:
        found += group.requirements if group.name == target else ()
    for requested in found:
        if _is_own(requested.requirement, project.name):
            raise UsageError(
                f"expected requirements on other projects, found `{requested.requirement}`; "
                "an extra can include others of its own project only without a marker",
                where=requested.where,
            )
    return tuple(found)


def _group(
    known: tuple[RequirementGroup, ...], name: str, what: str, where: str
) -> tuple[RequestedRequirement, ...]:
    wanted = canonicalize_name(name)
    for group in known:
        if group.name == wanted:
            return group.requirements
    names = [group.name for group in known]
    listed = f"; known are {', '.join(names)}" if names else "; there is none"
    message = f"unknown {what} `{name[:80]}`{near_name(wanted, names)}{listed}"
    raise UsageError(message, where=where, flag=f"--{what}")


class _Reader:
    """Reads the tables of one document into a `ProjectFile`."""

    def __init__(self, faults: Faults, prefix: str) -> None:
        self._faults = faults
        # Where the keys of ``[project]`` stand: below that table, or at the top of a script's.
        self._prefix = prefix

    def read(self, document: Mapping[str, object], project: Mapping[str, object]) -> ProjectFile:
        faults, prefix = self._faults, self._prefix
        tool = faults.table(document, "tool", "")
        name = faults.text(project, "name", prefix)
        own = faults.table(tool, "cudalock", "tool")
        faults.known_keys(own, _CUDALOCK_KEYS, "tool.cudalock")
        targets, target_requirements = self._targets(own)
        default = faults.text(own, "default-target", "tool.cudalock")
        names = [target.name for target in targets]
        if default is not None and default not in names:
            faults.add(
                "tool.cudalock.default-target",
                f"no target is named `{default[:80]}`{near_name(default, names)}",
            )
        return ProjectFile(
            where=faults.where,
            name=None if name is None else canonicalize_name(name),
            requires_python=self._requires_python(project),
            dynamic=faults.texts(project, "dynamic", prefix),
            dependencies=faults.requirements(project, "dependencies", prefix),
            extras=self._extras(project, name),
            groups=self._groups(document),
            targets=targets,
            target_requirements=target_requirements,
            default_target=default,
            recorded=faults.flag(own, "recorded", "tool.cudalock"),
            variants=faults.flag(own, "variants", "tool.cudalock"),
            nightly=tuple(
                canonicalize_name(item) for item in faults.texts(own, "nightly", "tool.cudalock")
            ),
            as_of=faults.as_of(own, "as-of", "tool.cudalock"),
            verify_sm=faults.text(own, "verify-sm", "tool.cudalock"),
            uv=parse_uv_settings(tool, faults),
        )

    def _requires_python(self, project: Mapping[str, object]) -> SpecifierSet | None:
        text = self._faults.text(project, "requires-python", self._prefix)
        if text is None:
            return None
        try:
            return SpecifierSet(text)
        except (ValueError, RecursionError):
            key = join(self._prefix, "requires-python")
            self._faults.add(key, f"expected version specifiers, found `{text[:80]}`")
            return None

    def _targets(
        self, own: Mapping[str, object]
    ) -> tuple[tuple[NamedTarget, ...], tuple[RequirementGroup, ...]]:
        prefix = "tool.cudalock.targets"
        targets: list[NamedTarget] = []
        requirements: list[RequirementGroup] = []
        for name, value in self._faults.table(own, "targets", "tool.cudalock").items():
            key = join(prefix, name)
            if not isinstance(value, dict):
                self._faults.add(key, f"expected a table, found {kind(value)}")
                continue
            # The name becomes part of a file name, `pylock.NAME.toml`, which has no more dots.
            if not (name.replace("-", "").replace("_", "").isalnum() and name.isascii()):
                self._faults.add(key, "expected a name of letters, digits, `-` and `_`")
            self._faults.known_keys(value, (*OPTION_KEYS, "cpu", "requirements"), key)
            targets.append(NamedTarget(name=name, where=key, options=self._options(value, key)))
            group = self._faults.requirements(value, "requirements", key)
            requirements.append(RequirementGroup(name=name, requirements=group))
        return tuple(targets), tuple(requirements)

    def _options(self, table: Mapping[str, object], key: str) -> TargetOptions:
        values: dict[str, str | tuple[str, ...] | None] = {}
        for name in OPTION_KEYS:
            field_name = name.replace("-", "_")
            value = table.get(name)
            if name not in _LISTS:
                values[field_name] = self._faults.text(table, name, key)
            elif isinstance(value, list):
                values[field_name] = self._faults.texts(table, name, key)
            else:
                one = self._faults.text(table, name, key)
                values[field_name] = () if one is None else (one,)
        cpu = self._faults.flag(table, "cpu", key)
        options = TargetOptions(cpu=cpu, **values)  # type: ignore[arg-type]  # one kind of value a name, as OPTION_KEYS says.
        for name, message in option_faults(options):
            self._faults.add(join(key, name), message)
        return options

    def _extras(
        self, project: Mapping[str, object], own_name: str | None
    ) -> tuple[RequirementGroup, ...]:
        """Read ``[project.optional-dependencies]``; ``NAME[extra]`` of the project itself is filled in."""
        key = "project.optional-dependencies"
        table = self._faults.table(project, "optional-dependencies", "project")
        entries: dict[str, list[RequestedRequirement | str]] = {}
        for name in table:
            own: list[RequestedRequirement | str] = []
            for requested in self._faults.requirements(table, name, key):
                asked = requested.requirement
                if _is_own(asked, own_name) and asked.marker is None:
                    own += sorted(canonicalize_name(extra) for extra in asked.extras)
                else:
                    own.append(requested)
            self._enter(entries, name, own, key)
        return self._expand(entries, key)

    def _groups(self, document: Mapping[str, object]) -> tuple[RequirementGroup, ...]:
        """Read ``[dependency-groups]``: strings, and tables with the one key ``include-group``."""
        prefix = "dependency-groups"
        table = self._faults.table(document, prefix, "")
        entries: dict[str, list[RequestedRequirement | str]] = {}
        for name in table:
            own: list[RequestedRequirement | str] = []
            for number, item in enumerate(self._faults.items(table, name, prefix)):
                key = f"{join(prefix, name)}[{number}]"
                if isinstance(item, dict):
                    self._faults.known_keys(item, ("include-group",), key)
                    included = self._faults.text(item, "include-group", key)
                    own += [] if included is None else [canonicalize_name(included)]
                else:
                    requested = self._faults.requirement(item, key)
                    own += [] if requested is None else [requested]
            self._enter(entries, name, own, prefix)
        return self._expand(entries, prefix)

    def _enter(
        self,
        entries: dict[str, list[RequestedRequirement | str]],
        name: str,
        own: list[RequestedRequirement | str],
        prefix: str,
    ) -> None:
        normal = canonicalize_name(name)
        if normal in entries:
            self._faults.add(join(prefix, name), f"`{normal}` is defined twice")
        entries[normal] = own

    def _expand(
        self, entries: dict[str, list[RequestedRequirement | str]], prefix: str
    ) -> tuple[RequirementGroup, ...]:
        """Fill in the includes of every group.

        PEP 735: "Tools SHOULD error when evaluating … cycles". Each group is entered once a walk,
        so that includes which double at each level cost linear time; the ready-made resolver in
        ``packaging`` lists such a group's requirements exponentially often.
        """
        return tuple(
            RequirementGroup(name=name, requirements=self._walk(name, entries, prefix))
            for name in entries
        )

    def _walk(
        self, start: str, entries: dict[str, list[RequestedRequirement | str]], prefix: str
    ) -> tuple[RequestedRequirement, ...]:
        found: list[RequestedRequirement] = []
        entered = {start}
        # The open groups, outermost first, each with what is left of it to read.
        open_groups = [(start, iter(entries[start]))]
        open_names = {start}
        while open_groups:
            group, rest = open_groups[-1]
            item = next(rest, None)
            if item is None:
                open_groups.pop()
                open_names.discard(group)
            elif not isinstance(item, str):
                found.append(item)
            elif item not in entries:
                if group == start:
                    near = near_name(item, entries)
                    self._faults.add(join(prefix, group), f"includes unknown `{item[:80]}`{near}")
            elif item in open_names:
                # A cycle that does not lead back here is told where it begins.
                if item == start:
                    path = " -> ".join([*(name for name, _ in open_groups), item])
                    self._faults.add(join(prefix, start), f"includes itself: {path}")
            elif item not in entered:
                entered.add(item)
                open_names.add(item)
                open_groups.append((item, iter(entries[item])))
        return tuple(found)


def _is_own(requirement: Requirement, own_name: str | None) -> bool:
    """Whether a requirement of a project is on that project: a way to write "my other extras"."""
    return own_name is not None and canonicalize_name(requirement.name) == canonicalize_name(
        own_name
    )
