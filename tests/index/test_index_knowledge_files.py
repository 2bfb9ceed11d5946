import itertools
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from cudalock.cuda import parse_cuda_version
from cudalock.errors import CudalockError
from cudalock.index.knowledge_files import load_knowledge, parse_knowledge
from cudalock.index.locate import DataFileError, find_indices
from cudalock.wheel import ListedFile, parse_wheel_file
from cudalock.wheel.device_code import format_images
from cudalock.wheel.knowledge import Knowledge


def entry(**keys: str) -> str:
    given_keys = {"source": '"somewhere"', "date": '"2026-01-01"'} | keys
    return "[[entry]]\n" + "".join(f"{k} = {v}\n" for k, v in given_keys.items() if v)


def faults(text: str) -> str:
    with pytest.raises(DataFileError) as caught:
        parse_knowledge(text, where="k.toml")
    return "\n".join(caught.value.faults)


@pytest.fixture(scope="module")
def shipped() -> Knowledge:
    return load_knowledge(find_indices() / "knowledge")


def test_each_kind_is_read() -> None:
    text = "".join(
        [
            entry(kind='"family"', project='"f"', value='["A_a", "b"]'),
            entry(kind='"train"', project='"t"', value='["c", "d"]'),
            entry(kind='"pairing"', project='"k"', versions='"==1.2"', value='{ torch = "2.9" }'),
            entry(kind='"rename"', project='"old"', versions='">=0.4.0"', value='"new"'),
            entry(
                kind='"tested-set"', project='"s"', versions='"==5"', value='{ torch = "2.9.1" }'
            ),
            entry(kind='"metadata"', project='"m"', versions='"<0.7"', value='["x>1", "y"]'),
            entry(kind='"toolkit"', project='"kit"'),
            entry(kind='"toolkit-part"', project='["p", "q"]', value='"own-number"'),
            entry(kind='"toolkit-part"', project='"r"', value='"toolkit-number"'),
            entry(kind='"runtime-library"', project='"l"', value="12"),
            entry(kind='"runtime-library"', project='"n"', versions='">=13,<14"', value="13"),
            entry(kind='"cuda-number"', project='"num"'),
            entry(kind='"placeholder"', project='"*"', versions='"==0.0.0a0"'),
            entry(kind='"needs-pairing"', project='"k"', value='"torch"'),
            entry(kind='"compiles"', project='"jit"'),
            entry(kind='"cuda-project"', project='"cp"'),
            entry(kind='"label-word"', project='"torch"'),
            entry(kind='"squatted"', project='"sq"', value='"somebody holds it"'),
        ]
    )
    knowledge = parse_knowledge(text, where="k.toml")
    assert knowledge.families[0].projects == ("a-a", "b")
    assert knowledge.siblings("c") == ("d",)
    pairing = knowledge.pairing("k", Version("1.2+cu130"))
    assert pairing is not None
    assert (pairing.partner, pairing.minor, pairing.source) == ("torch", "2.9", "somewhere")
    rename = knowledge.rename("old")
    assert rename is not None
    assert (rename.successor, rename.since) == ("new", Version("0.4.0"))
    assert knowledge.tested_sets[0].pins == (("torch", Version("2.9.1")),)
    stand_in = knowledge.stand_in("m", Version("0.6.18+cu130"))
    assert stand_in is not None
    assert [str(r) for r in stand_in.requires_dist] == ["x>1", "y"]
    assert knowledge.toolkit("kit") is not None
    parts = {part.project: part.own_number for part in knowledge.toolkit_parts}
    assert parts == {"p": True, "q": True, "r": False}
    assert knowledge.runtime_library("l", Version("99")) is not None
    assert knowledge.runtime_library("n", Version("12.9")) is None
    assert knowledge.cuda_number("num") is not None
    assert knowledge.placeholder("anything", Version("0.0.0a0")) is not None
    mark = knowledge.mark("needs-pairing", "k")
    assert mark is not None
    assert mark.value == "torch"
    assert knowledge.mark("compiles", "jit") is not None
    assert knowledge.mark("cuda-project", "cp") is not None
    assert knowledge.labelled_partner == "torch"
    squatted = knowledge.squatted("sq")
    assert squatted is not None
    assert squatted.value == "somebody holds it"
    assert knowledge.squatted("cp") is None


def test_kinds_about_builds_are_read() -> None:
    text = "".join(
        [
            entry(
                kind='"architectures"',
                project='"a"',
                versions='"==1"',
                value='{ cuda = ["12.8", "12.9"], machine = "x86_64", images = ["sm_90a", "compute_90@8.7"] }',
            ),
            entry(
                kind='"architectures"',
                project='"a"',
                value="{ untagged = true, as-data = true, libraries = { one = ['sm_80'], two = ['sm_120f'] } }",
            ),
            entry(
                kind='"cxx11-abi"',
                project='"t"',
                versions='"<2.7"',
                value='{ new = true, cuda = "12.6" }',
            ),
            entry(kind='"cxx11-abi"', project='"t"', versions='"<2.7"', value="{ new = false }"),
            entry(
                kind='"jit-floor"',
                project='"j"',
                value='{ capabilities = ["12.0", "sm_121"], toolkit = "12.9" }',
            ),
            entry(
                kind='"bundled-compiler"',
                project='"b"',
                versions='"==3.5.0"',
                value='{ cuda = "12.8", remedy = "set it" }',
            ),
        ]
    )
    knowledge = parse_knowledge(text, where="k.toml")

    def held(version: str, cuda: str | None, machine: str) -> str | None:
        release = parse_cuda_version(cuda) if cuda is not None else None
        code = knowledge.device_code("a", Version(version), release, machine)
        if code is None:
            return None
        return "; ".join(f"{each.name} {format_images(each.images)}" for each in code.libraries)

    assert held("1+cu129", "12.9", "x86_64") == "* sm_90a and compute_90"
    assert held("1+cu130", "13.0", "x86_64") is None
    assert held("1+cu128", "12.8", "aarch64") is None
    assert held("2+cu128", "12.8", "x86_64") is None
    assert held("2", None, "aarch64") == "one sm_80; two sm_120f"
    assert held("1", None, "x86_64") == "one sm_80; two sm_120f"
    assert knowledge.device_code("b", Version("1"), None, "x86_64") is None
    assert [entry_found.code.as_data for entry_found in knowledge.architectures] == [False, True]

    def new_abi(version: str, cuda: str | None) -> bool | None:
        release = parse_cuda_version(cuda) if cuda is not None else None
        abi = knowledge.cxx_abi("t", Version(version), release)
        return abi.new if abi is not None else None

    assert [new_abi("2.6+cu126", "12.6"), new_abi("2.6", None), new_abi("2.7", None)] == [
        True,
        False,
        None,
    ]
    floor = knowledge.jit_floor("j", Version("1"))
    assert floor is not None
    assert sorted(map(str, floor.capabilities)) == ["12.0", "12.1"]
    assert str(floor.toolkit) == "12.9"
    bundled = knowledge.bundled_compiler("b", Version("3.5.0+git7416ffcb"))
    assert bundled is not None
    assert (str(bundled.cuda), bundled.remedy) == ("12.8", "set it")
    assert knowledge.bundled_compiler("b", Version("3.6.0")) is None
    assert knowledge.jit_floor("b", Version("3.5.0")) is None


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        ("architectures", "1", "entry 1.value: expected a table"),
        ("architectures", "{}", "entry 1.value: expected either `images` or"),
        ("architectures", "{ images = ['sm_90'], libraries = {} }", "expected either `images` or"),
        ("architectures", "{ libraries = 1 }", "expected either `images` or"),
        ("architectures", "{ images = [] }", "entry 1.value.*: expected a list such as"),
        (
            "architectures",
            "{ libraries = { one = 'sm_90' } }",
            "entry 1.value.one: expected a list",
        ),
        ("architectures", "{ images = [90] }", "entry 1.value.*: expected an architecture"),
        ("architectures", "{ images = ['sm_90@8.7'] }", "expected a PTX ISA after PTX only"),
        ("architectures", "{ images = ['sm_90'], machine = 'arm' }", "expected one of x86_64"),
        ("architectures", "{ images = ['sm_90'], machine = 1 }", "entry 1.value.machine: expected"),
        (
            "architectures",
            "{ images = ['sm_90'], machine = [] }",
            "entry 1.value.machine: expected",
        ),
        ("architectures", "{ images = ['sm_90'], cuda = 12.8 }", "entry 1.value.cuda: expected"),
        ("architectures", "{ images = ['sm_90'], cuda = ['12'] }", "entry 1.value.cuda: expected"),
        (
            "architectures",
            "{ images = ['sm_90'], untagged = 1 }",
            "entry 1.value.untagged: expected",
        ),
        ("architectures", "{ images = ['sm_90'], as-data = 1 }", "entry 1.value.as-data: expected"),
        ("architectures", "{ image = ['sm_90'] }", "did you mean `images`?"),
        ("cxx11-abi", "{}", "entry 1.value.new: expected true or false"),
        ("cxx11-abi", "{ new = 1 }", "entry 1.value.new: expected true or false"),
        ("jit-floor", "{ capabilities = [], toolkit = '12.9' }", "entry 1.value.capabilities:"),
        ("jit-floor", "{ capabilities = ['12'], toolkit = '12.9' }", "entry 1.value.capabilities:"),
        ("jit-floor", "{ capabilities = ['12.0'] }", "entry 1.value.toolkit: expected"),
        ("bundled-compiler", "{ cuda = '13' , remedy = 'x' }", "entry 1.value.cuda: expected"),
        ("bundled-compiler", "{ cuda = '13.0' }", "entry 1.value.remedy: expected a text"),
    ],
)
def test_a_wrong_entry_about_builds_says_what_was_expected(
    kind: str, value: str, fault: str
) -> None:
    text = faults(entry(kind=f'"{kind}"', project='"k"', versions='"==1"', value=value))
    assert fault in text


def test_shared_libraries_tell_who_brings_them_and_what_their_number_means() -> None:
    text = "".join(
        entry(kind='"shared-library"', project=project, value=value)
        for project, value in [
            ('["run", "run-cu12"]', '{ names = ["libcudart"], numbers = "cuda" }'),
            ('"fft"', '{ names = ["libcufft", "libcufftw"], numbers = { 0 = 12, 12 = 13 } }'),
            ('"nccl"', '{ names = ["libnccl"] }'),
        ]
    )
    text += entry(kind='"runtime-library"', project='"run-cu12"', value="12")
    text += entry(kind='"optional-kernels"', project='"k"')
    knowledge = parse_knowledge(text, where="k.toml")
    runtime, fft = knowledge.shared_library("libcudart"), knowledge.shared_library("libcufftw")
    nccl = knowledge.shared_library("libnccl")
    assert runtime is not None
    assert fft is not None
    assert nccl is not None
    assert runtime.providers == ("run", "run-cu12")
    assert [runtime.cuda_major(n) for n in (13, 0, None)] == [13, 0, None]
    assert [fft.cuda_major(n) for n in (12, 0, 11, None)] == [13, 12, None, None]
    assert nccl.cuda_major(2) is None
    assert knowledge.shared_library("libssl") is None
    assert [knowledge.rank_of_library(n) for n in ("libcudart", "libcufftw", "libnccl")] == [
        0,
        2,
        3,
    ]
    # Of those who bring them, the ones that are each for one runtime are CUDA's own.
    assert knowledge.cuda_libraries == {"run-cu12"}
    assert knowledge.mark("optional-kernels", "k") is not None
    assert knowledge.mark("compiles", "k") is None


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"value": "{}"}, "entry 1.value.names: expected names such as `libcudart`"),
        ({"value": "{ names = [] }"}, "entry 1.value.names: expected names"),
        ({"value": "{ names = 'libx' }"}, "entry 1.value.names: expected names"),
        ({"value": "{ names = ['libx.so.1'] }"}, "entry 1.value.names: expected names"),
        ({"value": "{ names = ['x'] }"}, "entry 1.value.names: expected names"),
        ({"value": "{ names = [1] }"}, "entry 1.value.names: expected names"),
        (
            {"value": "{ names = ['libx'], numbers = 'so' }"},
            "expected `cuda` or a table of numbers",
        ),
        ({"value": "{ names = ['libx'], numbers = 12 }"}, "expected `cuda` or a table of numbers"),
        (
            {"value": "{ names = ['libx'], numbers = { a = 1 } }"},
            "numbers.a: expected a CUDA major",
        ),
        ({"value": "{ names = ['libx'], numbers = { 1 = '2' } }"}, "numbers.1: expected a CUDA"),
        ({"value": "{ names = ['libx'], numbers = { 1 = true } }"}, "numbers.1: expected a CUDA"),
        ({"value": "{ names = ['libx'] }", "versions": '"==1"'}, "entry 1.versions"),
        ({"value": "{ name = ['libx'] }"}, "did you mean `names`?"),
        ({"kind": '"optional-kernels"', "value": "1"}, "entry 1.value"),
        ({"kind": '"optional-kernels"', "versions": '"==1"'}, "entry 1.versions"),
    ],
)
def test_a_wrong_entry_about_libraries_says_what_was_expected(
    keys: dict[str, str], fault: str
) -> None:
    assert fault in faults(entry(**{"kind": '"shared-library"', "project": '"k"'} | keys))


def test_shipped_shared_libraries_are_each_told_once(shipped: Knowledge) -> None:
    stems = [each.stem for each in shipped.shared_libraries]
    assert len(stems) == len(set(stems))
    # Measured on the newest wheels of both majors: libcusparse.so.12 is of either.
    told = {
        (stem, number): library.cuda_major(number)
        for stem, number in [
            ("libcudart", 13),
            ("libcublas", 12),
            ("libcufft", 12),
            ("libcufft", 11),
            ("libcusolver", 12),
            ("libcusolver", 11),
            ("libcusparse", 12),
            ("libcurand", 10),
            ("libnccl", 2),
            ("libcudnn", 9),
        ]
        if (library := shipped.shared_library(stem)) is not None
    }
    assert list(told.values()) == [13, 12, 13, 12, 13, None, None, None, None, None]


def test_a_build_for_the_cpu_is_one_without_a_label_on_the_default_index() -> None:
    text = entry(kind='"cpu-build"', project='"t"', versions='"<3"', value='"win_amd64"')
    text += entry(kind='"cpu-build"', project='"t"', versions='"<2"', value='"aarch64"')
    knowledge = parse_knowledge(text, where="k.toml")

    def found(name: str, index: str = "default") -> bool:
        wheel = parse_wheel_file(f"{name}.whl")
        file = ListedFile(wheel=wheel, url="https://x.test/", index=index, index_url="")
        return knowledge.cpu_build(file) is not None

    assert found("t-2.0-cp312-cp312-win_amd64")
    assert found("t-1.0-cp312-cp312-manylinux_2_17_aarch64.manylinux2014_aarch64")
    assert not found("t-2.0-cp312-cp312-manylinux_2_28_aarch64")
    assert not found("t-1.0-cp312-cp312-linux_aarch64")
    assert not found("t-1.0-cp312-cp312-manylinux_2_28_x86_64")
    assert not found("t-2.0+cu128-cp312-cp312-win_amd64")
    assert not found("t-2.0-cp312-cp312-win_amd64", index="jetson")
    assert not found("u-2.0-cp312-cp312-win_amd64")
    assert "expected one of x86_64" in faults(text.replace("aarch64", "arm"))


def test_squatted_says_why_and_a_label_word_takes_no_value() -> None:
    assert "expected who holds the name" in faults(entry(kind='"squatted"', project='"k"'))
    text = faults(entry(kind='"label-word"', project='"k"', value="['torch']"))
    assert "entry 1.value: expected none" in text


def test_an_entry_without_a_source_or_a_date_is_a_fault() -> None:
    text = faults(entry(kind='"toolkit"', project='"kit"', source="", date=""))
    assert "entry 1.source: expected a text, found nothing" in text
    assert "entry 1.date: expected a text, found nothing" in text


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"kind": '"pairng"', "project": '"k"'}, "did you mean `pairing`?"),
        ({"kind": '"toolkit"', "project": '"k"', "vlaue": "1"}, "did you mean `value`?"),
        ({"kind": '"toolkit"', "project": "[]"}, "entry 1.project: expected at least one"),
        ({"kind": '"toolkit"', "project": '"a/b"'}, "entry 1.project: expected the name"),
        ({"kind": '"toolkit"', "project": '"*"'}, "entry 1.project: expected the name"),
        ({"kind": '"toolkit"', "project": '"k"', "value": "1"}, "entry 1.value: expected none"),
        ({"kind": '"toolkit"', "project": '"k"', "date": '"May"'}, "entry 1.date: expected a date"),
        (
            {"kind": '"compiles"', "project": '"k"', "versions": '"==1"'},
            "entry 1.versions: expected none",
        ),
        (
            {"kind": '"family"', "project": '"f"', "value": '["a"]'},
            "entry 1.value: expected a list",
        ),
        (
            {
                "kind": '"pairing"',
                "project": '"k"',
                "versions": '"==1"',
                "value": '{ t = "2.9.1" }',
            },
            "expected a minor release",
        ),
        (
            {"kind": '"pairing"', "project": '"k"', "value": "{ t = 2 }"},
            "entry 1.value.t: expected a version",
        ),
        ({"kind": '"pairing"', "project": '"k"', "value": "{}"}, "expected a table of project"),
        (
            {"kind": '"pairing"', "project": '"k"', "versions": '"~1"', "value": '{ t = "2.9" }'},
            "entry 1.versions: expected version specifiers, found `~1`",
        ),
        (
            {"kind": '"rename"', "project": '"k"', "versions": '"==1"', "value": '"n"'},
            "expected one version after `>=`",
        ),
        ({"kind": '"rename"', "project": '"k"', "versions": '">=1"', "value": "3"}, "successor"),
        (
            {
                "kind": '"tested-set"',
                "project": '"k"',
                "versions": '"==1.*"',
                "value": '{ t = "x" }',
            },
            "entry 1.value.t: expected a version, found `x`",
        ),
        (
            {"kind": '"metadata"', "project": '"k"', "versions": '"<1"', "value": '["a b"]'},
            "expected a requirement",
        ),
        (
            {"kind": '"metadata"', "project": '"k"', "versions": '"<1"', "value": '"a"'},
            "expected a list of requirements",
        ),
        (
            {"kind": '"toolkit-part"', "project": '"k"', "value": '"both"'},
            "`own-number`, found `both`",
        ),
        ({"kind": '"runtime-library"', "project": '"k"', "value": "true"}, "expected a CUDA major"),
    ],
)
def test_a_wrong_entry_says_which_and_what_was_expected(keys: dict[str, str], fault: str) -> None:
    assert fault in faults(entry(**keys))


def test_the_faults_of_all_entries_come_together() -> None:
    text = faults("extra = 1\nentry = [1, { kind = 'toolkit' }]")
    assert "extra: expected one of entry" in text
    assert "entry 1: expected a table" in text
    assert "entry 2.project: expected the name" in text
    assert "expected [[entry]] tables" in faults("entry = 1")


@given(st.text(max_size=200))
def test_any_text_at_all_raises_only_our_errors(text: str) -> None:
    with suppress(CudalockError):
        parse_knowledge(text, where="x")


def test_files_are_merged_and_contradictions_are_faults(tmp_path: Path) -> None:
    part = entry(kind='"toolkit-part"', project='"p"', value='"own-number"')
    family = entry(kind='"family"', project='"f"', value='["a", "b"]')
    (tmp_path / "a.toml").write_text(part + family)
    assert load_knowledge(tmp_path).toolkit_part("p") is not None
    (tmp_path / "b.toml").write_text(part + family.replace('"f"', '"g"'))
    (tmp_path / "c.toml").write_bytes(b"\xff")
    (tmp_path / "d.toml").write_text("entry = 1")
    with pytest.raises(DataFileError) as caught:
        load_knowledge(tmp_path)
    assert caught.value.faults == (
        "c.toml: expected UTF-8",
        "d.toml: entry: expected [[entry]] tables",
        "toolkit_parts: expected one entry for p, found two",
        "families: `a` is in two of them",
        "families: `b` is in two of them",
    )


def test_every_shipped_entry_has_a_source_and_a_date(shipped: Knowledge) -> None:
    for field in fields(Knowledge):
        entries = getattr(shipped, field.name)
        assert entries, field.name
        for item in entries:
            assert item.source.strip(), item
            assert len(item.date) == 10, item


@pytest.mark.parametrize(
    ("project", "version", "minor"),
    [
        ("sgl-kernel", "0.3.21+cu130", "2.9"),
        ("sgl-kernel", "0.3.15", "2.8"),
        ("sglang-kernel", "0.4.1+cu130", "2.9"),
        ("sglang-kernel", "0.4.4+cu130", "2.11"),
        ("sglang-kernel", "0.4.10", "2.14"),
        ("sglang-kernel", "0.4.2.post1", None),
    ],
)
def test_shipped_pairings_bind_a_kernel_to_its_torch(
    shipped: Knowledge, project: str, version: str, minor: str | None
) -> None:
    pairing = shipped.pairing(project, Version(version))
    assert (None if pairing is None else pairing.minor) == minor


def test_shipped_pairings_bind_each_release_once(shipped: Knowledge) -> None:
    # `Knowledge.pairing` takes the first that fits; a second would never be seen.
    pinned = [(p.project, str(p.versions)) for p in shipped.pairings]
    assert len(set(pinned)) == len(pinned) > 30
    assert all(text.startswith("==") and "," not in text for _, text in pinned)


@pytest.mark.parametrize(
    ("project", "version", "major"),
    [
        ("nvidia-cuda-runtime-cu12", "12.8.90", 12),
        ("nvidia-cudnn-cu13", "9.19.0.56", 13),
        ("nvidia-cuda-runtime", "13.0.96", 13),
        ("nvidia-cusolver", "12.0.4.66", 13),
        ("nvidia-cufft", "12.0.0.61", 13),
        ("nvidia-curand", "10.4.0.35", 13),
        ("nvidia-cublas", "14.0.0.1", None),
        ("nvidia-cutlass-dsl-libs-cu12", "4.4.2", None),
        ("nvidia-cutlass-dsl-libs-cu13", "4.4.2", None),
        ("cupy-cuda13x", "13.6.0", 13),
        ("jax-cuda12-plugin", "0.7.2", 12),
    ],
)
def test_shipped_runtime_libraries_belong_to_one_major(
    shipped: Knowledge, project: str, version: str, major: int | None
) -> None:
    library = shipped.runtime_library(project, Version(version))
    assert (None if library is None else library.major) == major


def test_shipped_toolkit_parts_tell_whose_number_is_the_toolkits(shipped: Knowledge) -> None:
    for name in ("cuda-nvcc", "cuda-crt", "nvvm", "cuda-nvrtc", "cuda-cccl", "nvjitlink"):
        part = shipped.toolkit_part(f"nvidia-{name}")
        assert part is not None
        assert not part.own_number
    for name in ("cublas", "cufft", "curand", "cusolver", "cusparse", "cufile"):
        for suffix in ("", "-cu12"):
            part = shipped.toolkit_part(f"nvidia-{name}{suffix}")
            assert part is not None
            assert part.own_number


def test_shipped_placeholders_are_never_a_real_release(shipped: Knowledge) -> None:
    assert shipped.placeholder("nvidia-cublas", Version("0.0.0a0")) is not None
    assert shipped.placeholder("nvidia-cuda-runtime-cu13", Version("0.0.1")) is not None
    assert shipped.placeholder("nvidia-cublas", Version("13.1.0.3")) is None
    assert shipped.placeholder("nvidia-cufile", Version("1.15.1.6")) is None
    assert shipped.placeholder("cuda-toolkit", Version("13.0.2")) is None


def test_shipped_lists_of_device_code_speak_of_a_build_once(shipped: Knowledge) -> None:
    # `Knowledge.device_code` takes the first that fits; a second would never be seen.
    versions = ["0.4.10", "0.11.1", "0.33.0", "2.5.1", "2.11.0"]
    versions += [f"0.{minor}.{patch}" for minor in (3, 4, 5, 6) for patch in range(22)]
    versions += [f"2.{minor}.{patch}" for minor in range(16) for patch in (0, 1)]
    releases = {release for each in shipped.architectures for release in each.cuda}
    for project in sorted({each.project for each in shipped.architectures}):
        entries = [each for each in shipped.architectures if each.project == project]
        for version, release, machine in itertools.product(
            versions, sorted(releases), ("x86_64", "aarch64")
        ):
            fitting = [
                each
                for each in entries
                if not each.untagged
                and each.versions.contains(version)
                and (not each.cuda or release in each.cuda)
                and each.machine in (None, machine)
            ]
            assert len(fitting) < 2, (project, version, str(release), machine)


@pytest.mark.parametrize(
    ("project", "version", "cuda", "machine", "held"),
    [
        ("torch", "2.5.1+cu121", "12.1", "x86_64", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"),
        ("torch", "2.8.0+cu126", "12.6", "x86_64", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"),
        ("torch", "2.10.0", "12.8", "x86_64", "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
        ("torch", "2.11.0+cu128", "12.8", "x86_64", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
        ("torch", "2.15.0", "13.2", "aarch64", "sm_80 sm_90 sm_100 sm_110 sm_120"),
        ("torch", "2.7.0+cu128", "12.8", "x86_64", None),
        ("torch", "2.11.0+cu128", "12.8", "win_amd64", None),
        (
            "flashinfer-jit-cache",
            "0.6.4+cu130",
            "13.0",
            "x86_64",
            "sm_75 sm_80 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120f",
        ),
        (
            "flashinfer-jit-cache",
            "0.6.18+cu130",
            "13.0",
            "x86_64",
            "sm_75 sm_80 sm_89 sm_90a sm_100a sm_103a sm_120f",
        ),
        ("sgl-kernel", "0.3.21+cu128", "12.8", "x86_64", None),
        ("vllm", "0.11.0+cu129", "12.9", "x86_64", "sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a"),
        ("vllm", "0.11.0", "12.8", "x86_64", None),
    ],
)
def test_shipped_lists_of_device_code_are_those_of_the_builds(
    shipped: Knowledge, project: str, version: str, cuda: str, machine: str, held: str | None
) -> None:
    code = shipped.device_code(project, Version(version), parse_cuda_version(cuda), machine)
    assert (None if code is None else " ".join(map(str, code.images))) == held


def test_shipped_lists_of_kernels_are_told_library_by_library(shipped: Knowledge) -> None:
    code = shipped.device_code("sglang-kernel", Version("0.4.10"), None, "x86_64")
    assert code is not None
    found = {each.name: " ".join(map(str, each.images)) for each in code.libraries}
    assert found["flash_ops"] == "sm_80 sm_86 sm_90a"
    assert "sm_120a" in found["common_ops"]
    assert shipped.device_code("sglang-kernel", Version("0.4.10+cu129"), None, "x86_64") is None


def test_flashinfer_jit_cache_declares_nothing_only_before_0_7(shipped: Knowledge) -> None:
    entry_found = shipped.stand_in("flashinfer-jit-cache", Version("0.6.18.post1+cu130"))
    assert entry_found is not None
    assert entry_found.requires_dist == ()
    assert "0e48aaf9" in entry_found.source
    assert shipped.stand_in("flashinfer-jit-cache", Version("0.7.0+cu130")) is None
