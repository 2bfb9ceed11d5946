"""``cudalock inspect``: what a wheel is built for, from its bytes.

The wheel is a file, an address, or a requirement, of which the wheel that a resolve would try first is
taken. Libraries are read as deep as ``--tier`` says, streamed and never kept.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cudalock.api import find_wheel, inspect
from cudalock.cli.default_index import ask_default_index
from cudalock.cli.index_options import cache_directory, given_default, index_options
from cudalock.cli.inspect_text import inspect_text
from cudalock.cli.terminal import Terminal, printable
from cudalock.host import Target, TargetOptions, detect_interpreter, make_target
from cudalock.index.client import Client, open_client
from cudalock.index.find_links import hash_local_file
from cudalock.session import Session
from cudalock.wheel.report import WheelReport

__all__ = ["run_inspect"]

_SCHEMA = "cudalock/inspect/1"


def run_inspect(args: Namespace, environ: Mapping[str, str], terminal: Terminal) -> int:
    """Read one wheel and tell. Exit code 0, whatever the verdict; 1 if nothing of it runs there."""
    target = _target(args)
    text: str = args.wheel
    path = Path(text)
    sha256: str | None
    with terminal.status(f"reading {text}") as status:
        if "://" not in text and path.suffix == ".whl":
            report = inspect(path, target=target, tier=args.tier)
            filename, sha256 = path.name, hash_local_file(path).sha256
        else:
            cache_dir = cache_directory(args, environ)
            with open_client(cache_dir=cache_dir, offline=args.offline, environ=environ) as client:
                filename, url, sha256, size = _find(args, environ, client, target)
                status.update(f"reading {filename}")
                source = client.open_file(url, size=size)
                report = inspect(source, target=target, tier=args.tier)
    if args.format == "json":
        form = _form(filename, sha256, report)
        sys.stdout.write(json.dumps(form, indent=2) + "\n")
    else:
        sys.stdout.write(printable(inspect_text(filename, report, width=terminal.width)))
    return 1 if any(device.verdict == "nothing" for device in report.devices) else 0


def _target(args: Namespace) -> Target:
    """Return the machine a wheel is judged for. This one is not asked: what is not given is unknown."""
    given = args.driver or args.driver_cuda or args.cuda
    options = TargetOptions(
        python=args.python,
        platform=args.platform,
        driver=args.driver,
        driver_cuda=args.driver_cuda,
        cuda=args.cuda or (None if given else "any"),
        sm=tuple(args.sm),
        gpu=tuple(args.gpu),
    )
    return make_target(options, named=None, detected=None, interpreter=detect_interpreter())


def _find(
    args: Namespace, environ: Mapping[str, str], client: Client, target: Target
) -> tuple[str, str, str | None, int | None]:
    """Return name, address, claimed hash and length of the wheel that an address or requirement names."""
    text: str = args.wheel
    if "://" in text:
        return unquote(urlsplit(text).path.rpartition("/")[2]), text, None, None
    options = index_options(args, environ, None, [], {})
    default = given_default(args, [])
    if default is None:
        default = ask_default_index(environ=environ, cache_dir=cache_directory(args, environ)).url
    with Session(replace(options, default_index=default.reveal()), client=client) as session:
        file = find_wheel(session, text, target)
    return file.filename, file.url, file.sha256[0] if len(file.sha256) == 1 else None, file.size


def _form(filename: str, sha256: str | None, report: WheelReport) -> dict[str, object]:
    return {
        "schema": _SCHEMA,
        "filename": filename,
        "sha256": sha256,
        "tier": report.tier,
        "complete": report.complete,
        "bytes_read": report.bytes_read,
        "size": report.size,
        "architectures": list(report.architectures),
        "ptx": list(report.ptx),
        "needed": list(report.needed),
        "libraries": {
            library.path: {
                "architectures": list(library.architectures),
                "ptx": list(library.ptx),
                "needed": None if library.needed is None else list(library.needed),
                "containers": library.containers,
                "torch_abi": library.torch_abi,
            }
            for library in report.libraries
        },
        "verdict": {
            str(device.capability): {
                "verdict": device.verdict,
                "libraries": {
                    path: {
                        "verdict": coverage.verdict,
                        "units": coverage.units,
                        "by_cubin": coverage.by_cubin,
                        "by_ptx": coverage.by_ptx,
                        "reason": coverage.reason or None,
                    }
                    for path, coverage in device.coverage
                },
            }
            for device in report.devices
        },
        "anomalies": list(report.anomalies),
    }
