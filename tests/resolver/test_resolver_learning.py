"""Solve, read, learn, solve again: what is asked to be read, how deep, how often, and when it ends."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from contents_builder import make_contents
from cudalock.errors import ResolutionStoppedError
from cudalock.resolver.conflict import NoSolutionError
from cudalock.resolver.learning import ROUND_LIMIT, Learnt, Wanted, learn
from cudalock.resolver.world import World
from cudalock.wheel.wheel_facts import FactBook, WheelFacts
from scenario_worlds import Scenario

_ANY = "py3-none-any"
_LINUX = "cp312-cp312-manylinux_2_28_x86_64"
_TARGET = {"driver": "590.48.01", "cuda": "13.0", "sm": ["12.0"]}
_CUDA = """
[[entry]]
kind = "cuda-project"
project = "kernel"
source = "made up"
date = "2026-12-01"
"""
_CLAIM = """
[[entry]]
kind = "architectures"
project = "kernel"
versions = ">=1"
value = { images = ["sm_90", "sm_120"] }
source = "a list of its publisher"
date = "2026-12-01"
"""


class _Reader:
    """Reads wheels of a scenario, by file name and tier, into a book; each at most once to a tier."""

    def __init__(
        self, scenario: Scenario, bytes_of: Mapping[tuple[str, str], Mapping[str, Any]]
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        self.sizes: list[int] = []
        self.worlds: list[World] = []
        self._scenario = scenario
        self._bytes_of = bytes_of
        self._book = FactBook(tables=scenario._tables())
        self._done: set[tuple[str, str]] = set()

    def make(self, contested: frozenset[str]) -> World:
        self.worlds.append(self._scenario.world(book=self._book, contested=contested))
        return self.worlds[-1]

    def read(self, wanted: list[Wanted]) -> bool:
        learnt = False
        for each in wanted:
            mark = (each.file.filename.partition("-cp")[0].partition("-py")[0], each.tier)
            self.asked.append(mark)
            self.sizes.append(each.whole_below)
            if mark in self._done:
                continue
            self._done.add(mark)
            table = self._bytes_of.get(mark)
            if table is None:
                self._book.add_failure(each.file, "it is broken")
                continue
            contents = make_contents({"tier": each.tier, **table})
            self._book.add(each.file, WheelFacts(filename=each.file.filename, contents=contents))
            learnt = True
        return learnt

    def learn(self) -> Learnt:
        return learn(self.make, self.read)


def _reader(
    wheels: Sequence[Mapping[str, Any]],
    bytes_of: Mapping[tuple[str, str], Mapping[str, Any]],
    **table: object,
) -> _Reader:
    scenario = Scenario(
        name="learning",
        table={
            "requirements": ["kernel"],
            "wheels": [{"sha256": [f"{n:02x}"], **wheel} for n, wheel in enumerate(wheels, 1)],
            "target": _TARGET,
            "expect": {},
            **table,
        },
    )
    return _Reader(scenario, bytes_of)


def _chosen(learnt: Learnt) -> dict[str, str]:
    return {p: str(c.version) for p, c in learnt.solution.candidates.items()}


_KERNEL = {"file": f"kernel-1.0-{_LINUX}.whl"}


def _code(code: str, **more: object) -> dict[str, Any]:
    return {"libraries": [{"path": "kernel/ops.so", "code": [code], **more}]}


def test_native_wheels_of_a_set_are_read_to_their_heads_and_others_are_not() -> None:
    reader = _reader(
        [
            {**_KERNEL, "requires": ["pure", "more"]},
            {"file": f"pure-1.0-{_ANY}.whl"},
            {"file": f"more-1.0-{_LINUX}.whl"},
        ],
        {("kernel-1.0", "T2"): {}, ("more-1.0", "T2"): {}},
    )
    assert _chosen(reader.learn()) == {"kernel": "1.0", "pure": "1.0", "more": "1.0"}
    assert reader.asked == [("kernel-1.0", "T2"), ("more-1.0", "T2")]
    # Small ones that speak of CUDA are read whole.
    assert reader.sizes == [20_000_000] * 2


def test_a_pure_wheel_of_a_cuda_project_is_read_too() -> None:
    reader = _reader(
        [{"file": f"kernel-1.0-{_ANY}.whl"}], {("kernel-1.0", "T2"): {}}, knowledge=_CUDA
    )
    assert _chosen(reader.learn()) == {"kernel": "1.0"}
    assert reader.asked == [("kernel-1.0", "T2")]


def test_a_wheel_that_cannot_be_read_is_asked_for_once_and_locked() -> None:
    reader = _reader([_KERNEL], {})
    learnt = reader.learn()
    assert _chosen(learnt) == {"kernel": "1.0"}
    assert reader.asked == [("kernel-1.0", "T2")]
    assert len(reader.worlds) == 1


@pytest.mark.parametrize("table", [{"verify-sm": "off"}, {"target": {"cpu": True}}])
def test_nothing_is_read_where_nobody_asks_for_it(table: dict[str, Any]) -> None:
    reader = _reader([_KERNEL], {}, **table)
    assert _chosen(reader.learn()) == {"kernel": "1.0"}
    assert reader.asked == []
    refused = _reader([_KERNEL], {}, **table, requirements=["kernel>1"])
    with pytest.raises(NoSolutionError):
        refused.learn()
    assert refused.asked == []


def test_what_contradicts_the_set_leads_to_the_next_and_each_wheel_is_read_once() -> None:
    versions = [f"{n}.0" for n in range(9, 0, -1)]
    reader = _reader(
        [{"file": f"kernel-{version}-{_LINUX}.whl"} for version in versions],
        {
            (f"kernel-{version}", "T2"): _code(
                "sm_120" if version == "1.0" else "sm_90", seen="whole"
            )
            for version in versions
        },
    )
    learnt = reader.learn()
    assert _chosen(learnt) == {"kernel": "1.0"}
    assert reader.asked == [(f"kernel-{version}", "T2") for version in versions]


def test_sets_without_end_are_given_up_and_prove_nothing() -> None:
    versions = [f"{n}.0" for n in range(ROUND_LIMIT + 5, 0, -1)]
    reader = _reader(
        [{"file": f"kernel-{version}-{_LINUX}.whl"} for version in versions],
        {(f"kernel-{version}", "T2"): _code("sm_90", seen="whole") for version in versions},
    )
    with pytest.raises(ResolutionStoppedError, match=f"each of {ROUND_LIMIT} sets"):
        reader.learn()
    assert len(reader.asked) == ROUND_LIMIT


def test_strict_reads_on_until_each_library_is_decided() -> None:
    reader = _reader(
        [_KERNEL],
        {
            ("kernel-1.0", "T2"): {"libraries": [{"path": "kernel/ops.so"}]},
            ("kernel-1.0", "T3"): _code("sm_120", seen="part"),
        },
        **{"verify-sm": "strict"},
    )
    assert _chosen(reader.learn()) == {"kernel": "1.0"}
    assert reader.asked == [("kernel-1.0", "T2"), ("kernel-1.0", "T3")]


def test_auto_is_content_with_the_heads() -> None:
    reader = _reader([_KERNEL], {("kernel-1.0", "T2"): {"libraries": [{"path": "kernel/ops.so"}]}})
    reader.learn()
    assert reader.asked == [("kernel-1.0", "T2")]


def test_strict_takes_no_list_for_the_bytes_and_reads_them() -> None:
    heads = {"libraries": [{"path": "kernel/ops.so"}]}
    reader = _reader(
        [_KERNEL],
        {("kernel-1.0", "T2"): heads, ("kernel-1.0", "T3"): _code("sm_90", seen="whole")},
        knowledge=_CLAIM,
        **{"verify-sm": "strict"},
    )
    with pytest.raises(NoSolutionError) as refused:
        reader.learn()
    assert reader.asked == [("kernel-1.0", "T2"), ("kernel-1.0", "T3")]
    details = [each.fact.detail for each in refused.value.conflict.facts]
    assert "holds sm_90, nothing for sm_120" in details


def test_strict_cannot_tell_of_what_is_only_said_to_be_there() -> None:
    reader = _reader([_KERNEL], {}, knowledge=_CUDA + _CLAIM, **{"verify-sm": "strict"})
    with pytest.raises(ResolutionStoppedError, match=r"only said to be in it .*it is broken"):
        reader.learn()
    assert reader.asked == [("kernel-1.0", "T2")]


def test_strict_cannot_tell_of_a_library_that_stays_undecided() -> None:
    reader = _reader(
        [_KERNEL],
        {("kernel-1.0", tier): _code("sm_90", seen="part") for tier in ("T2", "T3")},
        **{"verify-sm": "strict"},
        knowledge=_CUDA,
    )
    with pytest.raises(ResolutionStoppedError, match=r"kernel 1\.0: kernel/ops\.so for sm_120\Z"):
        reader.learn()
    assert reader.asked == [("kernel-1.0", "T2"), *[("kernel-1.0", "T3")] * 2]


def test_strict_reads_files_of_device_code_of_which_only_names_were_seen() -> None:
    files = {"files": {"sm_100a": 2}}
    reader = _reader(
        [{"file": f"kernel-1.0-{_ANY}.whl"}],
        {
            ("kernel-1.0", "T2"): {**files, "named": True},
            ("kernel-1.0", "T3"): {**files, "named": True},
            ("kernel-1.0", "T4"): files,
        },
        knowledge=_CUDA,
        **{"verify-sm": "strict"},
    )
    with pytest.raises(NoSolutionError):
        reader.learn()
    assert reader.asked == [("kernel-1.0", tier) for tier in ("T2", "T3", "T4")]


def test_strict_does_not_ask_of_what_compiles_on_the_machine() -> None:
    knowledge = _CUDA + _CUDA.replace("cuda-project", "compiles")
    reader = _reader(
        [_KERNEL],
        {("kernel-1.0", "T2"): {"libraries": [{"path": "kernel/ops.so"}]}},
        knowledge=knowledge,
        **{"verify-sm": "strict"},
    )
    assert _chosen(reader.learn()) == {"kernel": "1.0"}
    assert reader.asked == [("kernel-1.0", "T2")]


@pytest.mark.parametrize(("size", "tier"), [(19_999_999, "T4"), (20_000_000, "T2"), (None, "T2")])
def test_a_small_wheel_of_cuda_is_read_whole_at_once(size: int | None, tier: str) -> None:
    wheel = _KERNEL if size is None else {**_KERNEL, "size": size}
    reader = _reader([wheel], {("kernel-1.0", tier): {}}, knowledge=_CUDA)
    reader.learn()
    assert reader.asked == [("kernel-1.0", tier)]


def test_a_wheel_that_requires_a_runtime_library_is_one_of_cuda() -> None:
    runtime = """
[[entry]]
kind = "runtime-library"
project = "runtime"
value = 13
source = "made up"
date = "2026-12-01"
"""
    reader = _reader(
        [{**_KERNEL, "size": 5, "requires": ["runtime"]}, {"file": f"runtime-13.0-{_ANY}.whl"}],
        {("kernel-1.0", "T4"): {}},
        knowledge=runtime,
    )
    reader.learn()
    assert reader.asked == [("kernel-1.0", "T4")]


_PAIRED = """
[[entry]]
kind = "label-word"
project = "torch"
source = "made up"
date = "2026-12-01"

[[entry]]
kind = "pairing"
project = "kernel"
versions = "==1.0"
value = { torch = "2.9" }
source = "METADATA of a server that pins both"
date = "2026-12-01"
"""
_SYMBOL = "_ZN3c106newestEv"


def _paired(bytes_of: Mapping[tuple[str, str], Mapping[str, Any]], **more: object) -> _Reader:
    return _reader(
        [_KERNEL, {"file": f"torch-2.11.0-{_LINUX}.whl"}],
        bytes_of,
        requirements=["kernel", "torch==2.11.0"],
        knowledge=_PAIRED,
        exports={"torch": {"2.11.0": [_SYMBOL], "2.9.1": []}},
        **more,
    )


def test_a_refusal_by_a_pairing_is_said_after_its_wheels_were_read() -> None:
    wants = {"libraries": [{"path": "kernel/ops.so", "torch": ["_ZN3c104goneEv"]}]}
    reader = _paired({("kernel-1.0", "T2"): wants})
    with pytest.raises(NoSolutionError) as refused:
        reader.learn()
    assert ("kernel-1.0", "T2") in reader.asked
    details = " ".join(each.fact.detail for each in refused.value.conflict.facts)
    assert "needs `c10::gone`, which torch 2.11.0 does not export" in details


def test_bytes_overrule_the_pairing_that_refused() -> None:
    wants = {"libraries": [{"path": "kernel/ops.so", "torch": [_SYMBOL]}]}
    reader = _paired({("kernel-1.0", "T2"): wants, ("torch-2.11.0", "T2"): {}})
    assert _chosen(reader.learn()) == {"kernel": "1.0", "torch": "2.11.0"}


def test_a_pairing_whose_wheel_cannot_be_read_refuses() -> None:
    reader = _paired({})
    with pytest.raises(NoSolutionError) as refused:
        reader.learn()
    assert "is built for torch 2.9" in [e.fact.detail for e in refused.value.conflict.facts]


def test_of_a_refused_project_the_newest_few_that_were_asked_for_are_read() -> None:
    wheels = [{"file": f"kernel-{n}.0-{_LINUX}.whl"} for n in range(9, 0, -1)]
    torch = {"file": f"torch-2.11.0-{_LINUX}.whl"}
    knowledge = _PAIRED.replace("==1.0", ">=1")
    requirements = ["kernel<8", "torch==2.11.0"]
    reader = _reader([*wheels, torch], {}, requirements=requirements, knowledge=knowledge)
    with pytest.raises(NoSolutionError):
        reader.learn()
    assert reader.asked == [(f"kernel-{n}.0", "T2") for n in (7, 6, 5, 4)]


def test_a_wheel_asked_for_by_its_url_is_read_and_carried_over() -> None:
    url = f"https://elsewhere.test/kernel-1.0-{_LINUX}.whl"
    reader = _reader(
        [{**_KERNEL, "url": url}],
        {("kernel-1.0", "T2"): _code("sm_120")},
        requirements=[f"kernel @ {url}"],
    )
    learnt = reader.learn()
    assert learnt.solution.candidates["kernel"].direct
    assert learnt.world is not learnt.searched
    assert learnt.world.facts.of(learnt.solution.candidates["kernel"].file) is not None
