"""``cudalock resolve``: a lock that runs on the target, or why there is none."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace

from cudalock.cli.default_index import ask_default_index
from cudalock.cli.inputs import Inputs, cache_directory, gather
from cudalock.cli.json_form import error_form, format_json, locked_form, refused_form
from cudalock.cli.relock import check_flags, describe_frozen, finish_lock, read_previous
from cudalock.cli.report import report_conflict, report_near_names, report_resolution
from cudalock.cli.resolve_several import Member, lock_path, resolve_several
from cudalock.cli.terminal import Status, Terminal
from cudalock.errors import CudalockError
from cudalock.explain import Remedy
from cudalock.explain.report import format_seen
from cudalock.index.client import open_client
from cudalock.lock import Lock, format_lock
from cudalock.lock.preferences import preferences_of
from cudalock.resolver.conflict import NoSolutionError, UnprovedError
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
        if args.format == "json":
            target = inputs.target if inputs is not None else None
            as_of = inputs.request.as_of if inputs is not None else None
            sys.stdout.write(format_json(error_form(error, target, as_of=as_of)))
        elif isinstance(error, UnprovedError) and error.seen:
            terminal.say(format_seen(error.seen))
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
        terminal.warn(warning)
    options = replace(inputs.indices, default_index=_default_index(args, environ, inputs))
    client = open_client(cache_dir=options.cache_dir, offline=options.offline, environ=environ)
    status = terminal.status("resolving")
    session = Session(
        options, client=client, progress=lambda phase, what, n: _tell(status, phase, what, n)
    )

    def refuse(member: Member, error: NoSolutionError) -> int:
        status.stop()
        if len(members) > 1:
            terminal.say(f"Target {member.inputs.target.name}:")
        return _refuse(member.args, terminal, member.inputs, session, error)

    with client, session:
        if len(members) > 1:
            return resolve_several(
                members,
                session,
                options=options,
                terminal=terminal,
                refuse=refuse,
                solving=status,
            )
        return _resolve_one(members[0], session, terminal, status)


def _resolve_one(member: Member, session: Session, terminal: Terminal, status: Status) -> int:
    args, inputs = member.args, member.inputs
    previous = None if args.output == "-" else read_previous(inputs.lock_path)
    request = inputs.request
    if previous is not None:
        preferences = preferences_of(previous, inputs.target, upgrade=args.upgrade)
        request = replace(request, preferences=preferences)
    with status:
        try:
            resolution = session.resolve(request, inputs.target)
        except NoSolutionError as error:
            status.stop()
            return _refuse(args, terminal, inputs, session, error)
        download = args.hash_missing == "download"
        resolution = session.settle_hashes(resolution, request, download=download)
        lock = session.lock(
            resolution,
            request,
            download_hashes=download,
            folder=inputs.folder if args.output == "-" else inputs.lock_path.parent,
        )
        requests = session.requests
    written = _write(args, inputs, lock, previous, terminal)
    if args.format == "json":
        sys.stdout.write(format_json(locked_form(resolution, written, inputs.warnings)))
    report_resolution(terminal, resolution, written=written, requests=requests)
    return 0


def _default_index(args: Namespace, environ: Mapping[str, str], inputs: Inputs) -> str:
    if inputs.default_index is not None:
        return inputs.default_index.reveal()
    cache_dir = cache_directory(args, environ)
    return ask_default_index(
        environ=environ, cache_dir=cache_dir, folder=inputs.folder
    ).url.reveal()


_PHASES = {"resolve": "resolving", "remedy": "looking for a remedy", "hash": "downloading"}


def _tell(status: Status, phase: str, what: str, count: int) -> None:
    done = f"{count / 1e6:.0f} MB" if phase == "hash" else f"{count} wheels" if count else ""
    status.update(" ".join(part for part in (_PHASES[phase], what, done) if part))


def _write(
    args: Namespace, inputs: Inputs, lock: Lock, previous: Lock | None, terminal: Terminal
) -> str | None:
    """Write the lock where it belongs, if it is to be written; ``-o -`` is stdout."""
    if args.output == "-" and not args.dry_run:
        if args.format != "json":
            sys.stdout.write(format_lock(lock))
        return "-"
    return finish_lock(args, inputs.lock_path, lock, previous, terminal)


def _refuse(
    args: Namespace,
    terminal: Terminal,
    inputs: Inputs,
    session: Session,
    error: NoSolutionError,
) -> int:
    """Tell a proved "no" first, and what was tried after it."""
    conflict, target = error.conflict, error.target
    if args.format != "json":
        report_conflict(terminal, conflict, target)
        report_near_names(terminal, conflict, session.source(target).known_projects())
    remedies: tuple[Remedy, ...] = ()
    if not args.no_remedies:
        with terminal.status("looking for a remedy"):
            remedies = session.remedies(inputs.request, target, conflict)
    told = [(_command(args, inputs, remedy), remedy.changes, remedy.note) for remedy in remedies]
    if args.format == "json":
        form = refused_form(target, conflict, told, inputs.warnings, as_of=inputs.request.as_of)
        sys.stdout.write(format_json(form))
        return error.exit_code
    for command, changes, note in told:
        words = " and ".join(f"`{change}`" for change in changes)
        terminal.hint(f"with {words} the set resolves" + (f" ({note})" if note else ""))
        terminal.say(f"  {command}")
    if not remedies and not args.no_remedies:
        terminal.say("No change of one requirement, release or policy that was tried solves it.")
    return error.exit_code


def _command(args: Namespace, inputs: Inputs, remedy: Remedy) -> str:
    """Return the command line that asks for the changed problem."""
    words = ["cudalock", "resolve"]
    words += [format_requirement(entry.requirement) for entry in remedy.requirements]
    changed = remedy.target
    flags: list[tuple[str, str | None]] = [("--project", args.project), ("--target", args.target)]
    if changed.cuda is not None and (args.cuda or changed.cuda != inputs.target.cuda):
        flags.append(("--cuda", str(changed.cuda)))
    if args.cuda_compat or changed.cuda_compat != inputs.target.cuda_compat:
        flags.append(("--cuda-compat", changed.cuda_compat))
    flags += [
        ("--driver", args.driver),
        ("--driver-cuda", args.driver_cuda),
        ("--python", args.python),
        ("--platform", args.platform),
    ]
    flags += [("--sm", value) for value in args.sm] + [("--gpu", value) for value in args.gpu]
    flags += [("-c", value) for value in args.constraints_files]
    flags += [("--override", value) for value in args.override_files]
    flags += [("--prerelease", name) for name in sorted({*args.prerelease, *remedy.prereleases})]
    flags += [("--as-of", args.as_of)]
    flags += [("--index", value) for value in args.index]
    flags += [("--exclude-index", value) for value in args.exclude_index]
    for flag, value in flags:
        if value is not None:
            words += [flag, value]
    words += [
        word
        for flag, given in (
            ("--only-default-index", args.only_default_index),
            ("--recorded", args.recorded),
            ("--variants", remedy.variants),
            ("--hash-missing download", bool(remedy.hashes) or args.hash_missing == "download"),
        )
        if given
        for word in flag.split()
    ]
    return shlex.join(words)
