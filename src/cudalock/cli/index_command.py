"""``cudalock index show|doctor``: what a publisher serves, and what is wrong with its index.

Every project of its definition is asked for, under every CUDA release that NVIDIA's tables know; or
its recording is.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from cudalock.cli.default_index import ask_default_index
from cudalock.cli.index_options import cache_directory
from cudalock.cli.index_tables import doctor_form, doctor_text, show_form, show_text
from cudalock.cli.json_form import format_json
from cudalock.cli.terminal import Terminal, printable
from cudalock.errors import UsageError
from cudalock.host.interpreter import parse_python
from cudalock.host.platforms import parse_platform
from cudalock.index.client import open_client
from cudalock.index.definitions import Definition, load_definitions
from cudalock.index.doctor import Finding, examine
from cudalock.index.fitting import fitting
from cudalock.index.locate import find_indices
from cudalock.index.routes import DEFAULT_INDEX, AddedIndex, parse_index_option
from cudalock.index.survey import Survey
from cudalock.session import IndexOptions, Session
from cudalock.wheel.knowledge import Knowledge
from cudalock.wheel.names import parse_project_name

__all__ = ["run_index"]


def run_index(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Run an action. Exit code of ``doctor``: 1 for problems, 3 where something was not read."""
    definitions = load_definitions(find_indices())
    # Read first: who asks wrongly is told so before anybody is asked.
    showing = args.action == "show"
    python = parse_python(args.python) if showing and args.python else None
    platform = parse_platform(args.platform) if showing and args.platform else None
    survey, requests, knowledge = _survey(args, environ, terminal, definitions)
    failed = [project for project in survey.projects if project.error]
    if showing:
        if python is not None or platform is not None:
            survey = fitting(survey, python=python, platform=platform)
        _print(args, show_form(survey), show_text(survey, width=terminal.width))
        for error in dict.fromkeys(project.error for project in failed):
            terminal.warn(error)
        code = 3 if failed else 0
    else:
        # A wall clock, asked for here because a finding about dates needs today's.
        today = datetime.fromtimestamp(time.time(), tz=UTC).date()
        findings = examine(survey, knowledge=knowledge, today=today)
        text = doctor_text(survey, findings, verbose=args.verbose, width=terminal.width)
        _print(args, doctor_form(survey, findings), text)
        code = _exit_code(findings)
    asked = "from recorded pages" if survey.recorded else f"with {requests} requests"
    terminal.say(f"Asked `{survey.definition.name}` {asked}.")
    return code


def _print(args: Namespace, form: Mapping[str, object], text: str) -> None:
    sys.stdout.write(format_json(form) if args.format == "json" else printable(text))


def _exit_code(findings: tuple[Finding, ...]) -> int:
    severities = {finding.severity for finding in findings}
    return 3 if "unread" in severities else 1 if "problem" in severities else 0


def _survey(
    args: Namespace,
    environ: Mapping[str, str],
    terminal: Terminal,
    definitions: tuple[Definition, ...],
) -> tuple[Survey, int, Knowledge]:
    projects = tuple(parse_project_name(text) for text in args.only)
    added, name = _named(args, definitions, projects)
    cache_dir = cache_directory(args, environ)
    default = args.default_index
    if default is None and _needs_default(args, name, definitions):
        default = ask_default_index(environ=environ, cache_dir=cache_dir).url.reveal()
    if name == DEFAULT_INDEX:
        added = (AddedIndex(url=str(default), name=DEFAULT_INDEX),)
    options = IndexOptions(
        default_index=default or "",
        added=() if name == DEFAULT_INDEX else added,
        recorded=args.recorded,
        offline=args.offline,
        cache_dir=cache_dir,
    )
    with terminal.status(f"asking {name}") as status:
        client = open_client(cache_dir=cache_dir, offline=args.offline, environ=environ)
        session = Session(
            options, client=client, progress=lambda _, what, n: status.update(f"asked {n}: {what}")
        )
        with client, session:
            if added:
                definition = Definition(
                    name=name, stable=(added[0].url,), projects=frozenset(projects)
                )
                survey = session.survey(definition, projects)
            else:
                survey = session.survey(_definition(name, definitions), projects)
            return survey, session.requests, session.knowledge


def _needs_default(args: Namespace, name: str, definitions: tuple[Definition, ...]) -> bool:
    """Whether the default index is asked: for itself, or for the releases a publisher's folders are of."""
    publisher = next((each for each in definitions if each.name == name), None)
    if publisher is None:
        return name == DEFAULT_INDEX
    return not args.recorded or any("{version}" in each for each in publisher.templates)


def _named(
    args: Namespace, definitions: tuple[Definition, ...], projects: tuple[str, ...]
) -> tuple[tuple[AddedIndex, ...], str]:
    """Return an index given by its address, and the name of what is asked."""
    if args.name == DEFAULT_INDEX or "://" in args.name:
        if not projects:
            raise UsageError(
                "expected the projects to ask an index for that no definition describes",
                where=f"index {args.action} {args.name[:80]}",
                flag="--only PROJECT",
            )
        if args.name == DEFAULT_INDEX:
            return (), DEFAULT_INDEX
        index = parse_index_option(args.name)
        return (index,), urlsplit(index.url).hostname or "index"
    _definition(args.name, definitions)
    return (), args.name


def _definition(name: str, definitions: tuple[Definition, ...]) -> Definition:
    for definition in definitions:
        if definition.name == name:
            return definition
    from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name pays for it

    names = sorted(definition.name for definition in definitions)
    near = get_close_matches(name, names, n=3)
    hint = f"near: {', '.join(near)}" if near else f"known: {', '.join(names)}"
    raise UsageError(
        f"expected the name of a publisher, `default` or the URL of an index, found"
        f" `{name[:80]}`; {hint}",
        where=str(Path("indices")),
    )
