"""Which wheel variants suit a machine, and the order among them, as PEP 825 and as uv have it."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_wheel
from cudalock.cuda import parse_compute_capability, parse_cuda_version
from cudalock.wheel.variant_match import (
    VariantMachine,
    judge_variant,
    variant_bound,
    variant_code,
    variant_order,
)
from cudalock.wheel.variants import VariantsMetadata, read_variants_table
from loopback import Asked, Reply, serve, serve_file

SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"


def machine(
    runs: str | None = "13.1", *sm: str, kind: str = "x86_64", cpu: bool = False
) -> VariantMachine:
    return VariantMachine(
        machine=kind,
        cpu=cpu,
        runs=None if runs is None else parse_cuda_version(runs),
        capabilities=tuple(parse_compute_capability(text) for text in sm),
    )


def metadata(variants: Mapping[str, Any], *namespaces: str) -> VariantsMetadata:
    table = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": list(namespaces or ("nvidia",))},
        "variants": variants,
    }
    return read_variants_table(table, where="w.json")


def one(properties: Mapping[str, Mapping[str, list[str]]]) -> VariantsMetadata:
    return metadata({"one": properties}, "nvidia", "x86_64", "aarch64", "blas")


def told(properties: Mapping[str, Mapping[str, list[str]]], of: VariantMachine) -> list[str]:
    return [f"{m.kind} {m.about}: {m.detail}" for m in judge_variant("one", one(properties), of)]


def nvidia(**features: str) -> dict[str, dict[str, list[str]]]:
    return {"nvidia": {name: text.split() for name, text in features.items()}}


@pytest.mark.parametrize(
    ("bounds", "runs", "suits"),
    [
        ("13.0", "13.0", True),
        ("13.0", "13.1", True),
        ("13.1", "13.0", False),
        ("12.9", "12.10", True),
        ("12.10", "12.9", False),
        ("13", "13.0", True),
        ("13", "12.9", False),
        ("12", "13.1", True),
        ("13.2 12.8", "13.0", True),
        ("13.2 13.3", "13.0", False),
        ("13.2", None, True),
    ],
)
def test_a_lower_bound_is_met_by_a_driver_of_that_cuda_or_newer(
    bounds: str, runs: str | None, *, suits: bool
) -> None:
    found = told(nvidia(cuda_version_lower_bound=bounds), machine(runs))
    assert (found == []) is suits
    assert suits or found[0].startswith("unfit driver: asks for a driver of CUDA")


@pytest.mark.parametrize(
    ("bound", "runs", "kind"),
    [
        ("13", "12.9", None),
        ("13.1", "13.0", None),
        ("13", "13.0", "unfit"),
        ("13.1", "13.1", "unfit"),
        ("13", None, "unknown"),
        ("next", "12.0", "unknown"),
    ],
)
def test_an_upper_bound_is_itself_too_new(bound: str, runs: str | None, kind: str | None) -> None:
    found = told(nvidia(cuda_version_upper_bound=bound), machine(runs))
    assert [text.partition(" ")[0] for text in found] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("values", "sm", "verdict"),
    [
        ("120_real", ("12.0",), ""),
        ("120_real", ("12.1",), ""),
        ("121_real", ("12.0",), "unfit"),
        ("90_real", ("12.0",), "unfit"),
        ("90_real 120_real", ("9.0", "12.0"), ""),
        ("120_real", ("9.0", "12.0"), "unfit"),
        ("120a_real", ("12.1",), "unfit"),
        ("120f_real", ("12.1",), ""),
        ("90_virtual", ("12.0",), ""),
        ("120_virtual", ("9.0",), "unfit"),
        ("sm120", ("12.0",), "unknown"),
        ("120_real sm90", ("12.0",), ""),
        ("120_real", (), "unknown"),
    ],
)
def test_every_gpu_of_the_box_must_be_served(
    values: str, sm: tuple[str, ...], verdict: str
) -> None:
    found = told(nvidia(cuda_version_lower_bound="13.0", sm_arch=values), machine("13.1", *sm))
    assert [text.partition(" ")[0] for text in found] == ([verdict] if verdict else [])


def test_what_no_target_says_is_unknown_and_never_suits() -> None:
    assert told(nvidia(tensor_cores="5"), machine()) == [
        "unknown machine: asks for nvidia :: tensor_cores :: 5"
    ]
    blas = {"blas": {"library": ["mkl", "openblas"]}}
    assert told(blas, machine()) == ["unknown machine: asks for blas :: library :: mkl or openblas"]
    assert told(nvidia(cuda_version_lower_bound="next"), machine()) == [
        "unknown driver: asks for CUDA `next`, which was not understood"
    ]


def test_of_processors_only_the_baseline_is_known() -> None:
    for namespace, feature, base, more in (
        ("x86_64", "level", "v1", "v3"),
        ("aarch64", "version", "8a", "9a"),
    ):
        here, elsewhere = machine(kind=namespace), machine(kind="other")
        assert told({namespace: {feature: [base]}}, here) == []
        assert told({namespace: {feature: [more]}}, here)[0].startswith("unknown machine")
        assert told({namespace: {feature: [base]}}, elsewhere)[0].startswith("unfit machine")


def test_a_target_without_cuda_takes_no_variant_for_gpus() -> None:
    found = told(nvidia(sm_arch="120_real"), machine(None, cpu=True))
    assert found == ["unfit machine: is for NVIDIA GPUs"]
    assert told({}, machine(None, cpu=True)) == []


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ("13.0", (13, parse_cuda_version("13.0"))),
        ("13.0 12.8", (12, parse_cuda_version("12.8"))),
        ("12", (12, None)),
        ("12 13.0", (12, None)),
        ("12 12.0", (12, parse_cuda_version("12.0"))),
        ("next", None),
        ("12.8 next", None),
        ("012.8", None),
        ("12.8.1", None),
    ],
)
def test_the_oldest_cuda_that_suits_is_what_a_variant_asks_for(bounds: str, found: object) -> None:
    assert variant_bound("one", one(nvidia(cuda_version_lower_bound=bounds))) == found


def test_device_code_of_a_variant_is_what_it_declares() -> None:
    bound = {"cuda_version_lower_bound": ["13.0"]}
    code = variant_code(
        "cu130", metadata({"cu130": {"nvidia": {**bound, "sm_arch": ["90_virtual"]}}})
    )
    assert code is not None
    # PTX is not newer than what the oldest driver that suits compiles.
    assert [str(image) for image in code.images] == ["compute_90@9.0"]
    assert code.source == "variant cu130 (w.json)"
    assert (
        variant_code("cu130", metadata({"cu130": {"nvidia": {"sm_arch": ["x", "90_real"]}}}))
        is None
    )
    assert variant_code("cu130", metadata({"cu130": {"nvidia": bound}})) is None
    assert variant_code("cu130", metadata({})) is None


def test_the_namespace_that_comes_first_decides_first() -> None:
    variants = {
        "a": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}},
        "b": {"nvidia": {"cuda_version_lower_bound": ["12.8"]}, "x86_64": {"level": ["v1"]}},
    }
    first = metadata(variants, "x86_64", "nvidia")
    assert sorted(variants, key=lambda label: variant_order(label, first, machine())) == ["b", "a"]
    second = metadata(variants, "nvidia", "x86_64")
    assert sorted(variants, key=lambda label: variant_order(label, second, machine())) == ["a", "b"]


def test_more_features_come_before_fewer_and_then_labels_decide() -> None:
    bound = {"cuda_version_lower_bound": ["13.0"]}
    variants: dict[str, Any] = {
        "null": {},
        "b": {"nvidia": bound},
        "c": {"nvidia": {**bound, "sm_arch": ["120_real"]}},
        "a": {"nvidia": bound},
    }
    found = metadata(variants)
    order = sorted(variants, key=lambda label: variant_order(label, found, machine("13.1", "12.0")))
    assert order == ["c", "a", "b", "null"]


def test_of_several_gpus_the_one_that_is_served_worst_decides() -> None:
    bound = ["13.0"]
    variants = {
        "a": {"nvidia": {"cuda_version_lower_bound": bound, "sm_arch": ["120_real", "90_virtual"]}},
        "b": {"nvidia": {"cuda_version_lower_bound": bound, "sm_arch": ["100_real", "120_real"]}},
    }
    found = metadata(variants)
    # The first serves 10.0 by PTX alone.
    box = machine("13.1", "10.0", "12.0")
    assert sorted(variants, key=lambda label: variant_order(label, found, box)) == ["b", "a"]


_VALUES = st.lists(
    st.from_regex(r"[0-9]{1,3}[af]?_(real|virtual)|1[1-4](\.[0-9])?|[a-z]", fullmatch=True),
    min_size=1,
    max_size=4,
    unique=True,
)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.dictionaries(
            st.sampled_from(["nvidia", "x86_64", "other"]),
            st.dictionaries(
                st.sampled_from(
                    ["sm_arch", "cuda_version_lower_bound", "cuda_version_upper_bound", "level"]
                ),
                _VALUES,
            ),
        ),
    ),
    st.sampled_from([None, "11.8", "12.8", "13.0"]),
    st.lists(st.sampled_from(["9.0", "10.0", "12.0", "12.1"]), max_size=2, unique=True),
)
def test_any_properties_are_judged_and_ordered(
    variants: dict[str, Any], runs: str | None, sm: list[str]
) -> None:
    found = metadata(variants, "nvidia", "x86_64", "other")
    here = machine(runs, *sm)
    keys = [variant_order(label, found, here) for label in (*variants, "null")]
    assert len(set(keys)) == len(keys)
    assert max(keys)[1] == "null" or not variants.get(max(keys)[1])
    for label in variants:
        judge_variant(label, found, here)


_UV = {
    "cu130_sm120": {"cuda_version_lower_bound": ["13.0"], "sm_arch": ["120_real"]},
    "cu13": {"cuda_version_lower_bound": ["13"]},
    "cu130_many": {
        "cuda_version_lower_bound": ["13.0"],
        "sm_arch": ["100_real", "90_real", "90_virtual"],
    },
    "cu128_sm90": {"cuda_version_lower_bound": ["12.8"], "sm_arch": ["90_real"]},
    "cu126": {"cuda_version_lower_bound": ["12.6"], "cuda_version_upper_bound": ["13"]},
    "cu12_or": {"cuda_version_lower_bound": ["12.2", "12.9"]},
    "sm80": {"sm_arch": ["80_real", "80_virtual"]},
}


@pytest.fixture(scope="module")
def uv_index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, VariantsMetadata]]:
    """An index with every variant of `_UV`, as uv's preview of wheel variants reads it."""
    folder = tmp_path_factory.mktemp("variants")
    variants: dict[str, Any] = {"null": {}, **{k: {"nvidia": v} for k, v in _UV.items()}}
    plugin = "nvidia_variant_provider.plugin:NvidiaVariantPlugin"
    document = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": ["nvidia"]},
        "providers": {
            "nvidia": {"requires": ["nvidia-variant-provider>=0.0.1"], "plugin-api": plugin}
        },
        "variants": variants,
    }
    wheel = make_wheel(folder, "left", "3.0")
    for label, properties in variants.items():
        one = {**document, "variants": {label: properties}}
        path = folder / f"{wheel.stem}-{label}.whl"
        path.write_bytes(wheel.read_bytes())
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("left-3.0.dist-info/variant.json", json.dumps(one))
    (folder / "left-3.0-variants.json").write_text(json.dumps(document))
    page = "".join(f'<a href="/{p.name}">{p.name}</a>' for p in sorted(folder.iterdir()))

    def answer(asked: Asked) -> Reply:
        path = folder / asked.path.strip("/")
        if path.is_file():
            return serve_file(path.read_bytes(), asked)
        return Reply(200, page.encode(), {"Content-Type": "text/html"})

    with serve(answer) as site:
        yield site.url, read_variants_table(document, where="w.json")


@pytest.mark.parametrize("runs", ["12.2", "12.6", "12.8", "12.9", "13.0", "13.1"])
@pytest.mark.parametrize("sm", ["8.0", "9.0", "10.0", "12.1"])
def test_uv_takes_the_same_variant(
    uv_index: tuple[str, VariantsMetadata], tmp_path: Path, runs: str, sm: str
) -> None:
    url, found = uv_index
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "NO_PROXY": "127.0.0.1",
        "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": runs,
        "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": sm,
    }
    command = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--no-deps", "-v"]
    command += ["--preview-features", "wheel-variants", "--dry-run", "--python", sys.executable]
    command += ["--target", str(tmp_path / "site"), "--index-url", f"{url}/simple", "left"]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    taken = re.findall(r"Selecting: .*none-any-([0-9a-z_.]+)\.whl", result.stderr)
    here = machine(runs, sm)
    suiting = [label for label in found.variants if not judge_variant(label, found, here)]
    assert taken == [min(suiting, key=lambda label: variant_order(label, found, here))]
