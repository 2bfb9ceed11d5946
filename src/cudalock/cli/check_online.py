"""Asking the indices for `cudalock check --online` and `cudalock outdated`."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from cudalock.cli.index_options import cache_directory
from cudalock.index.client import Client, open_client
from cudalock.index.definitions import Definition, load_definitions
from cudalock.index.locate import find_indices
from cudalock.lock.model import Lock
from cudalock.verify.listed import ask_listed
from cudalock.verify.problems import CheckResult

__all__ = ["ask_indices", "asking"]

_THREADS = 24


@contextmanager
def asking(
    args: Namespace, environ: Mapping[str, str]
) -> Iterator[tuple[Client, tuple[Definition, ...], Executor]]:
    """Give a client, the publishers and threads, and close what was opened."""
    with (
        open_client(cache_dir=cache_directory(args, environ), environ=environ) as client,
        ThreadPoolExecutor(_THREADS, thread_name_prefix="cudalock") as executor,
    ):
        yield client, load_definitions(find_indices()), executor


def ask_indices(lock: Lock, args: Namespace, environ: Mapping[str, str]) -> CheckResult:
    """Ask the index of every entry; an index that cannot be read is "could not tell"."""
    with asking(args, environ) as (client, definitions, executor):
        return ask_listed(lock, client=client, definitions=definitions, executor=executor)
