import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import ComputeCapability, capability_of, shipped_tables
from cudalock.errors import UsageError

NAMES = [
    (name, capability) for capability, names in shipped_tables().devices.items() for name in names
]


def test_every_name_of_the_table_leads_to_its_capability_and_to_no_other() -> None:
    for name, capability in NAMES:
        assert capability_of(name) == capability, name


@given(
    st.sampled_from(NAMES),
    st.sampled_from(["{}", "NVIDIA {}", "nvidia-{}", "{} GPU", "  {}  ", "{}_80GB", "{} PCIe"]),
    st.sampled_from([str.lower, str.upper, str.title]),
    st.sampled_from([" ", "-", "_", "  "]),
)
def test_spelling_and_the_words_around_a_name_do_not_matter(
    named: tuple[str, ComputeCapability], frame: str, case: type[str], gap: str
) -> None:
    name, capability = named
    assert capability_of(frame.format(case(name)).replace(" ", gap)) == capability


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("v100", "7.0"),
        ("h100", "9.0"),
        ("b200", "10.0"),
        ("rtx-pro-6000", "12.0"),
        ("rtxpro6000", "12.0"),
        ("RTX PRO 6000 Blackwell", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "12.0"),
        ("5090", "12.0"),
        ("NVIDIA GeForce RTX 5070 Ti", "12.0"),
        ("5070ti", "12.0"),
        ("rtx4070tisuper", "8.9"),
        ("RTX 4090 D", "8.9"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "8.6"),
        ("1080", "6.1"),
        ("gb10", "12.1"),
        ("DGX Spark", "12.1"),
        ("l40s", "8.9"),
        ("Tesla T4", "7.5"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("NVIDIA A100-SXM4-40GB", "8.0"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "8.0"),
        ("NVIDIA H100 80GB HBM3", "9.0"),
        ("NVIDIA H100 NVL", "9.0"),
        ("NVIDIA GH200 144G HBM3e", "9.0"),
        ("NVIDIA H200", "9.0"),
        ("A10G", "8.6"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("NVIDIA RTX A6000", "8.6"),
        ("Quadro RTX 6000", "7.5"),
        ("GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("Orin (nvgpu)", "8.7"),
        ("NVIDIA Jetson AGX Orin Developer Kit", "8.7"),
        ("NVIDIA Thor", "11.0"),
        ("GB300", "10.3"),
    ],
)
def test_names_as_people_and_drivers_write_them(name: str, capability: str) -> None:
    assert str(capability_of(name)) == capability


@pytest.mark.parametrize(
    ("names", "capability"),
    [
        ("t4", "7.5"),
        ("2080ti titan-rtx quadro-rtx-8000", "7.5"),
        ("a100 a100-80gb a100-sxm4-80gb a100-pcie a30", "8.0"),
        ("a10 a10g a16 a2 a40 rtx-a6000 a6000 3090 3060", "8.6"),
        ("orin agx-orin orin-nx orin-nano jetson-orin jetson-agx-orin", "8.7"),
        ("l4 l40 l40s 4090 rtx-4090 rtx4090 rtx-6000-ada", "8.9"),
        ("h20 h100 h100-sxm h100-pcie h100-nvl hgx-h100 h200 h800 gh200", "9.0"),
        ("b200 b200-sxm hgx-b200 gb200", "10.0"),
        ("b300 gb300", "10.3"),
        ("rubin", "10.7"),
        ("thor jetson-thor agx-thor t4000 t5000", "11.0"),
        ("5090 rtx-5090 rtx5090 geforce-5090 5080 5070ti 5060 5050", "12.0"),
        ("rtx-pro-6000 pro-6000 rtx-pro-6000-server rtx-pro-6000-max-q rtx-pro-2000", "12.0"),
        ("gb10 gb-10 dgx-spark dgx_spark dgxspark spark", "12.1"),
    ],
)
def test_each_short_name_is_that_of_one_device(names: str, capability: str) -> None:
    assert {str(capability_of(name)) for name in names.split()} == {capability}


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RTX 6000", ["RTX A6000", "RTX PRO 6000"]),
        ("rtx 5099", ["RTX 5090"]),
        ("h1000", ["H100"]),
        ("h101", ["H100"]),
        ("b-220", ["B200"]),
        ("l40ss", ["L40S"]),
        ("dgx-sparc", ["Spark"]),
        ("thorr", ["Thor"]),
        ("rtx-pro-7000", ["RTX PRO 6000"]),
        ("RTX 5000", ["RTX A5000"]),
    ],
)
def test_a_name_that_is_wrong_or_stands_for_several_is_refused_with_near_ones(
    name: str, near: list[str]
) -> None:
    with pytest.raises(UsageError, match=rf"found `{name}`; near: .*--sm 12\.0") as caught:
        capability_of(name)
    assert set(near) <= set(re.findall(r"`([^`]+)`", caught.value.message))
    assert caught.value.flag == "--sm"


@pytest.mark.parametrize(
    "name", ["", "nvidia", "MI300X", "x" * 10_000, "\N{GREEK CAPITAL LETTER TAU}4"]
)
def test_a_name_near_nothing_is_refused_without_advice_on_names(name: str) -> None:
    with pytest.raises(UsageError, match=r"name of one GPU, found `[^`]*` \(or give") as caught:
        capability_of(name)
    assert len(caught.value.message) < 300
