"""``cudalock resolve``: a lock that runs on the target, or why there is none."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
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
from cudalock.cli.report import (
    count_requests,
    report_conflict,
    report_near_names,
    report_resolution,
    rule_code,
)
from cudalock.cli.sarif_form import sarif_form
from cudalock.cli.terminal import Status, Terminal
from cudalock.cli.try_cuda import run_try_cuda
from cudalock.errors import CudalockError
from cudalock.explain import Remedy
from cudalock.index.client import open_client
from cudalock.lock import Lock, format_lock, write_lock
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.request import format_requirement
from cudalock.session import Session

__all__ = ["run_resolve"]


def run_resolve(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Resolve and write the lock; return the exit code. An error is told in the asked format."""
    inputs: Inputs | None = None
    try:
        inputs = gather(args, environ)
        return _resolve(args, environ, terminal, inputs)
    except CudalockError as error:
        target = inputs.target if inputs is not None else None
        as_of = inputs.request.as_of if inputs is not None else None
        if args.format == "json":
            sys.stdout.write(format_json(error_form(error, target, as_of=as_of)))
        elif args.format != "text":
            sys.stdout.write(_format_outcome(error_outcome(error, target), args.format))
        raise


def _resolve(
    args: Namespace, environ: Mapping[str, str], terminal: Terminal, inputs: Inputs
) -> int:
    for warning in inputs.warnings:
        terminal.warn(warning, rule_code("input"))
    options = replace(inputs.indices, default_index=_default_index(args, environ, inputs))
    with terminal.status("resolving") as status:
        client = open_client(cache_dir=options.cache_dir, offline=options.offline, environ=environ)
        telling = _Telling(status)
        session = Session(options, client=client, progress=telling)
        with client, session:
            if args.try_cuda is not None:
                return run_try_cuda(args, terminal, inputs, session, status)
            try:
                resolution = session.resolve(inputs.request, inputs.target)
            except NoSolutionError as error:
                status.stop()
                return _refuse(args, terminal, inputs, session, error, telling=telling)
            download = args.hash_missing == "download"
            resolution = session.settle_hashes(resolution, inputs.request, download=download)
            lock_folder = inputs.folder if args.output == "-" else inputs.lock_path.parent
            lock = session.lock(
                resolution,
                inputs.request,
                download_hashes=download,
                folder=lock_folder,
                inputs=describe_inputs(args, environ, lock_folder),
            )
            requests = session.requests
    written = None if args.dry_run else _write(args, inputs, lock)
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


def _write(args: Namespace, inputs: Inputs, lock: Lock) -> str:
    """Write the lock where it belongs; ``-o -`` is stdout."""
    if args.output == "-":
        if args.format == "text":
            sys.stdout.write(format_lock(lock))
        return "-"
    write_lock(inputs.lock_path, lock)
    return str(inputs.lock_path)


def _refuse(
    args: Namespace,
    terminal: Terminal,
    inputs: Inputs,
    session: Session,
    error: NoSolutionError,
    *,
    telling: _Telling,
) -> int:
    """Tell a proved "no" first, and what was tried after it, each with the requests it took."""
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
