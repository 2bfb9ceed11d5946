"""A wheel read in parts over real HTTP: from its end, by pieces, as a stream that may break or be closed."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import pytest

from cudalock.index.client import Client
from cudalock.index.failures import BodyError, RangeError, TransportError
from cudalock.wheel.zip_directory import DIRECTORY_TAIL
from loopback import Asked, Reply, serve, serve_file

CONTENT = bytes(range(256)) * 4096
TAIL = DIRECTORY_TAIL


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(sleep=lambda _: None) as client:
        yield client


def _sound(asked: Asked) -> Reply:
    return serve_file(CONTENT, asked, etag='"one"')


def test_the_end_of_the_file_costs_one_request_and_is_never_asked_for_again(client: Client) -> None:
    with serve(_sound) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        assert file.size == len(CONTENT)
        assert file.read(file.size - 100, file.size) == CONTENT[-100:]
        assert b"".join(file.stream(file.size - TAIL, file.size)) == CONTENT[-TAIL:]
        assert len(site.asked) == 1
        assert file.bytes_read == TAIL


def test_pieces_and_streams_are_the_bytes_of_the_file(client: Client) -> None:
    with serve(_sound) as site:
        file = client.open_file(f"{site.url}/wheel.whl", size=len(CONTENT))
        for start, end in pairwise([0, 1, 500, 70_000, 600_001]):
            assert file.read(start, end) == CONTENT[start:end]
            assert b"".join(file.stream(start, end)) == CONTENT[start:end]
        assert {asked.headers.get("if-range") for asked in site.asked[1:]} == {'"one"'}


def test_a_stream_that_is_closed_takes_little_more_than_was_read(client: Client) -> None:
    with serve(_sound) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        steps = file.stream(0, file.size)
        first = next(steps)
        steps.close()
        assert CONTENT.startswith(first)
        assert file.bytes_read <= TAIL + len(first)
        # The connection can be used, or is replaced: another question is answered.
        assert file.read(10, 20) == CONTENT[10:20]


def test_a_stream_that_breaks_goes_on_where_it_was(client: Client) -> None:
    def answer(asked: Asked) -> Reply:
        reply = _sound(asked)
        if asked.headers["range"] == f"bytes=0-{len(CONTENT) - TAIL - 1}":
            # The connection ends in the middle of what was announced.
            return Reply(206, reply.body[:300_000], reply.headers, length=len(reply.body))
        return reply

    with serve(answer) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        end = file.size - TAIL
        assert b"".join(file.stream(0, end)) == CONTENT[:end]
        assert len(site.asked) == 3


def test_a_stream_that_breaks_before_any_byte_comes_is_an_error(client: Client) -> None:
    def answer(asked: Asked) -> Reply:
        reply = _sound(asked)
        if asked.headers["range"].startswith("bytes=0-"):
            return Reply(206, b"", reply.headers, length=len(reply.body))
        return reply

    with serve(answer) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        with pytest.raises(TransportError):
            b"".join(file.stream(0, 1000))
        assert len(site.asked) == 2


def _changed(asked: Asked) -> Reply:
    suffix = asked.headers["range"].startswith("bytes=-")
    return serve_file(
        CONTENT if suffix else CONTENT[:-1], asked, etag='"one"' if suffix else '"two"'
    )


def _other_place(asked: Asked) -> Reply:
    reply = _sound(asked)
    if asked.headers["range"].startswith("bytes=-"):
        return reply
    return Reply(206, reply.body, {"Content-Range": f"bytes 1-{len(reply.body)}/{len(CONTENT)}"})


def _coded(asked: Asked) -> Reply:
    reply = _sound(asked)
    if asked.headers["range"].startswith("bytes=-"):
        return reply
    return Reply(206, reply.body, {**reply.headers, "Content-Encoding": "gzip"})


def _coded_whole(asked: Asked) -> Reply:
    if asked.headers["range"].startswith("bytes=-"):
        return _sound(asked)
    return Reply(200, CONTENT, {"Content-Encoding": "gzip"})


@pytest.mark.parametrize("answer", [_changed, _other_place, _coded, _coded_whole])
def test_a_part_of_another_file_or_place_is_an_error(
    client: Client, answer: Callable[[Asked], Reply | Iterable[bytes]]
) -> None:
    with serve(answer) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        with pytest.raises(BodyError):
            b"".join(file.stream(0, 1000))
        with pytest.raises(BodyError):
            file.read(0, 1000)


def test_a_server_that_forgets_ranges_gives_the_part_out_of_the_whole(client: Client) -> None:
    def answer(asked: Asked) -> Reply:
        suffix = asked.headers["range"].startswith("bytes=-")
        return _sound(asked) if suffix else Reply(200, CONTENT, {"ETag": '"one"'})

    with serve(answer) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        assert b"".join(file.stream(200_000, 200_500)) == CONTENT[200_000:200_500]


def test_far_into_a_file_of_a_server_that_forgets_ranges_nothing_is_read(client: Client) -> None:
    big = bytes(1024) * (33 * 1024) + CONTENT

    def answer(asked: Asked) -> Reply:
        suffix = asked.headers["range"].startswith("bytes=-")
        return serve_file(big, asked) if suffix else Reply(200, big)

    with serve(answer) as site:
        file = client.open_file(f"{site.url}/wheel.whl")
        with pytest.raises(RangeError, match="expected a part of a file from"):
            b"".join(file.stream(33 * 1024 * 1024, 33 * 1024 * 1024 + 10))


def test_a_length_other_than_the_index_claims_is_an_error(client: Client) -> None:
    with serve(_sound) as site, pytest.raises(BodyError, match="as the index says"):
        client.open_file(f"{site.url}/wheel.whl", size=12)
