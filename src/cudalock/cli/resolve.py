"""``cudalock resolve``: a lock that runs on the target, or why there is none."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace

from cudalock.cli.default_index import ask_default_index
from cudalock.cli.github_form import format_github
from cudalock.cli.index_options import cache_directory
from cudalock.cli.inputs import Inputs, gather
from cudalock.cli.json_form import error_form, format_json, locked_form, refused_form
from cudalock.cli.markdown_form import format_markdown
from cudalock.cli.outcome import (
    Outcome,
    ToldRemedy,
    error_outcome,
    locked_outcome,
    refused_outcome,
)
from cudalock.cli.recorded_inputs import describe_inputs
from cudalock.cli.relock import check_flags, describe_frozen, finish_lock, read_previous
from cudalock.cli.report import (
    count_requests,
    report_conflict,
    report_near_names,
    report_resolution,
    rule_code,
)
from cudalock.cli.resolve_several import Member, lock_path, resolve_several
from cudalock.cli.sarif_form import sarif_form
from cudalock.cli.terminal import Status, Terminal
from cudalock.cli.try_cuda import run_try_cuda
from cudalock.errors import CudalockError
from cudalock.explain import Remedy
from cudalock.index.client import open_client
from cudalock.lock import Lock, format_lock
from cudalock.lock.preferences import preferences_of
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.request import format_requirement
from cudalock.session import Session

__all__ = ["run_resolve"]


def run_resolve(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Resolve and write the lock; return the exit code. An error is told in the asked format."""
    inputs: Inputs | None = None
    try:
        check_flags(args)
        members = _members(args, environ)
        inputs = members[0].inputs
        if args.frozen:
            return _frozen(members, terminal)
        return _resolve(members, environ, terminal)
    except CudalockError as error:
        target = inputs.target if inputs is not None else None
        as_of = inputs.request.as_of if inputs is not None else None
        if args.format == "json":
            sys.stdout.write(format_json(error_form(error, target, as_of=as_of)))
        elif args.format != "text":
            sys.stdout.write(_format_outcome(error_outcome(error, target), args.format))
        raise


def _members(args: Namespace, environ: Mapping[str, str]) -> list[Member]:
    """Gather what is asked for each target that is named; the default one comes first."""
    found: dict[str | None, Member] = {}
    for name in args.targets or [None]:
        one = Namespace(**{**vars(args), "target": name})
        found[name] = Member(args=one, inputs=gather(one, environ))
    default = next(iter(found.values())).inputs.default_target
    return [found[name] for name in sorted(found, key=lambda name: name != default)]


def _frozen(members: list[Member], terminal: Terminal) -> int:
    args = members[0].args
    joined = len(members) > 1 and not args.split
    places = [lock_path(args, members[0].inputs)] if joined else []
    for path in places or [member.inputs.lock_path for member in members]:
        describe_frozen(path, terminal)
    return 0


def _resolve(members: list[Member], environ: Mapping[str, str], terminal: Terminal) -> int:
    args, inputs = members[0].args, members[0].inputs
    for warning in dict.fromkeys(w for member in members for w in member.inputs.warnings):
        terminal.warn(warning, rule_code("input"))
    options = replace(inputs.indices, default_index=_default_index(args, environ, inputs))
    client = open_client(cache_dir=options.cache_dir, offline=options.offline, environ=environ)
    status = terminal.status("resolving")
    telling = _Telling(status)
    session = Session(options, client=client, progress=telling)

    def refuse(member: Member, error: NoSolutionError) -> int:
        status.stop()
        if len(members) > 1:
            terminal.say(f"Target {member.inputs.target.name}:")
        return _refuse(member, terminal, session, error, telling=telling)

    with client, session:
        if args.try_cuda is not None:
            with status:
                return run_try_cuda(args, terminal, inputs, session, status)
        if len(members) > 1:
            return resolve_several(
                members,
                session,
                options=options,
                environ=environ,
                terminal=terminal,
                refuse=refuse,
                solving=status,
            )
        return _resolve_one(members[0], environ, session, terminal, refuse=refuse, solving=status)


def _resolve_one(
    member: Member,
    environ: Mapping[str, str],
    session: Session,
    terminal: Terminal,
    *,
    refuse: Callable[[Member, NoSolutionError], int],
    solving: Status,
) -> int:
    args, inputs = member.args, member.inputs
    previous = None if args.output == "-" else read_previous(inputs.lock_path)
    request = inputs.request
    if previous is not None:
        preferences = preferences_of(previous, inputs.target, upgrade=args.upgrade)
        request = replace(request, preferences=preferences)
    folder = inputs.folder if args.output == "-" else inputs.lock_path.parent
    with solving:
        try:
            resolution = session.resolve(request, inputs.target)
        except NoSolutionError as error:
            return refuse(member, error)
        download = args.hash_missing == "download"
        resolution = session.settle_hashes(resolution, request, download=download)
        lock = session.lock(
            resolution,
            request,
            download_hashes=download,
            folder=folder,
            inputs=describe_inputs(args, environ, folder),
        )
        requests = session.requests
    written = _write(args, inputs, lock, previous, terminal)
    if args.format == "json":
        sys.stdout.write(format_json(locked_form(resolution, written, inputs.warnings)))
    elif args.format != "text":
        outcome = locked_outcome(resolution, written, inputs.warnings)
        sys.stdout.write(_format_outcome(outcome, args.format))
    report_resolution(terminal, resolution, written=written, requests=requests)
    return 0


def _format_outcome(outcome: Outcome, form: str) -> str:
    """Format an outcome as ``github``, ``markdown`` or ``sarif``."""
    match form:
        case "github":
            return format_github(outcome)
        case "markdown":
            return format_markdown(outcome)
        case _:
            return format_json(sarif_form(outcome))


def _default_index(args: Namespace, environ: Mapping[str, str], inputs: Inputs) -> str:
    if inputs.default_index is not None:
        return inputs.default_index.reveal()
    cache_dir = cache_directory(args, environ)
    return ask_default_index(
        environ=environ, cache_dir=cache_dir, folder=inputs.folder
    ).url.reveal()


_PHASES = {
    "resolve": "resolving",
    "remedy": "looking for a remedy",
    "hash": "downloading",
    "read": "reading",
}


class _Telling:
    """Says what a session does, on the line that is shown at the time."""

    def __init__(self, status: Status) -> None:
        self.status = status

    def __call__(self, phase: str, what: str, count: int) -> None:
        done = (
            f"{count / 1e6:.0f} MB"
            if phase in ("hash", "read")
            else f"{count} wheels"
            if count
            else ""
        )
        self.status.update(" ".join(part for part in (_PHASES[phase], what, done) if part))


def _write(
    args: Namespace, inputs: Inputs, lock: Lock, previous: Lock | None, terminal: Terminal
) -> str | None:
    """Write the lock where it belongs, if it is to be written; ``-o -`` is stdout."""
    if args.output == "-" and not args.dry_run:
        if args.format == "text":
            sys.stdout.write(format_lock(lock))
        return "-"
    return finish_lock(args, inputs.lock_path, lock, previous, terminal)


def _refuse(
    member: Member,
    terminal: Terminal,
    session: Session,
    error: NoSolutionError,
    *,
    telling: _Telling,
) -> int:
    """Tell a proved "no" first, and what was tried after it, each with the requests it took."""
    args, inputs = member.args, member.inputs
    conflict, target = error.conflict, error.target
    proved = session.requests
    if args.format != "json":
        report_conflict(terminal, conflict, target)
        report_near_names(terminal, conflict, session.source(target).known_projects())
        terminal.say(f"This was proved with {count_requests(proved)}.")
    remedies: tuple[Remedy, ...] = ()
    if not args.no_remedies:
        with terminal.status("looking for a remedy") as telling.status:
            remedies = session.remedies(inputs.request, target, conflict)
    told = [
        ToldRemedy(command=_command(args, inputs, r), changes=r.changes, note=r.note)
        for r in remedies
    ]
    if args.format == "json":
        form = refused_form(target, conflict, told, inputs.warnings, as_of=inputs.request.as_of)
        sys.stdout.write(format_json(form))
        return error.exit_code
    if args.format != "text":
        outcome = refused_outcome(conflict, target, told, inputs.warnings)
        sys.stdout.write(_format_outcome(outcome, args.format))
    for remedy in told:
        terminal.hint(remedy.text)
        terminal.say(f"  {remedy.command}")
    if not remedies and not args.no_remedies:
        terminal.say("No change of one requirement, release or policy that was tried solves it.")
    if not args.no_remedies:
        more = count_requests(session.requests - proved)
        terminal.say(f"The search for a remedy took {more}.")
    return error.exit_code


def _command(args: Namespace, inputs: Inputs, remedy: Remedy) -> str:
    """Return the command line that asks for the changed problem."""
    words = ["cudalock", "resolve"]
    words += [format_requirement(entry.requirement) for entry in remedy.requirements]
    changed = remedy.target
    newer = changed.driver != inputs.target.driver
    flags: list[tuple[str, str | None]] = [("--project", args.project), ("--target", args.target)]
    if changed.cuda is not None and (args.cuda or changed.cuda != inputs.target.cuda):
        flags.append(("--cuda", str(changed.cuda)))
    if args.cuda_compat or changed.cuda_compat != inputs.target.cuda_compat:
        flags.append(("--cuda-compat", changed.cuda_compat))
    flags += [
        ("--driver", str(changed.driver) if newer else args.driver),
        ("--driver-cuda", None if newer else args.driver_cuda),
        ("--python", args.python if changed.python == inputs.target.python else changed.python),
        ("--platform", args.platform),
    ]
    flags += [("--sm", value) for value in args.sm] + [("--gpu", value) for value in args.gpu]
    flags += [("-c", value) for value in args.constraints_files]
    flags += [("--override", value) for value in args.override_files]
    flags += [("--prerelease", name) for name in sorted({*args.prerelease, *remedy.prereleases})]
    flags += [("--as-of", args.as_of)]
    if args.verify_sm or remedy.verify_sm != "auto":
        flags += [("--verify-sm", remedy.verify_sm)]
    # An address is shown as it may be: without what a person signs in with.
    flags += [("--default-index", str(inputs.default_index) if args.default_index else None)]
    flags += [("--index", value) for value in args.index]
    flags += [("--find-links", value) for value in args.find_links]
    flags += [("--exclude-index", value) for value in args.exclude_index]
    for flag, value in flags:
        if value is not None:
            words += [flag, value]
    words += [
        word
        for flag, given in (
            ("--cpu", args.cpu),
            ("--only-default-index", args.only_default_index),
            ("--recorded", args.recorded),
            ("--offline", args.offline),
            ("--variants", remedy.variants),
            ("--hash-missing download", bool(remedy.hashes) or args.hash_missing == "download"),
        )
        if given
        for word in flag.split()
    ]
    return shlex.join(words)
