from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import CudalockError, UsageError
from cudalock.index.definitions import (
    Definition,
    load_definitions,
    parse_definition,
    parse_template,
)
from cudalock.index.locate import DataFileError, find_indices, read_data_file

GOOD = """
name = "acme"
absent = [403, 404]
cpu = "cpu"
labels = ["local", "none"]
projects = ["Acme_Kernels", "acme.vision"]
nightly-projects = ["acme-triton"]
nightly-days = 30
source = "acme/wheels at 0123"

[templates]
stable = ["https://acme.example/whl/{cuda}/", "https://acme.example/{version}/{cuda}"]
nightly = ["https://acme.example/nightly/{cuda}"]
"""


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(DataFileError) as caught:
        parse_definition(text, where="acme.toml")
    assert caught.value.where == "acme.toml"
    assert caught.value.exit_code == 2
    return caught.value.faults


def test_a_definition_is_read_with_normalised_projects() -> None:
    assert parse_definition(GOOD, where="acme.toml") == Definition(
        name="acme",
        stable=("https://acme.example/whl/{cuda}", "https://acme.example/{version}/{cuda}"),
        nightly=("https://acme.example/nightly/{cuda}",),
        cpu="cpu",
        dialect="simple",
        absent=frozenset({403, 404}),
        labels=("local", "none"),
        projects=frozenset({"acme-kernels", "acme-vision"}),
        nightly_projects=frozenset({"acme-triton"}),
        nightly_days=30,
        source="acme/wheels at 0123",
    )


def test_every_fault_of_a_file_is_reported_at_once() -> None:
    found = faults(
        """
        name = "Acme!"
        absnt = [404]
        absent = [200]
        dialect = "complex"
        labels = ["sticker"]
        cpu = "../cpu"
        projects = ["-bad-"]
        nightly-projects = ["x"]
        nightly-days = 0
        [templates]
        stable = ["ftp://x/{cuda}"]
        """
    )
    for start in (
        "absnt: expected one of",
        "name:",
        "absent:",
        "dialect:",
        "labels:",
        "cpu:",
        "projects:",
        "nightly-projects:",
        "nightly-days:",
        "templates.stable: expected an https URL, found `ftp://x/{cuda}`",
        "source: expected a text, found nothing",
    ):
        assert any(fault.startswith(start) for fault in found), (start, found)
    assert "did you mean `absent`?" in "\n".join(found)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("name = ", "expected TOML"),
        ('name = "a"\nsource = "s"', "templates: expected a table"),
        (
            'name = "a"\nsource = "s"\n[templates]\npinned = ["https://x.example"]',
            "templates.stable",
        ),
        ('name = 3\nsource = "s"\n[templates]\nstable = "x"', "name: expected a text, found `3`"),
    ],
)
def test_a_broken_definition_says_what_was_expected(text: str, start: str) -> None:
    assert any(fault.startswith(start) for fault in faults(text))


@pytest.mark.parametrize(
    "text",
    [
        "torch",
        "http://acme.example/whl",
        "https://{cuda}.example/whl",
        "https://acme.example/{python}",
        "https://acme.example/{cuda",
        "https://acme.example/whl?x={cuda}",
        "https://acme.example/whl#{cuda}",
        "https://acme.example:port/{cuda}",
        "https:///whl/{cuda}",
        "https://acme.example/a b",
        "https://acme.example/\x1b[31m",
        "https://[::1/whl",
        "",
    ],
)
def test_a_template_is_an_https_address_with_placeholders_in_its_path(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_template(text, where="here")
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:80"])
def test_a_template_may_be_http_on_loopback(host: str) -> None:
    assert parse_template(f"http://{host}/{{cuda}}/", where="x") == f"http://{host}/{{cuda}}"


@given(st.text(max_size=200))
def test_any_text_at_all_raises_only_our_errors(text: str) -> None:
    try:
        parse_definition(text, where="x")
        raise AssertionError(text)
    except CudalockError:
        pass


def test_all_files_of_a_folder_are_checked_before_one_error_is_raised(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_text(GOOD)
    (tmp_path / "c.toml").write_bytes(b"\xff")
    (tmp_path / "d.toml").write_text("name = 1")
    (tmp_path / "e.toml").write_text(GOOD.replace('"acme"', '"other"'))
    with pytest.raises(DataFileError) as caught:
        load_definitions(tmp_path)
    text = "\n".join(caught.value.faults)
    assert "b.toml: name: `acme` is the name of another definition" in text
    assert "c.toml: expected UTF-8" in text
    assert "d.toml: name: expected a text" in text
    assert "e.toml: projects: `acme-kernels` is already named by `acme`" in text


def test_a_data_file_is_bounded_and_readable(tmp_path: Path) -> None:
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(DataFileError, match="at most"):
        read_data_file(big)
    with pytest.raises(DataFileError, match="readable"):
        read_data_file(tmp_path / "none.toml")


def test_the_data_of_this_checkout_is_found_and_loads() -> None:
    definitions = {d.name: d for d in load_definitions(find_indices())}
    assert {"pytorch", "sglang", "flashinfer", "vllm", "nvidia", "astral", "pyg"} <= set(
        definitions
    )
    pytorch = definitions["pytorch"]
    assert pytorch.absent == {403, 404}
    # Stable triton is the default index's; only nightlies come from PyTorch.
    assert "triton" in pytorch.nightly_projects - pytorch.projects
    # The folders list sglang itself, the same files under every CUDA release.
    assert "sglang" not in definitions["sglang"].projects
    for definition in definitions.values():
        assert definition.source
        assert all(url.startswith("https://") for url in definition.templates)
    # What lives on the default index stays there: only nightlies, or when it is asked for.
    for name in ("cupy", "jax", "xformers"):
        assert definitions[name].projects == frozenset()
    # The same names on a server's GPU would be the wrong files.
    assert definitions["jetson"].targets == "tegra"
    assert "torch" in definitions["jetson"].projects & pytorch.projects


def test_an_installation_without_data_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("cudalock.index.locate._PACKAGE", tmp_path / "src" / "cudalock")
    with pytest.raises(UsageError, match="indices"):
        find_indices()
    inside = tmp_path / "src" / "cudalock" / "indices"
    (tmp_path / "indices" / "knowledge").mkdir(parents=True)
    assert find_indices() == tmp_path / "indices"
    # What a wheel carries comes before anything that happens to lie beside it.
    (inside / "knowledge").mkdir(parents=True)
    assert find_indices() == inside


def test_what_a_publisher_needs_beside_folders_is_read() -> None:
    text = GOOD.replace("cpu =", 'serves = ["acme-serve"]\npartner = "Torch.X"\ncpu =').replace(
        "[templates]",
        'targets = "tegra"\n[templates]\npinned = ["https://acme.example/test/{partner}"]',
    )
    found = parse_definition(text, where="acme.toml")
    assert found.serves == {"acme-serve"}
    assert found.partner == "torch-x"
    assert found.targets == "tegra"
    assert found.pinned == ("https://acme.example/test/{partner}",)
    assert found.templates == (*found.stable, *found.nightly, *found.pinned)


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ('serves = "x"', "serves: expected"),
        ('serves = ["-x-"]', "serves: expected"),
        ('serves = ["acme-kernels"]', "serves: expected none of `projects`, found `acme-kernels`"),
        ('partner = "torch"', "partner: expected a template with {partner}, found none"),
        ("partner = 3", "partner: expected"),
        ('partner = "-"', "partner: expected"),
        ('targets = "jetson"', "targets: expected one of tegra, found `'jetson'`"),
        ('targets = ["tegra"]', "targets: expected one of tegra"),
    ],
)
def test_a_key_that_says_what_cannot_be_is_a_fault(line: str, start: str) -> None:
    assert any(fault.startswith(start) for fault in faults(f"{line}\n{GOOD}"))


@pytest.mark.parametrize(
    ("template", "start"),
    [
        ('stable = ["https://a.example/{partner}"]', "partner: expected the project that"),
        ('pinned = ["https://a.example"]', "templates.stable: expected at least one"),
        ('stable = ["https://a.example"]\npinned = 3', "templates.pinned: expected"),
        ('stable = ["https://a.example"]\npinned = ["ftp://a"]', "templates.pinned: expected"),
        ('stable = ["https://a.example"]\ntest = ["https://a"]', "templates.test: expected one of"),
    ],
)
def test_a_template_that_cannot_be_filled_is_a_fault(template: str, start: str) -> None:
    text = f'name = "a"\nsource = "s"\n[templates]\n{template}'
    assert any(fault.startswith(start) for fault in faults(text)), faults(text)


def test_a_partner_of_its_own_is_a_fault() -> None:
    text = GOOD.replace("[templates]", 'partner = "acme-vision"\n[templates]').replace(
        "whl/{cuda}/", "whl/{partner}/"
    )
    assert "partner: expected another project than those the index is the source of" in faults(text)


def write_definition(directory: Path, name: str, more: str, template: str = "") -> None:
    text = f'name = "{name}"\nsource = "s"\n{more}\n[templates]\nstable = ["https://{name}.example{template}"]'
    (directory / f"{name}.toml").write_text(text, encoding="utf-8")


def test_an_index_for_one_kind_of_machine_may_name_what_another_names(tmp_path: Path) -> None:
    write_definition(tmp_path, "all", 'projects = ["kernel"]')
    write_definition(tmp_path, "board", 'projects = ["kernel"]\ntargets = "tegra"')
    assert [d.name for d in load_definitions(tmp_path)] == ["all", "board"]
    write_definition(tmp_path, "other", 'projects = ["kernel"]\ntargets = "tegra"')
    with pytest.raises(DataFileError, match="`kernel` is already named by `board`"):
        load_definitions(tmp_path)


def test_many_may_serve_what_one_is_the_source_of(tmp_path: Path) -> None:
    write_definition(tmp_path, "own", 'projects = ["kernel"]')
    write_definition(tmp_path, "first", 'serves = ["kernel"]')
    write_definition(tmp_path, "second", 'serves = ["kernel"]')
    assert len(load_definitions(tmp_path)) == 3


def test_partners_that_could_go_round_in_a_circle_are_refused(tmp_path: Path) -> None:
    write_definition(tmp_path, "one", 'projects = ["left"]\npartner = "right"', "/{partner}")
    write_definition(tmp_path, "two", 'projects = ["right"]\npartner = "left"', "/{partner}")
    with pytest.raises(DataFileError) as caught:
        load_definitions(tmp_path)
    assert len(caught.value.faults) == 2
    assert "`right` comes from `two`, which has a partner itself" in caught.value.faults[0]
