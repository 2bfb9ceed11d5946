import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudalock.errors import UsageError
from cudalock.project import (
    IndexUrl,
    ProjectFile,
    ProjectFileError,
    parse_pyproject,
    parse_script,
    project_requirements,
    select_target,
)

_STORY = """
[project]
name = "Story_Team"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["left==1.0", "right>=2; sys_platform == 'linux'"]

[project.optional-dependencies]
fast = ["kernel"]
all = ["story-team[fast,slow]", "more"]
slow = ["waiting"]

[dependency-groups]
dev = ["tests", {include-group = "Lint"}]
lint = ["lines", {include-group = "base"}]
base = ["floor"]

[tool.cudalock]
default-target = "box"
recorded = true
nightly = ["Left_Side"]

[tool.cudalock.targets.box]
python = "3.12"
platform = "manylinux_2_34_x86_64"
driver = "590.48.01"
driver-cuda = "13.1"
cuda = "13.0"
cuda-compat = "minor"
sm = ["12.0"]
gpu = "H100"
requirements = ["only-here"]

[tool.cudalock.targets.other]
cuda = "12.8"

[tool.uv]
constraint-dependencies = ["left<2"]
override-dependencies = ["right==3"]
unknown-to-us = 1

[tool.uv.sources]
left = { index = "variants", marker = "sys_platform == 'linux'" }
right = [{ index = "variants", extra = "fast" }, { git = "https://host.example/r", group = "dev" }]
there = { workspace = true }
near = { path = "../near", editable = true }

[[tool.uv.index]]
name = "variants"
url = "https://u:canary@host.example/cu130"
explicit = true

[[tool.uv.index]]
url = "./wheels"
default = true
format = "flat"
"""


def _parse(text: str) -> ProjectFile:
    return parse_pyproject(text, where="pyproject.toml")


def _names(
    project: ProjectFile, *, extra: str = "", group: str = "", target: str = ""
) -> list[str]:
    found = project_requirements(
        project,
        extras=(extra,) if extra else (),
        groups=(group,) if group else (),
        target=target or None,
    )
    return [item.requirement.name for item in found]


def test_a_project_says_what_it_asks_for() -> None:
    project = _parse(_STORY)
    assert project.name == "story-team"
    assert str(project.requires_python) == ">=3.11"
    assert project.recorded
    assert project.nightly == ("left-side",)
    assert _names(project) == ["left", "right"]
    assert project.dependencies[1].where == "pyproject.toml: project.dependencies[1]"


def test_extras_of_the_project_itself_are_filled_in() -> None:
    project = _parse(_STORY)
    assert _names(project, extra="ALL") == ["left", "right", "kernel", "waiting", "more"]
    assert _names(project, extra="fast") == ["left", "right", "kernel"]


def test_groups_include_others_and_names_are_normalised() -> None:
    project = _parse(_STORY)
    assert _names(project, group="dev") == ["left", "right", "tests", "lines", "floor"]
    dev = next(group for group in project.groups if group.name == "dev")
    assert dev.requirements[2].where == "pyproject.toml: dependency-groups.base[0]"


def test_a_target_adds_its_own_requirements() -> None:
    project = _parse(_STORY)
    assert _names(project, target="box") == ["left", "right", "only-here"]
    assert _names(project, target="other") == ["left", "right"]


def test_a_named_target_has_the_keys_of_the_long_flags() -> None:
    named = select_target(_parse(_STORY), None)
    assert named is not None
    assert (named.name, named.where) == ("box", "tool.cudalock.targets.box")
    options = named.options
    assert (options.python, options.platform) == ("3.12", "manylinux_2_34_x86_64")
    assert (options.driver, options.driver_cuda) == ("590.48.01", "13.1")
    assert (options.cuda, options.cuda_compat) == ("13.0", "minor")
    assert (options.sm, options.gpu, options.cpu) == (("12.0",), ("H100",), False)


def test_uv_says_where_projects_come_from() -> None:
    uv = _parse(_STORY).uv
    assert [str(item.requirement) for item in uv.constraints] == ["left<2"]
    assert [str(item.requirement) for item in uv.overrides] == ["right==3"]
    assert [(s.project, s.kind, s.value) for s in uv.sources] == [
        ("left", "index", "variants"),
        ("right", "index", "variants"),
        ("right", "git", "https://host.example/r"),
        ("there", "workspace", "true"),
        ("near", "path", "../near"),
    ]
    assert str(uv.sources[0].marker) == 'sys_platform == "linux"'
    assert (uv.sources[1].extra, uv.sources[2].group) == ("fast", "dev")
    first, second = uv.indexes
    assert isinstance(first.url, IndexUrl)
    assert (first.name, first.explicit, first.default, first.flat) == (
        "variants",
        True,
        False,
        False,
    )
    assert (second.name, second.url, second.default, second.flat) == (None, "./wheels", True, True)
    assert "canary" not in repr(uv)


def test_an_empty_file_asks_for_nothing() -> None:
    project = _parse("")
    assert project_requirements(project) == ()
    assert select_target(project, None) is None


def test_the_only_target_is_the_default_and_several_are_not() -> None:
    one = _parse('[tool.cudalock.targets.a]\ncuda = "13.0"\n')
    assert select_target(one, None) == one.targets[0]
    two = _parse('[tool.cudalock.targets]\na.cuda = "13.0"\nbox.cuda = "12.8"\n')
    assert select_target(two, "box") == two.targets[1]
    with pytest.raises(UsageError, match="found `a`, `box`") as caught:
        select_target(two, None)
    assert caught.value.flag == "--target"
    with pytest.raises(UsageError, match=r"unknown target `bax` \(did you mean `box`\?\)"):
        select_target(two, "bax")
    with pytest.raises(UsageError, match="no target is defined"):
        select_target(_parse(""), "box")


def test_an_unknown_extra_or_group_names_the_nearest() -> None:
    project = _parse(_STORY)
    with pytest.raises(UsageError, match=r"unknown extra `fest` \(did you mean `fast`\?\)"):
        _names(project, extra="fest")
    with pytest.raises(UsageError, match="unknown group `zzz`; known are") as caught:
        _names(project, group="zzz")
    assert caught.value.flag == "--group"
    with pytest.raises(UsageError, match="there is none"):
        _names(_parse(""), group="zzz")


def test_what_only_a_build_tells_is_refused_when_it_is_needed() -> None:
    project = _parse('[project]\nname = "a"\ndynamic = ["dependencies"]\n')
    with pytest.raises(UsageError, match="only a build tells"):
        project_requirements(project)
    extras = _parse('[project]\nname = "a"\ndynamic = ["optional-dependencies"]\n')
    assert project_requirements(extras) == ()
    with pytest.raises(UsageError, match="only a build tells"):
        project_requirements(extras, extras=("fast",))


def test_an_own_extra_behind_a_marker_is_refused_when_it_is_asked_for() -> None:
    project = _parse(
        '[project]\nname = "a"\n[project.optional-dependencies]\n'
        'x = ["a[y]; sys_platform == \'linux\'"]\ny = ["b"]\n'
    )
    assert _names(project, extra="y") == ["b"]
    with pytest.raises(UsageError, match="without a marker"):
        _names(project, extra="x")


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("project = 1", "project", "expected a table, found the number 1"),
        ("[project]\nname = 1", "project.name", 'expected a string, found the number 1; write "1"'),
        ("[project]\nname = ''", "project.name", "an empty string"),
        ("[project]\ndependencies = 'a'", "project.dependencies", "expected an array, found the"),
        ("[project]\ndependencies = [1]", "project.dependencies[0]", "a requirement in a string"),
        ("[project]\ndependencies = ['a==']", "project.dependencies[0]", "expected a requirement"),
        ("[project]\nrequires-python = 'x'", "project.requires-python", "version specifiers"),
        ("[project]\ndynamic = [true]", "project.dynamic[0]", "expected a string, found true"),
        (
            "[project.optional-dependencies]\na-b = []\na_b = []",
            "project.optional-dependencies.a_b",
            "`a-b` is defined twice",
        ),
        ("dependency-groups.a = 1979-05-27", "dependency-groups.a", "a date or time"),
        ("dependency-groups.a = [[]]", "dependency-groups.a[0]", "found an array"),
        (
            "[dependency-groups]\na = [{include-grup = 'b'}]",
            "dependency-groups.a[0].include-grup",
            "did you mean `include-group`",
        ),
        (
            "[dependency-groups]\nab = []\na = [{include-group = 'abc'}]",
            "dependency-groups.a",
            "includes unknown `abc` (did you mean `ab`?)",
        ),
        (
            "[dependency-groups]\na = [{include-group = 'a'}]",
            "dependency-groups.a",
            "includes itself: a -> a",
        ),
        ("tool.cudalock.recorded = 'yes'", "tool.cudalock.recorded", "expected true or false"),
        ("tool.cudalock.recorder = true", "tool.cudalock.recorder", "did you mean `recorded`"),
        ("tool.cudalock.default-target = 'x'", "tool.cudalock.default-target", "no target is"),
        ("tool.cudalock.targets.a = 1", "tool.cudalock.targets.a", "expected a table"),
        ("tool.cudalock.targets.'a.b' = {}", "tool.cudalock.targets.'a.b'", "a name of letters"),
        (
            "tool.cudalock.targets.a.cuda = 13.0",
            "tool.cudalock.targets.a.cuda",
            'found the number 13.0; write "13.0" (as a number, 12.10 would be 12.1)',
        ),
        ("tool.cudalock.targets.a.sm = 120", "tool.cudalock.targets.a.sm", 'write "120"'),
        ("tool.cudalock.targets.a.sm = [120]", "tool.cudalock.targets.a.sm[0]", "the number 120"),
        ("tool.cudalock.targets.a.cuda = 'x'", "tool.cudalock.targets.a.cuda", "a CUDA release"),
        ("tool.cudalock.targets.a.drivr = 'x'", "tool.cudalock.targets.a.drivr", "`driver`"),
        ("tool.uv.index = [1]", "tool.uv.index[0]", "expected a table"),
        ("tool.uv.index = [{}]", "tool.uv.index[0]", "expected a `url`"),
        ("tool.uv.index = [{url = 1}]", "tool.uv.index[0].url", "expected a string"),
        ("tool.uv.index = [{url = 'x://a'}]", "tool.uv.index[0].url", "an http or https URL"),
        (
            "tool.uv.index = [{url = 'https://a', format = 'odd'}]",
            "tool.uv.index[0].format",
            "expected `simple` or `flat`",
        ),
        (
            "tool.uv.index = [{url = 'https://a', explicit = true}]",
            "tool.uv.index[0]",
            "an explicit index needs a name",
        ),
        (
            "tool.uv.index = [{url='https://a', name='n'}, {url='https://b', name='n'}]",
            "tool.uv.index",
            "two indexes are named `n`",
        ),
        (
            "tool.uv.index = [{url='https://a', default=true}, {url='https://b', default=true}]",
            "tool.uv.index",
            "more than one index is the default",
        ),
        ("tool.uv.sources.a = 1", "tool.uv.sources.a", "a table or an array of tables"),
        ("tool.uv.sources.a = [1]", "tool.uv.sources.a[0]", "expected a table"),
        ("tool.uv.sources.a = {}", "tool.uv.sources.a", "exactly one of"),
        ("tool.uv.sources.a = {workspace = false}", "", ""),
        ("tool.uv.sources.a = {index = 1}", "tool.uv.sources.a.index", "expected a string"),
        (
            "tool.uv.sources.a = {index = 'b', marker = 'x'}",
            "tool.uv.sources.a.marker",
            "expected an environment marker",
        ),
        (
            f"tool.uv.sources.a = {{index = 'b', marker = '{'(' * 5000}'}}",
            "tool.uv.sources.a.marker",
            "expected an environment marker",
        ),
    ],
)
def test_a_fault_names_its_key(text: str, key: str, said: str) -> None:
    if not key:
        assert _parse(text).uv.sources == ()
        return
    with pytest.raises(ProjectFileError) as caught:
        _parse(text)
    (fault,) = caught.value.faults
    assert fault.key == key
    assert said in fault.message
    assert str(caught.value) == f"{key}: {fault.message} (pyproject.toml)"
    assert caught.value.exit_code == 2


def test_all_faults_of_a_file_are_told_at_once() -> None:
    with pytest.raises(ProjectFileError) as caught:
        _parse("[project]\nname = 1\ndependencies = ['a==', 'b==']\n[tool.cudalock]\nx = 1\n")
    assert [fault.key for fault in caught.value.faults] == [
        "project.name",
        "tool.cudalock.x",
        "project.dependencies[0]",
        "project.dependencies[1]",
    ]
    assert str(caught.value).startswith("pyproject.toml: 4 faults:\n  project.name: expected")


def test_a_long_list_of_faults_is_cut() -> None:
    with pytest.raises(ProjectFileError) as caught:
        _parse(f"[project]\ndependencies = [{'1,' * 50}]")
    assert len(caught.value.faults) == 50
    assert str(caught.value).endswith("and 30 more")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[project", "expected TOML"),
        ("a = 1\na = 2\n", "expected TOML"),
        ("a = " + "[" * 5000, "nested too deep"),
        ("a = " + "9" * 5000, "a number is too long"),
        ("#" * ((4 << 20) + 1), "characters"),
    ],
)
def test_text_that_is_not_toml_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        _parse(text)
    assert caught.value.where == "pyproject.toml"


def test_a_cycle_is_told_by_every_group_in_it_and_ends() -> None:
    text = (
        "[dependency-groups]\n"
        "a = [{include-group = 'b'}]\nb = [{include-group = 'a'}]\nc = [{include-group = 'a'}]\n"
    )
    with pytest.raises(ProjectFileError) as caught:
        _parse(text)
    assert [str(fault) for fault in caught.value.faults] == [
        "dependency-groups.a: includes itself: a -> b -> a",
        "dependency-groups.b: includes itself: b -> a -> b",
    ]


def test_includes_that_double_at_each_level_cost_no_more_than_their_number() -> None:
    lines = ["[dependency-groups]", "g0 = ['floor']"]
    lines += [
        f"g{n} = [{{include-group='g{n - 1}'}}, {{include-group='g{n - 1}'}}]" for n in range(1, 60)
    ]
    assert _names(_parse("\n".join(lines)), group="g59") == ["floor"]


@given(st.text(alphabet=st.sampled_from(list("[]{}=\"'.,\n toluvpjecdrsign0123"))))
def test_any_text_is_a_project_or_a_usage_error(text: str) -> None:
    for prefix in ("", "[tool.uv]\n", "[tool.cudalock]\n", "[project]\n"):
        try:
            project = _parse(prefix + text)
        except UsageError:
            continue
        assert isinstance(project, ProjectFile)


_SCRIPT = """#!/usr/bin/env python
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "left==1.0",
#
# ]
# [tool.cudalock.targets.box]
# cuda = "13.0"
# ///
print("# /// script")
"""


def test_a_script_carries_its_requirements_and_targets() -> None:
    script = parse_script(_SCRIPT, where="run.py")
    assert script is not None
    assert _names(script) == ["left"]
    assert str(script.requires_python) == ">=3.11"
    assert script.dependencies[0].where == "run.py, script metadata below line 2: dependencies[0]"
    named = select_target(script, None)
    assert named is not None
    assert named.options.cuda == "13.0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "print(1)\n",
        "# /// script\n# dependencies = []\nprint(1)\n# ///\n",
        "# /// other\n# dependencies = []\n# ///\n",
        "# /// script\n#dependencies = []\n# ///\n",
        "#/// script\n# ///\n",
        "# /// script",
    ],
)
def test_a_script_without_a_closed_block_carries_nothing(text: str) -> None:
    assert parse_script(text, where="run.py") is None


def test_the_last_closing_line_of_the_comment_ends_the_block() -> None:
    text = "# /// script\n# dependencies = ['a']\n# x = '''\n# ///\n# '''\n# ///\n"
    with pytest.raises(ProjectFileError, match="unknown key"):
        parse_script(text, where="run.py")


def test_another_block_may_stand_beside() -> None:
    text = "# /// other\n# x\n# ///\n\n# /// script\n# dependencies = ['a']\n# ///\n"
    script = parse_script(text, where="run.py")
    assert script is not None
    assert _names(script) == ["a"]
    unclosed = "# /// other\n# /// script\n# dependencies = ['a']\n#x\n" + text
    script = parse_script(unclosed, where="run.py")
    assert script is not None
    assert _names(script) == ["a"]


def test_two_script_blocks_are_refused() -> None:
    block = "# /// script\n# dependencies = []\n# ///\n\n"
    with pytest.raises(UsageError, match="at lines 1 and 5"):
        parse_script(block * 2, where="run.py")


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("dependancies = ['a']", "dependancies"),
        ("dependencies = ['a==']", "dependencies[0]"),
        ("requires-python = 'x'", "requires-python"),
        ("tool = 1", "tool"),
    ],
)
def test_a_fault_of_a_script_names_its_key(content: str, key: str) -> None:
    with pytest.raises(ProjectFileError) as caught:
        parse_script(f"# /// script\n# {content}\n# ///\n", where="run.py")
    assert [fault.key for fault in caught.value.faults] == [key]


def test_script_metadata_that_is_not_toml_names_where_it_begins() -> None:
    with pytest.raises(UsageError, match="expected TOML") as caught:
        parse_script("\n# /// script\n# [\n# ///\n", where="run.py")
    assert caught.value.where == "run.py, script metadata below line 2"
    with pytest.raises(UsageError, match="characters"):
        parse_script("#" * ((16 << 20) + 1), where="run.py")


def test_blocks_that_never_close_are_read_in_linear_time() -> None:
    # A reader that looks for the end anew at each opening would take hours for this.
    assert parse_script("# /// other\n" * 300_000, where="run.py") is None


@given(
    st.lists(st.sampled_from(["# /// script", "# ///", "# a = 1", "#", "# /// x", "b", "# [tool]"]))
)
def test_any_script_is_read_or_refused(lines: list[str]) -> None:
    try:
        script = parse_script("\n".join(lines), where="run.py")
    except UsageError:
        return
    assert script is None or isinstance(script, ProjectFile)
