"""One answer a question: computed once, shared by threads, refusals kept, interruptions not."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cudalock.errors import IndexAccessError
from cudalock.memo import Memo


def _refuse() -> int:
    raise IndexAccessError("expected a page, found none")


def _interrupt() -> int:
    raise KeyboardInterrupt


def test_an_answer_is_computed_once_a_key() -> None:
    memo = Memo[str, int]()
    asked: list[str] = []

    def compute() -> int:
        asked.append("x")
        return len(asked)

    assert [memo.get("a", compute), memo.get("a", compute), memo.get("b", compute)] == [1, 1, 2]


def test_a_second_asker_waits_for_the_first_one() -> None:
    memo = Memo[str, int]()
    began, go_on, calls = threading.Event(), threading.Event(), []

    def slowly() -> int:
        calls.append(1)
        began.set()
        go_on.wait(10)
        return 7

    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(memo.get, "a", slowly)
        assert began.wait(10)
        others = [pool.submit(memo.get, "a", slowly) for _ in range(7)]
        assert memo.peek("a") is None
        assert not any(other.done() for other in others)
        go_on.set()
        assert [future.result(10) for future in (first, *others)] == [7] * 8
    assert calls == [1]


def test_a_refusal_is_the_answer_for_everybody() -> None:
    memo = Memo[str, int]()
    with pytest.raises(IndexAccessError) as first:
        memo.get("a", _refuse)
    with pytest.raises(IndexAccessError) as second:
        memo.get("a", lambda: 1)
    assert first.value is second.value
    assert memo.peek("a") is None


def test_an_interruption_is_no_answer() -> None:
    memo = Memo[str, int]()
    with pytest.raises(KeyboardInterrupt):
        memo.get("a", _interrupt)
    assert memo.get("a", lambda: 1) == 1


def test_those_who_wait_are_interrupted_with_the_one_they_wait_for() -> None:
    memo = Memo[str, int]()
    began, go_on = threading.Event(), threading.Event()

    def slowly() -> int:
        began.set()
        go_on.wait(10)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(memo.get, "a", slowly)
        assert began.wait(10)
        second = pool.submit(memo.get, "a", lambda: 1)
        while not second.running():
            pass
        go_on.set()
        assert isinstance(first.exception(10), KeyboardInterrupt)
        # Whether it came to wait or came later, it does not hang.
        outcome = second.exception(10)
        assert outcome is None or isinstance(outcome, KeyboardInterrupt)


def test_peek_gives_what_is_there_and_asks_for_nothing() -> None:
    memo = Memo[str, int]()
    assert memo.peek("a") is None
    memo.get("a", lambda: 3)
    assert memo.peek("a") == 3
