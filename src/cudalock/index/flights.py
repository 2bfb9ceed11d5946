"""One flight a question: threads that ask the same thing at the same time share one answer.

Unlike a memo nothing is kept afterwards, so bodies of pages do not pile up in memory.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

__all__ = ["Flights"]

_Value = TypeVar("_Value")


class Flights:
    """Questions under way, by key. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._flying: dict[str, Future[Any]] = {}

    def run(self, key: str, work: Callable[[], _Value]) -> _Value:
        """Return what ``work`` returns, or the flight of the same key that is under way already.

        A key must always stand for work of one type. ``work`` must not run its own key.
        """
        with self._lock:
            flight = self._flying.get(key)
            first = flight is None
            if flight is None:
                flight = self._flying[key] = Future()
        if not first:
            landed: _Value = flight.result()
            return landed
        try:
            value = work()
        except BaseException as error:
            flight.set_exception(error)
            raise
        else:
            flight.set_result(value)
            return value
        finally:
            with self._lock:
                del self._flying[key]
