import itertools
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import (
    Architecture,
    CudaVersion,
    LocalLabel,
    parse_cuda_version,
    parse_local_label,
    rank,
    shipped_tables,
)

REAL: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("data").joinpath("labels.toml").read_text(encoding="utf-8")
)["labels"]

releases = st.builds(CudaVersion, st.integers(10, 39), st.integers(0, 99))
labels = st.one_of(
    st.sampled_from(sorted(REAL)),
    releases.map(lambda cuda: cuda.label),
    st.integers(10, 39).map(lambda major: f"cu{major}"),
    st.sampled_from(["", "cu99", "cu12torch2.8cxx11abiTRUE", "vulkan", "what"]),
)


def summary(label: LocalLabel) -> str:
    said: list[str] = [label.vendor] if label.vendor else []
    if label.cuda_major is not None:
        said.append(f"cuda={label.cuda or label.cuda_major}")
    if label.torch is not None:
        release = ".".join(map(str, label.torch))
        said.append(f"torch={release}{label.torch_pre or ''}{'+' * label.torch_or_newer}")
    if label.cxx11abi is not None:
        said.append(f"abi={'new' if label.cxx11abi else 'old'}")
    said += map(str, label.sm)
    said += [f"git={label.git}"] if label.git else []
    said += [f"date={label.date}"] if label.date else []
    said += [f"other={word}" for word in label.other]
    said += [f"unread={part}" for part in label.unread]
    return " ".join(said)


@pytest.mark.parametrize("text", REAL)
def test_the_label_of_a_real_wheel_says(text: str) -> None:
    assert summary(parse_local_label(text)) == REAL[text]
    assert str(parse_local_label(text)) == text


@pytest.mark.parametrize("text", REAL)
def test_capitals_do_not_matter_as_packaging_lowers_them(text: str) -> None:
    assert summary(parse_local_label(text.lower())) == REAL[text]
    assert summary(parse_local_label(text.upper())).lower() == REAL[text].lower()


def test_no_label_of_a_real_wheel_stays_unread(capsys: pytest.CaptureFixture[str]) -> None:
    unread = [text for text in REAL if parse_local_label(text).unread]
    with capsys.disabled():
        told = ", ".join(unread) or "none"
        print(f"\nlabels with an unread part, of {len(REAL)}: {told}")  # noqa: T201 - asked for
    assert unread == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gaa384b3c0.cu130", "cuda cuda=13.0 git=aa384b3c0"),
        ("cu1210", "cuda cuda=12.10"),
        ("cu75", "cuda cuda=7.5"),
        ("cu-13-0", "unread=cu-13-0"),
        ("cu130-torch2.9", "cuda cuda=13.0 torch=2.9"),
        ("cu130_torch2.9", "cuda cuda=13.0 torch=2.9"),
        ("cu12.20260318", "cuda cuda=12 date=20260318"),
        ("cu12.1a2b3c4", "cuda cuda=12 git=1a2b3c4"),
        ("cu12.cu128", "cuda cuda=12.8"),
        ("cu128.cu12", "cuda cuda=12.8"),
        ("cu130.cu130", "cuda cuda=13.0"),
        ("cuda", "cuda"),
        ("34c6371d24.nv25.8", "cuda git=34c6371d24"),
        ("nv25.08", "cuda"),
        ("sm120", "cuda sm_120"),
        ("gb300", "cuda sm_103"),
        ("cu128.B200.H100", "cuda cuda=12.8 sm_90 sm_100"),
        ("vulkan", "vulkan"),
        ("sm_90a.sm_80", "cuda sm_80 sm_90a"),
        ("gfx942", "rocm"),
        ("rocm", "rocm"),
        ("xpu.cxx11.abi", "xpu abi=new"),
        ("torch2", "torch=2"),
        ("torch2.9.0rc1", "torch=2.9.0rc1"),
        ("torch2.20260318", "torch=2 date=20260318"),
        ("torch.2.11", "torch=2.11"),
    ],
)
def test_a_label_says(text: str, said: str) -> None:
    assert summary(parse_local_label(text)) == said


@pytest.mark.parametrize(
    ("text", "torch"),
    [
        ("pt28cu128", (2, 8)),
        ("pt210cu128", (2, 10)),
        ("cu130.torch211", (2, 11)),
        ("cu13.torch211", (2, 11)),
        ("cu121.torch211", (2, 1, 1)),
        ("cu118torch220", (2, 2, 0)),
        ("cu11torch210", (2, 1, 0)),
        ("cu140torch220", (2, 20)),
        ("cu140torch2201", (2, 20, 1)),
        ("pt210", (2, 10)),
        ("pt271", (2, 7, 1)),
        ("torch271", (2, 7, 1)),
    ],
)
def test_a_torch_release_without_dots_is_read_by_the_cuda_beside_it(
    text: str, torch: tuple[int, ...]
) -> None:
    label = parse_local_label(text)
    assert label.torch == torch
    assert label.unread == ()


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("torch210", ("torch210",)),
        ("cu12torch210", ("torch210",)),
        ("cu125torch210", ("torch210",)),
        ("cu130torch2701", ("torch2701",)),
        ("cu130torch21001", ("torch21001",)),
        ("torch", ("torch",)),
        ("torch29.1", ("torch29.1",)),
        ("cu99", ("cu99",)),
        ("cu1205", ("cu1205",)),
        ("cu750", ("cu750",)),
        ("cu5", ("cu5",)),
        ("cu12x", ("cu12x",)),
        ("xcu130", ("xcu130",)),
        ("1234567", ("1234567",)),
        ("20261301", ("20261301",)),
        ("deadbeef", ("deadbeef",)),
        ("b999", ("b999",)),
        ("a16", ("a16",)),
        ("cu130gb300", ("cu130gb300",)),
        ("cu118.1", ("1",)),
        ("my.own.cu130.build.of.mine", ("my.own", "build.of.mine")),
        ("MyBuild.cu130", ("MyBuild",)),
        ("cu130.torch2.9foo", ("torch2.9foo",)),
        ("sm9", ("sm9",)),
        ("cu130é", ("cu130é",)),
        ("cu\u0661\u0663\u0660", ("cu\u0661\u0663\u0660",)),
    ],
)
def test_what_is_no_word_stays_unread_and_nothing_is_guessed(
    text: str, unread: tuple[str, ...]
) -> None:
    assert parse_local_label(text).unread == unread


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("cu128.cu130", ("cu128", "cu130")),
        ("cu12.cu130", ("cu12", "cu130")),
        ("cpu.cu130", ("cpu", "cu130")),
        ("rocm7.2.sm120", ("rocm7.2", "sm120")),
        ("vulkan.gb300", ("vulkan", "gb300")),
        ("torch2.9.torch2.10", ("torch2.9", "torch2.10")),
        ("cxx11abiTRUE.cxx11abiFALSE", ("cxx11abiTRUE", "cxx11abiFALSE")),
    ],
)
def test_parts_that_contradict_each_other_are_not_believed(
    text: str, unread: tuple[str, ...]
) -> None:
    label = parse_local_label(text)
    assert label.unread == unread
    assert (label.cuda, label.cuda_major, label.torch, label.cxx11abi) == (None, None, None, None)
    assert label.sm == ()


def test_a_number_of_two_torch_spellings_is_one_claim_only_if_they_agree() -> None:
    assert parse_local_label("torch2.9.torch2.9").torch == (2, 9)


def test_no_label_is_untagged_and_says_nothing() -> None:
    assert parse_local_label(None) == parse_local_label("") == LocalLabel()


def test_a_label_of_a_thousand_characters_is_unread_as_a_whole() -> None:
    text = "cu130." * 200
    assert parse_local_label(text) == LocalLabel(text=text, unread=(text,))


def test_an_architecture_of_tomorrow_needs_no_code() -> None:
    label = parse_local_label("cu142.sm140a")
    assert (label.cuda, label.sm) == (CudaVersion(14, 2), (Architecture(140, "a"),))


@given(st.text(max_size=60) | st.text(alphabet="cu130torchp2.-_dgafsmx1", max_size=60))
def test_any_text_is_read_and_every_unread_part_is_in_it(text: str) -> None:
    label = parse_local_label(text)
    assert label.text == text
    assert all(part in text for part in (*label.unread, *label.other))
    assert label == parse_local_label(text, tables=shipped_tables())


@given(releases)
def test_the_label_of_a_release_reads_back(cuda: CudaVersion) -> None:
    label = parse_local_label(cuda.label)
    assert (label.cuda, label.cuda_major, label.vendor) == (cuda, cuda.major, "cuda")
    assert parse_local_label(f"cu.{cuda}").cuda == parse_local_label(f"cu{cuda}").cuda == cuda


@given(st.lists(labels, max_size=8), releases)
def test_ranking_is_a_total_order(texts: list[str], newest: CudaVersion) -> None:
    ranks = [rank(parse_local_label(text), newest=newest) for text in texts]
    for left, right in itertools.product(ranks, repeat=2):
        assert (left < right) + (left == right) + (left > right) == 1
    for one, two, three in itertools.product(ranks, repeat=3):
        assert not (one <= two <= three) or one <= three


@given(releases, releases, releases)
def test_ranking_is_by_number(one: CudaVersion, two: CudaVersion, newest: CudaVersion) -> None:
    nearer = rank(parse_local_label(one.label), newest=newest) < rank(
        parse_local_label(two.label), newest=newest
    )
    if one <= newest and two <= newest:
        assert nearer == (one > two)
    elif one > newest and two > newest:
        assert nearer == (one < two)
    else:
        assert nearer == (one <= newest)


@given(labels, labels, releases)
def test_labels_share_a_rank_only_if_they_name_the_same_cuda(
    left: str, right: str, newest: CudaVersion
) -> None:
    one, two = parse_local_label(left), parse_local_label(right)
    if rank(one, newest=newest) == rank(two, newest=newest):
        assert (one.cuda, one.cuda_major) == (two.cuda, two.cuda_major)


def test_nearest_first_is_the_order_of_the_design() -> None:
    newest = parse_cuda_version("13.1")
    ordered = [
        "cu131", "cu130", "cu1210", "cu129", "cu128", "cu132", "cu134", "cu140", "cu13", "cu12",
        "cu11", "cu14", "torch2.9", "cpu",
    ]  # fmt: skip
    shuffled = sorted(ordered)
    assert shuffled != ordered
    assert sorted(shuffled, key=lambda t: rank(parse_local_label(t), newest=newest)) == ordered
    last = [rank(parse_local_label(text), newest=newest) for text in ("cpu", "xpu", "rocm6.4")]
    assert len(set(last)) == 1
    assert parse_local_label("pt210cu130").torch > parse_local_label("pt28cu130").torch  # type: ignore[operator] # both are read
