"""Device code: how it is read and told, and what of it serves a GPU, library by library."""

import pytest

from cudalock.cuda import (
    Architecture,
    CudaVersion,
    PtxIsa,
    parse_compute_capability,
    parse_local_label,
)
from cudalock.errors import UsageError
from cudalock.wheel.device_code import (
    DeviceCode,
    Image,
    Library,
    format_images,
    label_code,
    parse_image,
    service,
)

CUDA_128, CUDA_131, CUDA_132 = CudaVersion(12, 8), CudaVersion(13, 1), CudaVersion(13, 2)


def images(text: str) -> tuple[Image, ...]:
    return tuple(parse_image(word) for word in text.split())


def code(**libraries: str) -> DeviceCode:
    found = tuple(Library(name=name, images=images(text)) for name, text in libraries.items())
    return DeviceCode(libraries=found, source="here")


def test_an_image_is_read_as_it_is_written() -> None:
    assert parse_image("sm_120a") == Image(Architecture(120, "a"))
    assert parse_image("compute_90@8.7") == Image(Architecture(90, "", "compute"), PtxIsa(8, 7))
    assert parse_image("compute_90") == Image(Architecture(90, "", "compute"))
    for text in ("sm_120a", "compute_90@8.7", "compute_120f"):
        assert str(parse_image(text)) == text


@pytest.mark.parametrize(
    "text", ["", "sm_", "sm_90@8.7", "compute_90@", "compute_90@x", "lto_90", "sm_90+PTX"]
)
def test_what_is_no_image_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_image(text)


def test_images_are_listed_machine_code_first_by_number_and_once() -> None:
    listed = format_images(images("sm_120 compute_90@8.7 sm_90a compute_90@9.0 sm_80"))
    assert listed == "sm_80, sm_90a, sm_120 and compute_90"
    assert format_images(images("sm_80")) == "sm_80"
    assert format_images(()) == "nothing"


@pytest.mark.parametrize(
    ("held", "capability", "answer"),
    [
        ("sm_80 sm_120", "12.0", "native"),
        ("sm_120", "12.1", "native"),
        ("sm_120a", "12.1", "none"),
        ("sm_120f", "12.1", "native"),
        ("sm_80 sm_90", "12.0", "none"),
        ("sm_80", "8.7", "none"),
        ("sm_80", "8.6", "native"),
        ("sm_90 compute_90@9.1", "12.0", "ptx"),
        ("sm_90 compute_90@9.2", "12.0", "none"),
        ("sm_90 compute_90", "12.0", "unknown"),
        ("compute_90 compute_90@9.0", "12.0", "ptx"),
        ("compute_90@9.0 compute_90", "12.0", "ptx"),
        ("compute_90a@8.0", "12.0", "none"),
        ("compute_120@8.7", "9.0", "none"),
        ("", "12.0", "none"),
    ],
)
def test_images_serve_a_device_under_a_driver_of_13_1(
    held: str, capability: str, answer: str
) -> None:
    found = service(
        images(held),
        parse_compute_capability(capability),
        built_with=CUDA_131,
        driver_cuda=CUDA_131,
    )
    assert found == answer


def test_under_an_unknown_driver_ptx_is_neither_yes_nor_no() -> None:
    device = parse_compute_capability("12.0")
    held = images("compute_90@8.7")
    assert service(held, device, built_with=CUDA_128, driver_cuda=None) == "unknown"


def test_a_tegra_runs_desktop_code_from_13_2_on() -> None:
    orin, held = parse_compute_capability("8.7"), images("sm_80")
    assert service(held, orin, built_with=None, driver_cuda=CUDA_132) == "none"
    assert service(held, orin, built_with=CUDA_132, driver_cuda=CUDA_132) == "native"


def test_each_library_is_judged_on_its_own() -> None:
    wheel = code(common="sm_80 sm_120a", flash="sm_80 sm_90a")

    def served(capability: str) -> dict[str, str]:
        device = parse_compute_capability(capability)
        found = wheel.services(device, built_with=CUDA_128, driver_cuda=CUDA_131)
        return {library.name: answer for library, answer in found}

    assert served("12.0") == {"common": "native", "flash": "none"}
    assert served("9.0") == {"common": "none", "flash": "native"}
    assert [str(image) for image in wheel.images] == ["sm_80", "sm_90a", "sm_120a"]


def test_a_wheel_is_uncertain_if_it_may_serve_by_ptx_and_nothing_surer_does() -> None:
    device = parse_compute_capability("12.0")

    def uncertain(wheel: DeviceCode) -> bool:
        return wheel.uncertain(device, built_with=CUDA_128, driver_cuda=CUDA_131)

    assert uncertain(code(one="compute_90"))
    assert uncertain(code(one="compute_90", two="sm_80"))
    assert not uncertain(code(one="compute_90", two="sm_120"))
    assert not uncertain(code(one="sm_80"))


def test_a_label_claims_what_it_names_and_leaves_ptx_open() -> None:
    assert label_code(parse_local_label("cu130")) is None
    claimed = label_code(parse_local_label("cu130.torch210.sm100"))
    assert claimed is not None
    assert (claimed.source, claimed.images) == (
        "label +cu130.torch210.sm100",
        (Image(Architecture(100)),),
    )

    def unserved(capability: str) -> bool:
        device = parse_compute_capability(capability)
        found = claimed.services(device, built_with=CUDA_131, driver_cuda=CUDA_131)
        return [answer for _, answer in found] == ["none"]

    assert not unserved("10.0")
    assert unserved("9.0")
    # compute_100 beside it could be compiled for 12.0, and nobody says that it is not there.
    assert not unserved("12.0")
    device = parse_compute_capability("12.0")
    assert claimed.uncertain(device, built_with=CUDA_131, driver_cuda=CUDA_131)
