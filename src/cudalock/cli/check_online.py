"""Asking the indices for `cudalock check --online` and `cudalock outdated`."""

from argparse import Namespace
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from cudalock.cli.index_options import cache_directory
from cudalock.index.client import open_client
from cudalock.index.definitions import load_definitions
from cudalock.index.locate import find_indices
from cudalock.lock.model import Lock
from cudalock.verify.listed import ask_listed
from cudalock.verify.problems import CheckResult

__all__ = ["ask_indices"]

_THREADS = 24


def ask_indices(lock: Lock, args: Namespace, environ: Mapping[str, str]) -> CheckResult:
    """Ask the index of every entry; an index that cannot be read is "could not tell"."""
    with (
        open_client(cache_dir=cache_directory(args, environ), environ=environ) as client,
        ThreadPoolExecutor(_THREADS, thread_name_prefix="cudalock") as executor,
    ):
        return ask_listed(
            lock,
            client=client,
            definitions=load_definitions(find_indices()),
            executor=executor,
        )
