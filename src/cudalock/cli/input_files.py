"""What the files of a command line say besides requirements: uv's tables of a script or a pyproject.toml."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from cudalock.errors import UsageError
from cudalock.project import ProjectFile, UvSettings, parse_pyproject, parse_script

__all__ = ["check_conflicts", "with_files"]

_PROJECT_FILE = "pyproject.toml"


def with_files(
    project: ProjectFile | None,
    folder: Path,
    names: Sequence[str],
    read: Callable[[Path], str],
) -> ProjectFile | None:
    """Return the project with ``[tool.uv]`` of the ``-r`` files that have one, theirs before its own.

    ``read`` gives the text of a file. Scripts and other projects are read for their requirements
    elsewhere; here only what says where those come from and what bounds them. With any file the
    Python that is required is theirs.
    """
    if not names:
        return project
    own = (folder / _PROJECT_FILE).resolve()
    found: list[ProjectFile] = []
    for name in names:
        path = Path(name)
        if path.name == _PROJECT_FILE and path.resolve() != own:
            found.append(parse_pyproject(read(path), where=name))
        elif path.suffix == ".py":
            script = parse_script(read(path), where=name)
            found += [] if script is None else [script]
    if project is None and not found:
        return None
    base = ProjectFile(where=found[0].where) if project is None else project
    pythons = [each.requires_python for each in found if each.requires_python is not None]
    return replace(
        base,
        requires_python=SpecifierSet(",".join(map(str, pythons))) if pythons else None,
        nightly=tuple(name for each in (*found, base) for name in each.nightly),
        as_of=next((e.as_of for e in (*found, base) if e.as_of is not None), None),
        uv=_joined([each.uv for each in (*found, base)]),
    )


def _joined(settings: Sequence[UvSettings]) -> UvSettings:
    dates = [s.exclude_newer for s in settings if s.exclude_newer is not None]
    return UvSettings(
        sources=tuple(source for s in settings for source in s.sources),
        indexes=tuple({index.where: index for s in settings for index in s.indexes}.values()),
        constraints=tuple(entry for s in settings for entry in s.constraints),
        overrides=tuple(entry for s in settings for entry in s.overrides),
        conflicts=tuple(conflict for s in settings for conflict in s.conflicts),
        find_links=tuple(link for s in settings for link in s.find_links),
        exclude_newer=dates[0] if dates else None,
        unread=tuple(sentence for s in settings for sentence in s.unread),
    )


def check_conflicts(
    project: ProjectFile | None, extras: Iterable[str], groups: Iterable[str]
) -> None:
    """Refuse extras and groups that ``[tool.uv] conflicts`` says are not for one environment."""
    asked = {("extra", str(canonicalize_name(name))) for name in extras}
    asked |= {("group", str(canonicalize_name(name))) for name in groups}
    for conflict in project.uv.conflicts if project is not None else ():
        both = sorted(asked & conflict.members)
        if len(both) > 1:
            told = " and ".join(f"the {word} `{name}`" for word, name in both)
            raise UsageError(
                f"expected one of what the project says to conflict, found {told}",
                where=conflict.where,
                flag=f"--{both[0][0]}",
            )
