"""Which names are torch's own, and what they bind to."""

import pytest

from cudalock.wheel.torch_symbols import (
    TorchSymbols,
    format_symbol,
    is_torch_symbol,
    torch_style,
)


@pytest.mark.parametrize(
    "name",
    [
        "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb",
        "_ZN3c1013MessageLogger6streamB5cxx11Ev",
        "_ZNK2at6Tensor4sizeEl",
        "_ZN5torch3jit6parserEv",
        "_ZN6caffe28TypeMeta26error_unsupported_typemetaES0_",
        "_ZTVN3c105ErrorE",
        "_ZTIN5torch8autograd4NodeE",
        "_ZGVZN2at12getNumGpusEvE1x",
        "_ZThn16_N3c105ErrorD0Ev",
        "_ZZN3c106detail3oneEvE5value",
        "_ZNO3c108OptionalIiE5valueEv",
        "aoti_torch_delete_tensor_object",
        "torch_call_dispatcher",
    ],
)
def test_names_in_the_scope_of_torch_and_its_shims_are_its_own(name: str) -> None:
    assert is_torch_symbol(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        "_ZN8facebook10torchcodec4readERKN2at6TensorE",
        "_ZN10torchcodec4readEv",
        "_ZNSt6vectorIN2at6TensorESaIS1_EED1Ev",
        "_ZN4at103oneEv",
        "_ZN4atomEv",
        "cudaLaunchKernel",
        "_ZN12at3oneEv",
        "my_torch_helper",
        "",
        "_Z",
    ],
)
def test_names_of_others_that_only_mention_torch_are_not(name: str) -> None:
    assert not is_torch_symbol(name.encode())


@pytest.mark.parametrize(
    ("names", "style"),
    [
        ([], "none"),
        (["torch_call_dispatcher", "aoti_torch_x"], "stable"),
        (["torch_call_dispatcher", "_ZN3c105ErrorD1Ev"], "cxx"),
    ],
)
def test_one_cxx_name_binds_to_a_release_and_shims_alone_do_not(
    names: list[str], style: str
) -> None:
    assert torch_style(names) == style
    assert TorchSymbols(undefined=frozenset(names)).style == style


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (
            "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb",
            "c10::cuda::c10_cuda_check_implementation",
        ),
        ("_ZNK2at6Tensor4sizeEl", "at::Tensor::size"),
        ("_ZNKR2at6Tensor4sizeEl", "at::Tensor::size"),
        # A constructor, a template, an operator: their whole names say more.
        ("_ZN3c105ErrorD1Ev", "_ZN3c105ErrorD1Ev"),
        ("_ZN2at6TensoraSERKS0_", "_ZN2at6TensoraSERKS0_"),
        ("_ZN3c104viewIiEEvv", "_ZN3c104viewIiEEvv"),
        ("_ZTIN3c105ErrorE", "_ZTIN3c105ErrorE"),
        ("aoti_torch_x", "aoti_torch_x"),
        # Lengths that are not true.
        ("_ZN3c1099fEv", "_ZN3c1099fEv"),
        ("_ZN3c100E", "_ZN3c100E"),
        ("_ZN3c1012345fEv", "_ZN3c1012345fEv"),
        ("_ZN2at\N{SUPERSCRIPT TWO}fEv", "_ZN2at\N{SUPERSCRIPT TWO}fEv"),
        ("_ZN3c10E", "_ZN3c10E"),
        ("", ""),
    ],
)
def test_a_plain_name_is_shown_as_a_person_knows_it(name: str, shown: str) -> None:
    assert format_symbol(name) == shown
