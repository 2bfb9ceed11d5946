"""What a command line asks for, gathered: requirements, target, indices and the lock's place.

The environment and the files of the project are read here and nowhere else. Precedence: flags,
then ``CUDALOCK_*``, then the project's files, then what is detected.
"""

import re
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cudalock.cli.input_files import check_conflicts, with_files
from cudalock.cli.policies import chosen_as_of, chosen_verify_sm
from cudalock.errors import UsageError, WheelError
from cudalock.host import (
    NamedTarget,
    Target,
    TargetOptions,
    detect,
    detect_interpreter,
    make_target,
    marker_environment,
    needs_detection,
)
from cudalock.lock.names import check_lock_file_name, lock_file_name
from cudalock.project import (
    IndexUrl,
    ProjectFile,
    RequestedRequirement,
    RequirementsFile,
    UvSource,
    parse_pyproject,
    parse_requirement,
    parse_script,
    project_requirements,
    read_requirements,
    select_target,
)
from cudalock.resolver.request import Request, Requested
from cudalock.wheel.names import parse_project_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cudalock.session import IndexOptions

__all__ = [
    "Inputs",
    "gather",
    "make_request",
    "read_asked",
    "read_project",
]

_PROJECT_FILE = "pyproject.toml"
_FILE_LIMIT = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything `resolve` needs. ``default_index`` is None until uv was asked for it."""

    request: Request
    target: Target
    indices: "IndexOptions"
    default_index: IndexUrl | None
    lock_path: Path
    folder: Path
    default_target: str | None = None
    warnings: tuple[str, ...] = ()


def gather(args: Namespace, environ: Mapping[str, str]) -> Inputs:
    """Gather a `resolve` command line's inputs; raise `UsageError` for any that cannot be read."""
    folder = Path(args.project) if args.project else Path()
    project = read_project(folder, needed=args.project is not None)
    project = with_files(project, folder, args.requirements_files, _read_text)
    named = select_target(project, args.target) if project is not None else None
    if named is None and args.target is not None:
        raise UsageError(
            f"expected a target of [tool.cudalock.targets], found no {_PROJECT_FILE} with `{args.target}`",
            where=str(folder / _PROJECT_FILE),
            flag="--target",
        )
    target = _target(args, environ, named)
    check_conflicts(project, args.extra, args.group)
    if not args.requirements or args.requirements_files:
        _check_python(project, target)
    asked = listed, files = read_asked(args, environ, project, named, folder)
    request, sources = make_request(args, environ, project, target, asked=asked)
    # `check` reads requirements as `resolve` does, and asks no index.
    from cudalock.cli.index_options import (  # noqa: PLC0415 - see above
        given_default,
        index_options,
    )

    return Inputs(
        request=request,
        target=target,
        indices=index_options(args, environ, project, files, sources),
        default_index=given_default(args, files),
        lock_path=_lock_path(args, folder / lock_file_name(target.name)),
        folder=folder,
        default_target=project.default_target if project is not None else None,
        warnings=(
            *(str(warning) for warning in target.warnings),
            *(warning for file in files for warning in file.warnings),
            *(project.uv.unread if project is not None else ()),
            *_switched_off(project, target, listed),
        ),
    )


def make_request(
    args: Namespace,
    environ: Mapping[str, str],
    project: ProjectFile | None,
    target: Target,
    *,
    asked: tuple[list[RequestedRequirement], list[RequirementsFile]],
) -> tuple[Request, dict[str, str]]:
    """Make the request of requirements that were read, and name the index of projects that have one."""
    listed, files = asked
    sources, links = _uv_sources(args, project, target, listed)
    constraints = [entry for file in files for entry in file.constraints]
    constraints += _read_all(args.constraints_files, environ, constraint=True)
    overrides = _read_all(args.override_files, environ, constraint=False)
    if project is not None:
        constraints += project.uv.constraints
        overrides += project.uv.overrides
    request = Request(
        requirements=_requested(links.get(id(entry), entry) for entry in listed),
        constraints=_requested(constraints),
        overrides=_requested(overrides),
        prereleases=_prereleases(args, project),
        as_of=chosen_as_of(args, environ, project),
        variants=args.variants or (project is not None and project.variants),
        verify_sm=chosen_verify_sm(args, environ, project),
    )
    return request, sources


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read it: {error.strerror}", where=str(path)) from error
    if len(data) > _FILE_LIMIT:
        found = f"expected at most {_FILE_LIMIT} bytes, found {len(data)}"
        raise UsageError(found, where=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"expected UTF-8, found another byte at offset {error.start}"
        raise UsageError(message, where=str(path)) from error


def read_project(folder: Path, *, needed: bool) -> ProjectFile | None:
    """Read the pyproject.toml of a folder; None where there is none and it is not ``needed``."""
    path = folder / _PROJECT_FILE
    if not path.is_file():
        if needed:
            raise UsageError(f"expected a {_PROJECT_FILE}, found none", where=str(path))
        return None
    return parse_pyproject(_read_text(path), where=str(path))


def _target(args: Namespace, environ: Mapping[str, str], named: NamedTarget | None) -> Target:
    options = TargetOptions(
        python=args.python,
        platform=args.platform,
        driver=args.driver,
        driver_cuda=args.driver_cuda,
        cuda=args.cuda,
        cuda_compat=args.cuda_compat,
        sm=tuple(args.sm),
        gpu=tuple(args.gpu),
        cpu=args.cpu,
    )
    wanted = needs_detection(options, named=named, environ=environ)
    return make_target(
        options,
        named=named,
        detected=detect(environ) if wanted else None,
        interpreter=detect_interpreter(),
        environ=environ,
    )


def _check_python(project: ProjectFile | None, target: Target) -> None:
    """Refuse a target whose Python the project itself rules out."""
    if project is None or project.requires_python is None:
        return
    python = marker_environment(target)["python_full_version"]
    if not project.requires_python.contains(python, prereleases=True):
        raise UsageError(
            f"expected a Python within `{project.requires_python}`, found {target.python} "
            f"({target.origin('python')})",
            where=f"{project.where}: project.requires-python",
            flag="--python",
        )


def read_asked(
    args: Namespace,
    environ: Mapping[str, str],
    project: ProjectFile | None,
    named: NamedTarget | None,
    folder: Path,
) -> tuple[list[RequestedRequirement], list[RequirementsFile]]:
    """Return the requirements in the order they were given, and the files that hold them."""
    listed = [parse_requirement(text, where="command line") for text in args.requirements]
    files: list[RequirementsFile] = []
    for name in args.requirements_files:
        path = Path(name)
        if path.name == _PROJECT_FILE:
            other = parse_pyproject(_read_text(path), where=name)
            listed += project_requirements(
                other, extras=tuple(args.extra), groups=tuple(args.group)
            )
        elif path.suffix == ".py":
            script = parse_script(_read_text(path), where=name)
            if script is None:
                raise UsageError(
                    "expected inline script metadata (PEP 723), found none", where=name
                )
            listed += script.dependencies
        else:
            files.append(read_requirements(path, environ=environ))
            listed += files[-1].requirements
    if not args.requirements and not args.requirements_files:
        if project is None:
            raise UsageError(
                f"expected a requirement, `-r FILE` or a {_PROJECT_FILE}, found none of them",
                where=str(folder.absolute()),
            )
        listed += project_requirements(
            project,
            extras=tuple(args.extra),
            groups=tuple(args.group),
            target=named.name if named is not None else None,
        )
    if not listed:
        raise UsageError("expected a requirement, found none", where=str(folder / _PROJECT_FILE))
    return listed, files


def _read_all(
    names: Sequence[str], environ: Mapping[str, str], *, constraint: bool
) -> list[RequestedRequirement]:
    found: list[RequestedRequirement] = []
    for name in names:
        file = read_requirements(Path(name), constraint=constraint, environ=environ)
        found += file.constraints if constraint else file.requirements
    return found


def _requested(entries: Iterable[RequestedRequirement]) -> tuple[Requested, ...]:
    found = []
    for entry in entries:
        hashes = tuple(h.removeprefix("sha256:") for h in entry.hashes if h.startswith("sha256:"))
        found.append(
            Requested(requirement=entry.requirement, where=entry.where, sha256=frozenset(hashes))
        )
    return tuple(found)


def _prereleases(args: Namespace, project: ProjectFile | None) -> frozenset[str]:
    names = [*args.prerelease, *(project.nightly if project is not None else ())]
    try:
        return frozenset(parse_project_name(name) for name in names)
    except WheelError as error:
        raise UsageError(error.message, where="--prerelease") from error


def _lock_path(args: Namespace, usual: Path) -> Path:
    """Return where the lock goes; a name that no installer takes is refused before anything is asked."""
    if args.output in (None, "", "-"):
        return Path(args.output or usual)
    path = Path(args.output)
    check_lock_file_name(path)
    return path


def _uv_sources(
    args: Namespace,
    project: ProjectFile | None,
    target: Target,
    listed: list[RequestedRequirement],
) -> tuple[dict[str, str], dict[int, RequestedRequirement]]:
    """Return the index of each project that `[tool.uv.sources]` names one for, and URL sources."""
    sources: dict[str, str] = {}
    links: dict[int, RequestedRequirement] = {}
    if project is None:
        return sources, links
    environment = marker_environment(target)
    for source in project.uv.sources:
        if not _applies(source, environment):
            continue
        # "Dependency sources": an entry with `extra` or `group` counts only where that is asked for.
        if not (_asked(source.extra, args.extra) and _asked(source.group, args.group)):
            continue
        if source.kind == "index":
            sources.setdefault(source.project, source.value)
            continue
        for entry in listed:
            if canonicalize_name(entry.requirement.name) == source.project:
                links[id(entry)] = _linked(entry, source)
    return sources, links


def _asked(name: str | None, given: Iterable[str]) -> bool:
    """Whether an extra or a group is among those given; an entry that names none always counts."""
    return name is None or canonicalize_name(name) in {canonicalize_name(text) for text in given}


def _applies(source: UvSource, environment: Mapping[str, str]) -> bool:
    return source.marker is None or source.marker.evaluate({**environment, "extra": ""})


def _switched_off(
    project: ProjectFile | None, target: Target, listed: list[RequestedRequirement]
) -> Iterator[str]:
    """Say of what is asked for that no source its project names for it counts on this target."""
    environment = marker_environment(target)
    sources: dict[str, list[UvSource]] = {}
    for source in project.uv.sources if project is not None else ():
        sources.setdefault(source.project, []).append(source)
    asked = {canonicalize_name(entry.requirement.name) for entry in listed}
    for name in sorted(asked & set(sources)):
        if any(_applies(source, environment) for source in sources[name]):
            continue
        for source in sources[name]:
            marker = str(source.marker)
            here = " and ".join(
                f"{variable} is `{value}`"
                for variable, value in environment.items()
                if re.search(rf"\b{variable}\b", marker)
            )
            yield (
                f"{source.where}: the {source.kind} `{source.value}` is switched off for {name} by "
                f"its marker `{marker}`" + (f" (here {here})" if here else "")
            )


def _linked(entry: RequestedRequirement, source: UvSource) -> RequestedRequirement:
    """Give a requirement the address its source names; only a wheel's address can be locked."""
    address = source.value
    if source.kind == "path" and source.value.endswith(".whl"):
        place = source.where.partition(": tool.uv")[0].partition(", script")[0]
        address = (Path(place).parent / source.value).resolve().as_uri()
    elif source.kind != "url":
        raise UsageError(
            f"expected {source.project} from an index or a wheel's address, found a "
            f"{source.kind} source: building from source is not supported",
            where=source.where,
        )
    changed = Requirement(str(entry.requirement))
    changed.url, changed.specifier = address, type(changed.specifier)()
    return replace(entry, requirement=changed)
