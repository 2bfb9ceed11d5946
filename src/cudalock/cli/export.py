"""``cudalock export``: a lock as a requirements file or a CycloneDX bill of materials."""

import json
import sys
from argparse import Namespace
from pathlib import Path

from cudalock.cli.open_locks import find_lock
from cudalock.verify.export import export_cyclonedx, export_requirements

__all__ = ["run_export"]


def run_export(args: Namespace) -> int:
    """Print the lock in another form, or write it; 2 for what that form cannot carry."""
    lock = find_lock(args.lock, Path(args.project or "."))
    if args.to == "requirements":
        text = export_requirements(lock)
    else:
        text = json.dumps(export_cyclonedx(lock), indent=2) + "\n"
    if args.output is None:
        sys.stdout.write(text)
    else:
        Path(args.output).write_text(text, encoding="utf-8")
    return 0
