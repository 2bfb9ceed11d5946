import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.cuda import (
    Architecture,
    ComputeCapability,
    CudaVersion,
    coverage,
    cubin_runs,
    parse_architecture,
    parse_compute_capability,
    parse_cuda_version,
    ptx_accepts,
    shipped_tables,
    toolkit_targets,
)

TARGETS = shipped_tables().targets
releases = st.sampled_from(sorted(TARGETS))
devices = st.builds(ComputeCapability, st.integers(3, 15), st.integers(0, 9))


def test_the_targets_of_every_release_read_back() -> None:
    for cuda, targets in TARGETS.items():
        assert toolkit_targets(cuda) == targets
        assert list(targets) == sorted(set(targets))
        for target in targets:
            assert parse_architecture(str(target)) == target
            assert target.kind == "sm"


def test_a_release_that_was_not_measured_has_no_targets() -> None:
    assert toolkit_targets(CudaVersion(12, 7)) is None


def test_inside_a_major_releases_only_gain_targets() -> None:
    for older, newer in zip(sorted(TARGETS), sorted(TARGETS)[1:], strict=False):
        if older.major == newer.major:
            assert set(TARGETS[older]) <= set(TARGETS[newer])


@pytest.mark.parametrize(
    ("cuda", "device", "verdict"),
    [
        ("13.0", "7.0", "absent"),
        ("13.0", "7.2", "absent"),
        ("12.6", "12.0", "ptx-only"),
        ("12.6", "10.0", "ptx-only"),
        ("13.0", "12.0", "native"),
        ("12.8", "12.1", "native"),
        ("12.8", "11.0", "native"),
        ("13.0", "10.1", "native"),
        ("13.0", "10.7", "native"),
        ("12.0", "3.5", "absent"),
        ("11.7", "9.0", "ptx-only"),
        ("13.5", "14.0", "ptx-only"),
        # Not measured: 12.7, 13.6 and newer, 11.0 to 11.6, and majors nobody knows.
        ("13.6", "7.0", "absent"),
        ("13.6", "12.0", "native"),
        ("13.6", "14.0", "unknown"),
        ("12.7", "9.0", "native"),
        ("12.7", "12.0", "unknown"),
        ("12.7", "14.0", "ptx-only"),
        ("11.4", "12.0", "ptx-only"),
        ("11.4", "8.0", "unknown"),
        ("11.4", "3.0", "unknown"),
        ("14.2", "12.0", "unknown"),
    ],
)
def test_a_release_covers_a_device(cuda: str, device: str, verdict: str) -> None:
    assert coverage(parse_cuda_version(cuda), parse_compute_capability(device)) == verdict


@given(releases, devices)
def test_coverage_agrees_with_the_predicates(cuda: CudaVersion, device: ComputeCapability) -> None:
    native = any(cubin_runs(target, device, built_with=cuda) for target in TARGETS[cuda])
    lowest = Architecture(TARGETS[cuda][0].number, "", "compute")
    expected = "native" if native else "ptx-only" if ptx_accepts(lowest, device) else "absent"
    assert coverage(cuda, device) == expected


@given(releases, devices)
def test_what_a_release_reaches_its_later_minors_reach_too(
    cuda: CudaVersion, device: ComputeCapability
) -> None:
    later = [other for other in TARGETS if other.major == cuda.major and other >= cuda]
    if coverage(cuda, device) == "native":
        assert {coverage(other, device) for other in later} == {"native"}
