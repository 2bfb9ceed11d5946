from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.version import Version

from cudalock.cuda import CudaVersion
from cudalock.errors import CudalockError, UsageError
from cudalock.index.definitions import Definition
from cudalock.index.routes import (
    AddedIndex,
    Route,
    RoutingOptions,
    cuda_folders,
    newest_known_minor,
    parse_index_option,
)
from cudalock.index.routing import Router

DEFAULT = "https://default.example/simple"
FRAME = Definition(
    name="frame",
    stable=("https://frame.example/whl/{cuda}",),
    nightly=("https://frame.example/whl/nightly/{cuda}",),
    cpu="cpu",
    absent=frozenset({403, 404}),
    projects=frozenset({"frame", "frame-vision"}),
    nightly_projects=frozenset({"tri"}),
)
CACHE = Definition(
    name="cache",
    stable=("https://cache.example/whl", "https://cache.example/whl/{cuda}"),
    projects=frozenset({"cache"}),
)
SERVE = Definition(
    name="serve",
    stable=("https://serve.example/{version}/{cuda}",),
    projects=frozenset({"serve"}),
)
KERNEL = Definition(
    name="kernel", stable=("https://kernel.example/whl/{cuda}",), projects=frozenset({"kernel"})
)
FLAT = Definition(
    name="flat",
    stable=("https://flat.example/whl/{cuda}.html",),
    dialect="flat",
    projects=frozenset({"scatter"}),
)
EXTENSION = Definition(
    name="extension",
    stable=("https://extension.example/frame-{partner}%2B{cuda}.html",),
    pinned=("https://extension.example/test/{cuda}",),
    dialect="flat",
    partner="frame",
    projects=frozenset({"sparse"}),
    serves=frozenset({"kernel", "tri"}),
)
BOARD = Definition(
    name="board",
    stable=("https://board.example/{cuda}/+simple",),
    targets="tegra",
    projects=frozenset({"frame"}),
    serves=frozenset({"tri"}),
)
DEFINITIONS = (FRAME, CACHE, SERVE, KERNEL, FLAT, EXTENSION, BOARD)
PLAIN = RoutingOptions(default_url=DEFAULT)
CUDA_131 = CudaVersion(13, 1)
CUDA_130 = CudaVersion(13, 0)


def make_router(
    options: RoutingOptions = PLAIN,
    *,
    cuda: CudaVersion | None = CUDA_131,
    compat: Literal["strict", "minor"] = "strict",
    newest_minor: int | None = None,
    tegra: bool = False,
) -> Router:
    return Router(
        definitions=DEFINITIONS,
        options=options,
        cuda=cuda,
        compat=compat,
        newest_minor=newest_minor,
        tegra=tegra,
    )


def urls(route: Route) -> list[str]:
    return [folder.url for folder in route.folders]


def indexes(route: Route) -> list[str]:
    return [step.index for step in route.chain]


def test_a_project_a_definition_names_is_asked_there_newest_release_first() -> None:
    route = make_router().route("frame", nightly=False)
    assert indexes(route) == ["frame", "default"]
    assert urls(route) == [
        "https://frame.example/whl/cu131/frame/",
        "https://frame.example/whl/cu130/frame/",
    ]
    assert [folder.folder for folder in route.folders] == ["cu131", "cu130"]
    assert route.folders[0].index_url == "https://frame.example/whl/cu131"
    assert route.folders[0].absent == {403, 404}
    assert route.recordable
    assert [step.index for step in route.chain][-1] == "default"
    assert "frame" in route.reason


def test_any_other_project_comes_from_the_default_index_only() -> None:
    route = make_router().route("numpy", nightly=False)
    assert indexes(route) == ["default"]
    assert urls(route) == ["https://default.example/simple/numpy/"]
    assert route.folders[0].absent == {404}
    assert route.folders[0].folder is None


def test_a_definition_is_one_index_whatever_its_templates() -> None:
    route = make_router(cuda=CUDA_130).route("cache", nightly=False)
    assert [(folder.url, folder.folder) for folder in route.folders] == [
        ("https://cache.example/whl/cache/", None),
        ("https://cache.example/whl/cu130/cache/", "cu130"),
    ]


def test_nightly_opens_the_nightly_templates_beside_the_stable_ones() -> None:
    route = make_router(cuda=CUDA_130).route("frame", nightly=True)
    assert [(folder.url, folder.nightly) for folder in route.folders] == [
        ("https://frame.example/whl/cu130/frame/", False),
        ("https://frame.example/whl/nightly/cu130/frame/", True),
    ]
    assert route.folders[1].shown_folder == "nightly/cu130"
    assert route.folders[1].folder == "cu130"


def test_a_nightly_project_is_the_definitions_only_while_nightlies_are_open() -> None:
    router = make_router(cuda=CUDA_130)
    assert indexes(router.route("tri", nightly=False)) == ["default"]
    route = router.route("tri", nightly=True)
    assert indexes(route) == ["frame", "default"]
    assert urls(route) == ["https://frame.example/whl/nightly/cu130/tri/"]


def test_a_cpu_target_takes_the_cpu_folder_in_place_of_cuda() -> None:
    route = make_router(cuda=None).route("frame", nightly=True)
    assert urls(route) == [
        "https://frame.example/whl/cpu/frame/",
        "https://frame.example/whl/nightly/cpu/frame/",
    ]


def test_a_publisher_without_a_cpu_folder_leaves_a_cpu_target_to_its_other_templates() -> None:
    router = make_router(cuda=None)
    assert urls(router.route("cache", nightly=False)) == ["https://cache.example/whl/cache/"]
    assert indexes(router.route("kernel", nightly=False)) == ["default"]


def test_minor_compatibility_asks_from_the_newest_minor_known() -> None:
    route = make_router(cuda=CUDA_130, compat="minor", newest_minor=2).route("frame", nightly=False)
    assert [folder.folder for folder in route.folders] == ["cu132", "cu131", "cu130"]


def test_minor_compatibility_with_nothing_newer_known_asks_what_strict_asks() -> None:
    cuda = CudaVersion(12, 9)
    strict = cuda_folders(cuda, compat="strict", newest_minor=99)
    assert cuda_folders(cuda, compat="minor", newest_minor=None) == strict
    assert cuda_folders(cuda, compat="minor", newest_minor=4) == strict
    assert [version.label for version in strict[:2]] == ["cu129", "cu128"]
    assert len(strict) == 10


@given(major=st.integers(10, 99), minor=st.integers(0, 30), newest=st.integers(0, 30))
def test_the_folders_of_any_release_are_values_and_strictly_descend(
    major: int, minor: int, newest: int
) -> None:
    for compat in ("strict", "minor"):
        found = cuda_folders(CudaVersion(major, minor), compat=compat, newest_minor=newest)
        assert list(found) == sorted(set(found), reverse=True)
        assert found[-1] == CudaVersion(major, 0)
        assert CudaVersion(major, minor) in found
        assert {version.major for version in found} == {major}


def test_the_newest_known_minor_reads_folder_names_and_passes_over_the_rest() -> None:
    names = ["cu130", "cu134", "cu129", "cu1310", "cpu", "nightly", "rocm6.4", ""]
    assert newest_known_minor(13, names) == 10
    assert newest_known_minor(12, names) == 9
    assert newest_known_minor(14, names) is None


def test_a_versioned_template_waits_for_the_release() -> None:
    route = make_router(cuda=CUDA_130).route("serve", nightly=False)
    assert route.versioned
    folder = route.folders[0].at_version(Version("0.19.1+cu130"))
    assert not folder.versioned
    assert folder.url == "https://serve.example/0.19.1/cu130/serve/"
    assert folder.index_url == "https://serve.example/0.19.1/cu130"
    assert folder.folder == "cu130"


def test_a_flat_page_is_asked_as_it_is() -> None:
    route = make_router(cuda=CUDA_130).route("scatter", nightly=False)
    assert urls(route) == ["https://flat.example/whl/cu130.html"]
    assert route.folders[0].flat


def test_only_default_index_leaves_every_definition_out() -> None:
    router = make_router(replace(PLAIN, only_default=True))
    assert indexes(router.route("frame", nightly=True)) == ["default"]
    assert router.definitions == ()


def test_an_excluded_definition_leaves_its_projects_to_the_default_index() -> None:
    router = make_router(replace(PLAIN, excluded=frozenset({"frame"})))
    assert indexes(router.route("frame", nightly=False)) == ["default"]
    assert indexes(router.route("kernel", nightly=False)) == ["kernel", "default"]


def test_excluding_an_index_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(
        UsageError, match="board, cache, extension, flat, frame, kernel, serve"
    ) as caught:
        make_router(replace(PLAIN, excluded=frozenset({"pytroch"})))
    assert caught.value.where == "--exclude-index pytroch"


def test_an_index_with_a_definitions_name_gives_it_another_address() -> None:
    added = (AddedIndex(name="frame", url="https://mirror.example/f/{cuda}"),)
    router = make_router(replace(PLAIN, added=added), cuda=CUDA_130)
    route = router.route("frame", nightly=True)
    assert urls(route) == ["https://mirror.example/f/cu130/frame/"]
    assert route.folders[0].absent == {403, 404}
    assert not route.recordable
    assert indexes(router.route("numpy", nightly=False)) == ["default"]
    assert urls(router.route("tri", nightly=True)) == ["https://mirror.example/f/cu130/tri/"]


def test_an_address_without_cuda_tells_its_folder_by_its_last_part() -> None:
    for url, folder in (
        ("https://mirror.example/whl/cu128", "cu128"),
        ("https://mirror.example/whl/cpu/", "cpu"),
        ("https://mirror.example/simple", None),
        ("https://mirror.example/cu128_torch29", None),
    ):
        router = make_router(replace(PLAIN, added=(AddedIndex(name="frame", url=url),)))
        (asked,) = router.route("frame", nightly=False).folders
        assert asked.folder == folder
        assert asked.url == f"{url.rstrip('/')}/frame/"


def test_an_index_with_a_new_name_is_asked_first_for_every_project() -> None:
    added = (
        AddedIndex(name="own", url="https://own.example/simple"),
        AddedIndex(name="other", url="https://other.example/{cuda}"),
    )
    router = make_router(replace(PLAIN, added=added), cuda=CUDA_130)
    assert indexes(router.route("frame", nightly=False)) == ["own", "other", "frame", "default"]
    route = router.route("numpy", nightly=False)
    assert indexes(route) == ["own", "other", "default"]
    assert urls(route.chain[1]) == ["https://other.example/cu130/numpy/"]
    assert not route.recordable


def test_an_added_index_on_a_cpu_target_puts_cpu_in_place_of_cuda() -> None:
    router = make_router(
        replace(PLAIN, added=(AddedIndex(name="own", url="https://o.example/{cuda}"),)), cuda=None
    )
    assert urls(router.route("numpy", nightly=False)) == ["https://o.example/cpu/numpy/"]


def test_an_added_index_may_be_excluded_too() -> None:
    added = (AddedIndex(name="own", url="https://own.example/simple"),)
    router = make_router(replace(PLAIN, added=added, excluded=frozenset({"own"})))
    assert indexes(router.route("numpy", nightly=False)) == ["default"]


def test_a_known_publishers_address_keeps_its_manners_under_another_name() -> None:
    added = (AddedIndex(name="frame-128", url="https://frame.example/whl/cu128"),)
    route = make_router(replace(PLAIN, added=added)).route("numpy", nightly=False)
    assert route.index == "frame-128"
    assert route.folders[0].absent == {403, 404}
    lookalike = (AddedIndex(name="own", url="https://frame.example.evil/whl/cu128"),)
    assert make_router(replace(PLAIN, added=lookalike)).route("numpy", nightly=False).folders[
        0
    ].absent == {404}


def test_an_address_without_a_name_takes_the_publishers_or_its_host() -> None:
    router = make_router(
        replace(
            PLAIN,
            added=(
                AddedIndex(url="https://frame.example/whl/cu128"),
                AddedIndex(url="https://frame.example/whl/cu126"),
                AddedIndex(url="https://own.example/a"),
                AddedIndex(url="https://own.example/b"),
            ),
        )
    )
    route = router.route("frame", nightly=False)
    assert indexes(route) == ["own.example", "own.example-2", "frame", "default"]
    assert urls(route.chain[2]) == [
        "https://frame.example/whl/cu128/frame/",
        "https://frame.example/whl/cu126/frame/",
    ]
    assert indexes(router.route("numpy", nightly=False)) == [
        "own.example",
        "own.example-2",
        "default",
    ]


def test_one_name_with_two_addresses_is_refused() -> None:
    for name in ("own", "frame"):
        added = (AddedIndex(name=name, url="https://a.example"),) * 2
        with pytest.raises(UsageError, match="one address"):
            make_router(replace(PLAIN, added=added))


@pytest.mark.parametrize("name", ["default", "find-links", "direct", "a b", ""])
def test_a_name_that_means_something_else_or_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="name"):
        make_router(replace(PLAIN, added=(AddedIndex(name=name, url="https://a.example"),)))


def test_a_source_sends_its_project_to_one_index_and_nowhere_else() -> None:
    router = make_router(
        replace(
            PLAIN,
            added=(AddedIndex(name="own", url="https://own.example/simple", explicit=True),),
            sources={"numpy": "own", "scipy": "frame", "frame": "default", "kernel": "frame"},
        ),
        cuda=CUDA_130,
    )
    assert indexes(router.route("numpy", nightly=False)) == ["own"]
    assert indexes(router.route("frame", nightly=False)) == ["default"]
    assert urls(router.route("scipy", nightly=False)) == ["https://frame.example/whl/cu130/scipy/"]
    assert router.route("scipy", nightly=False).otherwise is None
    assert "tool.uv.sources" in router.route("kernel", nightly=False).reason


def test_an_explicit_index_serves_only_what_a_source_names() -> None:
    added = (AddedIndex(name="frame", url="https://own.example/cu128", explicit=True),)
    router = make_router(replace(PLAIN, added=added, sources={"frame": "frame"}), cuda=CUDA_130)
    assert urls(router.route("frame", nightly=False)) == ["https://own.example/cu128/frame/"]
    assert indexes(router.route("numpy", nightly=False)) == ["default"]
    vision = router.route("frame-vision", nightly=False)
    assert urls(vision) == ["https://frame.example/whl/cu130/frame-vision/"]


def test_a_source_that_names_no_index_is_refused_where_it_stands() -> None:
    with pytest.raises(UsageError, match="`nope`") as caught:
        make_router(replace(PLAIN, sources={"numpy": "nope"}))
    assert caught.value.where == "tool.uv.sources.numpy"


def test_a_source_on_an_index_that_is_left_out_is_as_if_unsaid() -> None:
    router = make_router(replace(PLAIN, sources={"frame": "frame"}, excluded=frozenset({"frame"})))
    assert indexes(router.route("frame", nightly=False)) == ["default"]
    router = make_router(replace(PLAIN, sources={"frame": "frame"}, only_default=True))
    assert indexes(router.route("frame", nightly=False)) == ["default"]


def test_credentials_reach_the_request_and_never_what_a_lock_records() -> None:
    router = Router(
        definitions=(),
        options=RoutingOptions(default_url="https://user:canary@pkgs.example/simple/"),
        cuda=None,
    )
    (asked,) = router.route("numpy", nightly=False).folders
    assert asked.url == "https://user:canary@pkgs.example/simple/numpy/"
    assert asked.index_url == "https://pkgs.example/simple/"


def test_a_token_in_the_query_stays_behind_the_projects_page() -> None:
    options = RoutingOptions(default_url="https://pkgs.example/simple?token=canary")
    router = Router(definitions=(), options=options, cuda=None)
    (asked,) = router.route("numpy", nightly=False).folders
    assert asked.url == "https://pkgs.example/simple/numpy/?token=canary"
    assert asked.index_url == "https://pkgs.example/simple"


def test_the_index_option_splits_a_name_from_its_address() -> None:
    assert parse_index_option("https://a.example/whl") == AddedIndex(url="https://a.example/whl")
    assert parse_index_option("own=http://127.0.0.1:8000/{cuda}") == AddedIndex(
        name="own", url="http://127.0.0.1:8000/{cuda}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "own=",
        "own=own.example/whl",
        "ftp://a.example",
        "file:///srv/wheels",
        "https://",
        "https://[::1",
        "https://a.example/?a=b",
        "https://a.example/#x",
        "https://a.example/{python}",
        "https://{cuda}.example/",
        "https://a.example/a b",
        "https://a.example/\n",
        "https://a.example\\@evil.example/",
    ],
)
def test_an_index_option_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_index_option(text)
    assert caught.value.exit_code == 2


@example(text="{\x1b}")
@given(st.text(max_size=80))
def test_any_index_option_is_parsed_or_refused_and_never_shows_a_control(text: str) -> None:
    try:
        outcome = parse_index_option(text).url
    except CudalockError as error:
        outcome = str(error)
    assert outcome.isprintable()


@given(st.permutations(["numpy", "frame", "tri", "cache", "kernel"]), st.booleans())
def test_the_order_of_asking_changes_no_route(projects: list[str], nightly: bool) -> None:
    router = make_router()
    found = {project: router.route(project, nightly=nightly) for project in projects}
    for project in sorted(projects):
        assert make_router().route(project, nightly=nightly) == found[project]


def test_a_template_with_a_partner_waits_for_its_release() -> None:
    route = make_router(cuda=CUDA_130).route("sparse", nightly=False)
    assert route.partner == "frame"
    waiting = route.folders[0]
    assert waiting.partnered
    assert not waiting.versioned
    asked = waiting.at_partner(Version("2.10.0"))
    assert asked.url == "https://extension.example/frame-2.10.0%2Bcu130.html"
    assert asked.index_url == asked.url
    assert (asked.folder, asked.flat, asked.partnered) == ("cu130", True, False)


def test_folders_for_exact_pins_are_marked_as_such() -> None:
    route = make_router(cuda=CUDA_130).route("sparse", nightly=False)
    assert [(f.url, f.pinned) for f in route.folders[1:]] == [
        ("https://extension.example/test/cu130", True)
    ]


def test_an_index_for_tegra_counts_there_only_and_first() -> None:
    desktop = make_router(cuda=CUDA_130).route("frame", nightly=False)
    assert indexes(desktop) == ["frame", "default"]
    board = make_router(cuda=CUDA_130, tegra=True).route("frame", nightly=False)
    assert indexes(board) == ["board", "frame", "default"]
    # A devpi server's folder is written as it is.
    assert urls(board) == ["https://board.example/cu130/+simple/frame/"]
    assert indexes(make_router(tegra=True).route("kernel", nightly=False)) == ["kernel", "default"]


def test_what_an_index_serves_is_asked_there_only_when_a_person_says_so() -> None:
    plain = make_router(cuda=CUDA_130)
    assert indexes(plain.route("kernel", nightly=False)) == ["kernel", "default"]
    assert indexes(plain.route("tri", nightly=False)) == ["default"]
    asked = make_router(replace(PLAIN, added=(parse_index_option("extension"),)), cuda=CUDA_130)
    assert indexes(asked.route("kernel", nightly=False)) == ["extension", "kernel", "default"]
    assert indexes(asked.route("tri", nightly=False)) == ["extension", "default"]
    assert indexes(asked.route("numpy", nightly=False)) == ["default"]
    assert asked.route("kernel", nightly=False).recordable
    sourced = make_router(replace(PLAIN, sources={"kernel": "extension"}), cuda=CUDA_130)
    assert indexes(sourced.route("kernel", nightly=False)) == ["extension"]
    assert sourced.route("kernel", nightly=False).partner == "frame"


def test_two_indexes_that_serve_one_project_are_not_both_asked_for() -> None:
    added = (AddedIndex(url="", name="extension"), AddedIndex(url="", name="board"))
    with pytest.raises(
        UsageError, match="one index for tri, found `extension` and `board`"
    ) as error:
        make_router(replace(PLAIN, added=added))
    assert error.value.where == "--index board"
    twice = (AddedIndex(url="", name="board"),) * 2
    assert make_router(replace(PLAIN, added=twice)).definitions


def test_a_bare_name_that_is_no_definition_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="board, cache, extension") as caught:
        make_router(replace(PLAIN, added=(parse_index_option("extensions"),)))
    assert caught.value.where == "--index extensions"
    with pytest.raises(UsageError, match="found `frame`"):
        make_router(replace(PLAIN, added=(parse_index_option("frame"),), only_default=True))


def test_an_index_asked_for_may_be_left_out_again() -> None:
    options = replace(
        PLAIN, added=(parse_index_option("extension"),), excluded=frozenset({"extension"})
    )
    assert indexes(make_router(options).route("kernel", nightly=False)) == ["kernel", "default"]


def test_a_partner_stands_only_below_the_address_of_a_publisher_that_has_one() -> None:
    url = "https://extension.example/frame-{partner}%2Bcu128.html"
    route = make_router(replace(PLAIN, added=(AddedIndex(name="own", url=url),))).route(
        "sparse", nightly=False
    )
    assert (route.index, route.partner) == ("own", "frame")
    assert route.folders[0].flat
    sourced = make_router(
        replace(
            PLAIN,
            added=(AddedIndex(name="own", url=url, explicit=True),),
            sources={"sparse": "own"},
        )
    ).route("sparse", nightly=False)
    assert sourced.partner == "frame"
    with pytest.raises(UsageError, match="publisher that has one"):
        make_router(
            replace(PLAIN, added=(AddedIndex(name="own", url="https://o.example/{partner}"),))
        )
