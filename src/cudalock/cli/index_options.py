"""Which indices a command line and the project's files name."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from cudalock.index.routes import AddedIndex, parse_index_option
from cudalock.project import IndexUrl, ProjectFile, RequirementsFile, parse_index_url
from cudalock.session import IndexOptions

__all__ = ["cache_directory", "given_default", "index_options"]


def cache_directory(args: Namespace, environ: Mapping[str, str]) -> Path:
    """Return where pages are kept: flag, ``CUDALOCK_CACHE_DIR``, or the user's."""
    given = getattr(args, "cache_dir", None) or environ.get("CUDALOCK_CACHE_DIR")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_cache_path  # noqa: PLC0415 - only where nothing is given

    return user_cache_path("cudalock", appauthor=False)


def index_options(
    args: Namespace,
    environ: Mapping[str, str],
    project: ProjectFile | None,
    files: list[RequirementsFile],
    sources: Mapping[str, str],
) -> IndexOptions:
    """Return which indices flags and files name; the default one is left open."""
    added, links = [parse_index_option(text) for text in args.index], list(args.find_links)
    for file in files:
        added += [AddedIndex(url=url.reveal()) for url in file.extra_index_urls]
        links += [link if isinstance(link, str) else link.reveal() for link in file.find_links]
    links += project.uv.find_links if project is not None else ()
    for index in project.uv.indexes if project is not None else ():
        if index.default:
            continue
        if index.flat or isinstance(index.url, str):
            links.append(index.url if isinstance(index.url, str) else index.url.reveal())
        else:
            added.append(
                AddedIndex(url=index.url.reveal(), name=index.name, explicit=index.explicit)
            )
    return IndexOptions(
        default_index="",
        added=tuple(added),
        sources=sources,
        excluded=frozenset(args.exclude_index),
        only_default=args.only_default_index,
        find_links=tuple(links),
        recorded=args.recorded or (project is not None and project.recorded),
        offline=args.offline or environ.get("CUDALOCK_OFFLINE", "") not in ("", "0"),
        cache_dir=cache_directory(args, environ),
    )


def given_default(args: Namespace, files: list[RequirementsFile]) -> IndexUrl | None:
    """Return the default index that a flag or a file names."""
    if args.default_index:
        return parse_index_url(args.default_index, where="--default-index")
    return next((file.index_url for file in files if file.index_url is not None), None)
