"""One answer a question: computed once, by whichever thread asks first.

One resolve is one snapshot of the indexes (a page read twice may have changed in between), so
answers are kept for the life of the memo, and so are refusals.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Memo"]

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Memo(Generic[_Key, _Value]):
    """Answers by key, single flight: a second asker waits for the first one's answer.

    ``compute`` must not ask the same memo for the same key, which would wait for itself.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[_Key, Future[_Value]] = {}

    def get(self, key: _Key, compute: Callable[[], _Value]) -> _Value:
        """Return the answer, or raise what computing it raised the first time."""
        with self._lock:
            answer = self._answers.get(key)
            first = answer is None
            if answer is None:
                answer = self._answers[key] = Future()
        if not first:
            return answer.result()
        try:
            value = compute()
        except BaseException as error:
            if not isinstance(error, Exception):
                # An interruption says nothing about the question: let the next asker try.
                with self._lock:
                    del self._answers[key]
            answer.set_exception(error)
            raise
        answer.set_result(value)
        return value
