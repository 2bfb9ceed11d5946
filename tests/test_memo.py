import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cudalock.errors import IndexAccessError
from cudalock.memo import Memo


def test_a_question_is_answered_once_however_many_ask_at_the_same_time() -> None:
    memo: Memo[str, object] = Memo()
    ready = threading.Barrier(8)
    computed = []

    def compute() -> object:
        computed.append(1)
        return object()

    def ask(_: int) -> object:
        ready.wait()
        return memo.get("key", compute)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(ask, range(8)))
    assert len(answers) == len(computed) == 1
    assert memo.get("other", compute) not in answers


def test_a_refusal_is_kept_like_an_answer() -> None:
    memo: Memo[str, int] = Memo()
    computed = []

    def refuse() -> int:
        computed.append(1)
        raise IndexAccessError("gone")

    for _ in range(2):
        with pytest.raises(IndexAccessError, match="gone"):
            memo.get("key", refuse)
    assert len(computed) == 1


def test_an_interruption_is_no_answer_and_lets_those_who_wait_go() -> None:
    memo: Memo[str, int] = Memo()
    computing = threading.Event()
    interrupt = threading.Event()

    def interrupted() -> int:
        computing.set()
        assert interrupt.wait(5)
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(memo.get, "key", interrupted)
        assert computing.wait(5)
        second = pool.submit(memo.get, "key", lambda: 1)
        interrupt.set()
        assert isinstance(first.exception(5), KeyboardInterrupt)
        # It waited for the first, or came after it: never left waiting, never told a wrong answer.
        assert second.exception(5) is None or isinstance(second.exception(5), KeyboardInterrupt)
    assert memo.get("key", lambda: 1) == 1


def test_peeking_neither_computes_nor_waits() -> None:
    memo: Memo[str, int] = Memo()
    assert memo.peek("a") is None
    memo.get("a", lambda: 1)
    assert memo.peek("a") == 1


def test_peeking_at_a_refusal_finds_nothing() -> None:
    memo: Memo[str, int] = Memo()

    def refuse() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memo.get("a", refuse)
    assert memo.peek("a") is None
