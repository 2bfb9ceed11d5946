from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import UsageError
from cudalock.project import (
    IndexUrl,
    RequirementsFile,
    parse_requirement,
    parse_requirements,
    read_requirements,
)

_SHA = "a" * 64


def _parse(text: str, *, constraint: bool = False) -> RequirementsFile:
    return parse_requirements(text, where="r.txt", constraint=constraint)


def _names(parsed: RequirementsFile) -> list[str]:
    return [str(item.requirement) for item in parsed.requirements]


def test_requirements_keep_their_order_and_their_line() -> None:
    parsed = _parse("left>=1\n\n# a comment\nright[extra] == 2.0 ; sys_platform == 'linux'\n")
    assert _names(parsed) == ["left>=1", 'right[extra]==2.0; sys_platform == "linux"']
    assert [item.where for item in parsed.requirements] == ["r.txt:1", "r.txt:4"]


def test_comments_end_a_line_only_after_a_space() -> None:
    url = "left @ https://host.example/left-1.0-py3-none-any.whl#sha256=" + _SHA
    parsed = _parse(f"{url}  # why\nright # because\n#nothing\n")
    assert parsed.requirements[0].requirement.url == url.removeprefix("left @ ")
    assert _names(parsed)[1] == "right"


def test_a_continued_line_is_one_line_and_counts_from_its_first() -> None:
    parsed = _parse(
        f"left==1.0 \\\n    --hash=sha256:{_SHA} \\\n    --hash sha256:{'B' * 64}\nright\n"
    )
    assert parsed.requirements[0].hashes == (f"sha256:{_SHA}", f"sha256:{'b' * 64}")
    assert parsed.requirements[0].where == "r.txt:1"
    assert parsed.requirements[1].where == "r.txt:4"


def test_a_comment_ends_a_continuation_as_in_pip() -> None:
    assert _names(_parse("left \\\n# comment \\\nright\n")) == ["left", "right"]
    assert _names(_parse("left \\")) == ["left"]


def test_constraints_are_kept_apart() -> None:
    parsed = _parse("left<2\n", constraint=True)
    assert parsed.requirements == ()
    assert str(parsed.constraints[0].requirement) == "left<2"


def test_index_options_are_read() -> None:
    parsed = _parse(
        "-i https://one.example/simple\n"
        "--index-url=https://u:canary@two.example/simple\n"
        "--extra-index-url https://three.example/simple --pre\n"
        "-f ./wheels\n--find-links 'https://four.example/flat page'\n".replace(" page", "")
        + "--no-index\n--require-hashes\n"
    )
    assert parsed.index_url is not None
    assert parsed.index_url.reveal() == "https://u:canary@two.example/simple"
    assert "canary" not in repr(parsed)
    assert [str(url) for url in parsed.extra_index_urls] == ["https://three.example/simple"]
    assert parsed.find_links[0] == "./wheels"
    assert isinstance(parsed.find_links[1], IndexUrl)
    assert (parsed.pre, parsed.no_index, parsed.require_hashes) == (True, True, True)


def test_options_that_cannot_change_the_choice_are_named_in_a_warning() -> None:
    parsed = _parse(
        "--only-binary :all:\n--prefer-binary\n--trusted-host h\nleft --config-settings=a=b\n"
    )
    assert _names(parsed) == ["left"]
    assert [warning.split(":")[1] for warning in parsed.warnings] == ["1", "2", "3", "4"]


def test_variables_are_filled_in_where_they_are_known() -> None:
    parsed = parse_requirements(
        "-i https://${TOKEN}@host.example/${OTHER}\nleft==${lower}\n".replace("==${lower}", ""),
        where="r.txt",
        environ={"TOKEN": "canary"},
    )
    assert parsed.index_url is not None
    assert parsed.index_url.reveal() == "https://canary@host.example/${OTHER}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("left==", "expected a requirement, found `left==`"),
        ("left ==1 oops", "expected a requirement"),
        ("-e .", "editable"),
        ("--editable=git+https://u:canary@host.example/x", "editable"),
        ("./left", "found the path"),
        ("/srv/left.whl", "found the path"),
        ("C:\\left", "found the path"),
        ("file:left", "found the path"),
        ("left-1.0-py3-none-any.whl", "found the file"),
        ("https://u:canary@h.example/left_a-1.0.tar.gz", "write `NAME @ https"),
        ("git+https://u:canary@h.example/left", "write `NAME @ git"),
        ("left @ file:///srv/left.whl", "expected an http or https URL"),
        ("left @ ftp://u:canary@h.example/left.whl", "expected an http or https URL"),
        (f"left --hash=sha256:{_SHA[:-1]}", r"expected 64 hexadecimal digits.*\(63 characters\)"),
        (f"left --hash=sha256:{_SHA[:-1]}g", "expected 64 hexadecimal digits"),
        ("left --hash=md5:" + "a" * 32, "expected a hash that begins with `sha256:`"),
        ("left --hash=", "expected a hash"),
        ("left --hash", "expected a hash"),
        ("left --hsah=x", r"did you mean `--hash`"),
        ("left -x more words", "no option of a requirement"),
        ("left --hash=sha512:" + "a" * 128 + " word", "expected an option, found `word`"),
        ("left --hash='", "cannot read the options"),
        ("-r", "expected a value after `-r`"),
        ("--index-urll https://h.example", "did you mean `--index-url`"),
        ("--pre=1", "no option"),
        ("-r https://u:canary@h.example/r.txt", "download it first"),
        ("--index-url nowhere", "expected an http or https URL"),
        ("left==" + "9" * 400, "number of 300 digits"),
        ("left" + "x" * 9000, "at most 8192 characters"),
        ("left; " + "(" * 4000 + "python_version > '3'" + ")" * 4000, "expected a requirement"),
    ],
)
def test_a_line_that_cannot_be_read_names_its_place(line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        _parse(f"# first\n{line}\n")
    assert caught.value.where == "r.txt:2"
    assert "canary" not in str(caught.value)


def test_text_beyond_the_limits_is_refused() -> None:
    with pytest.raises(UsageError, match="characters"):
        _parse("#" * ((4 << 20) + 1))
    with pytest.raises(UsageError, match="lines"):
        _parse("\n" * 100_001)
    with pytest.raises(UsageError, match="a line of at most"):
        _parse("left \\\n" + "x \\\n" * 40_000)


def test_an_argument_is_read_like_a_line() -> None:
    item = parse_requirement(" left>=1 ", where="argument 1")
    assert (str(item.requirement), item.where, item.hashes) == ("left>=1", "argument 1", ())
    with pytest.raises(UsageError) as caught:
        parse_requirement("left\x1b[31m==", where="argument 1")
    assert "\x1b" not in str(caught.value)


def test_included_files_are_read_in_order_and_relative_to_the_including_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "main.txt").write_text("first\n-r sub/more.txt\n-c sub/limits.txt\nlast\n")
    (tmp_path / "sub/more.txt").write_text("\ufeffsecond\n-r deeper.txt\n", encoding="utf-8")
    (tmp_path / "sub/deeper.txt").write_text("third\n-c limits.txt\n")
    (tmp_path / "sub/limits.txt").write_text(
        "third<3\n-r deeper.txt\n".replace("-r deeper.txt\n", "")
    )
    parsed = read_requirements(tmp_path / "main.txt")
    assert _names(parsed) == ["first", "last", "second", "third"]
    assert [str(item.requirement) for item in parsed.constraints] == ["third<3"]
    assert parsed.requirements[3].where == f"{tmp_path / 'sub/deeper.txt'}:1"


def test_what_a_constraints_file_includes_is_constraints(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    (tmp_path / "b.txt").write_text("left<2\n")
    parsed = read_requirements(tmp_path / "a.txt", constraint=True)
    assert parsed.requirements == ()
    assert len(parsed.constraints) == 1


def test_a_cycle_of_includes_is_refused_where_it_closes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    (tmp_path / "b.txt").write_text("left\n-r a.txt\n")
    with pytest.raises(UsageError, match="no cycle") as caught:
        read_requirements(tmp_path / "a.txt")
    assert caught.value.where == f"{tmp_path / 'b.txt'}:2"


def test_includes_too_deep_are_refused(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(f"-r {number + 1}.txt\n")
    with pytest.raises(UsageError, match="16 levels"):
        read_requirements(tmp_path / "0.txt")


def test_a_file_that_cannot_be_read_names_the_line_that_asked_for_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("left\n-r missing.txt\n")
    with pytest.raises(UsageError, match=r"missing\.txt") as caught:
        read_requirements(tmp_path / "a.txt")
    assert caught.value.where == f"{tmp_path / 'a.txt'}:2"
    with pytest.raises(UsageError, match="No such file"):
        read_requirements(tmp_path / "none.txt")
    with pytest.raises(UsageError, match="cannot"):
        read_requirements(tmp_path / "nul\0l.txt")
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    with pytest.raises(UsageError, match="cannot"):
        read_requirements(tmp_path / "loop.txt")


def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"left\n\xff\xfe")
    with pytest.raises(UsageError, match=r"expected UTF-8 text.*0xff at 5"):
        read_requirements(path)
    path.write_bytes(b"#" * ((4 << 20) + 1))
    with pytest.raises(UsageError, match="bytes"):
        read_requirements(path)


@given(st.text(alphabet=st.sampled_from(list("le-rc=:#\\ \n'\"@/[];>.<$sha256{}\t\x0c"))))
def test_any_text_is_a_file_or_a_usage_error(text: str) -> None:
    try:
        parsed = _parse(text)
    except UsageError:
        return
    assert isinstance(parsed, RequirementsFile)


@given(st.text())
def test_any_argument_is_a_requirement_or_a_usage_error(text: str) -> None:
    try:
        parsed = parse_requirement(text, where="argument 1")
    except UsageError:
        return
    assert parsed.requirement.name
