"""``cudalock tree`` and ``cudalock why``: who requires whom in a lock, and why a wheel is in it."""

import json
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from packaging.utils import canonicalize_name

from cudalock.cli.open_locks import find_lock
from cudalock.cli.terminal import printable
from cudalock.errors import UsageError
from cudalock.lock.model import Lock
from cudalock.verify.graph import LockGraph, Node, Requires, lock_graph
from cudalock.verify.recorded import Bind, texts

__all__ = ["run_tree", "run_why"]

_WIDTH = 80


def run_tree(args: Namespace) -> int:
    """Print the tree of a lock, or of one project in it; ``--invert`` shows who requires it."""
    graph = lock_graph(find_lock(args.lock, Path(args.project or ".")))
    roots = graph.roots if args.name is None else (_known(graph, args.name),)
    if args.invert and args.name is None:
        raise UsageError("expected the project that others require", flag="NAME")
    if args.format == "json":
        sys.stdout.write(json.dumps(_tree_form(graph, roots, args.invert), indent=2) + "\n")
        return 0
    lines = _draw(graph, roots, invert=args.invert, depth=args.depth)
    sys.stdout.write("".join(f"{_cut(printable(line))}\n" for line in lines))
    return 0


def _known(graph: LockGraph, name: str) -> str:
    project = str(canonicalize_name(name))
    if project in graph.nodes:
        return project
    near = get_close_matches(project, graph.nodes, n=1)
    told = f" (did you mean `{near[0]}`?)" if near else ""
    raise UsageError(f"expected a project of the lock, found `{name[:80]}`{told}")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _label(node: Node) -> str:
    return f"{node} [CUDA {node.cuda}]" if node.cuda is not None else str(node)


def _draw(
    graph: LockGraph, roots: Sequence[str], *, invert: bool, depth: int | None
) -> Iterator[str]:
    """Yield the lines of a tree; what was drawn before is named with ``(*)`` and not drawn again."""
    drawn: set[str] = set()
    # A stack in place of recursion: a chain of requirements may be longer than Python is deep.
    waiting: list[tuple[str, str, str, str | None]] = [
        (name, "", "", None) for name in reversed(roots)
    ]
    while waiting:
        name, lead, below, text = waiting.pop()
        node = graph.nodes.get(name)
        told = name if node is None else _label(node)
        asked = f" ({text})" if text is not None else ""
        children = _children(graph, name, invert=invert)
        again = name in drawn and bool(children)
        missing = " (not in the lock)" if node is None else ""
        yield f"{lead}{told}{missing}{asked}{' (*)' if again else ''}"
        deep = len(below) // 4
        if again or (depth is not None and deep >= depth):
            continue
        drawn.add(name)
        for place, (child, why) in enumerate(reversed(children)):
            last = place == 0
            waiting.append(
                (
                    child,
                    f"{below}{'└── ' if last else '├── '}",
                    f"{below}{'    ' if last else '│   '}",
                    why,
                )
            )


def _children(graph: LockGraph, name: str, *, invert: bool) -> list[tuple[str, str | None]]:
    if invert:
        return [(node.package.name, one.text) for node, one in graph.required_by(name)]
    node = graph.nodes.get(name)
    return [] if node is None else [(one.project, one.text) for one in node.requires]


def _tree_form(graph: LockGraph, roots: Sequence[str], inverted: bool) -> dict[str, object]:
    reached: dict[str, None] = {}
    waiting = list(roots)
    for name in waiting:
        if name not in reached and name in graph.nodes:
            reached[name] = None
            waiting += [child for child, _ in _children(graph, name, invert=inverted)]
    return {
        "schema": "cudalock/tree/1",
        "inverted": inverted,
        "roots": list(roots),
        "packages": [
            {
                "name": name,
                "version": graph.nodes[name].package.version,
                "cuda": graph.nodes[name].cuda,
                "requires": [
                    {"name": one.project, "requirement": one.text}
                    for one in graph.nodes[name].requires
                ],
            }
            for name in sorted(reached)
        ],
    }


def run_why(args: Namespace) -> int:
    """Say why a project is in a lock: 0 it is, 1 it is not."""
    lock = find_lock(args.lock, Path(args.project or "."))
    graph = lock_graph(lock)
    project = str(canonicalize_name(args.name))
    refused = _refused(lock, project)
    node = graph.nodes.get(project)
    if node is None:
        if not refused:
            _known(graph, args.name)
        sys.stdout.write(printable(f"{project} is not in the lock.\n"))
        for text in refused:
            sys.stdout.write(_filled(text, ""))
        return 1
    asked = [one for one in graph.asked if one.project == project]
    required = list(graph.required_by(project))
    if args.format == "json":
        form = _why_form(graph, node, asked, required, refused)
        sys.stdout.write(json.dumps(form, indent=2) + "\n")
        return 0
    lines = [str(node)]
    if node.package.index is not None:
        lines[0] += f" from {node.package.index}"
    out = [_filled(lines[0], "")]
    out += [_filled(f"you ask for `{one.text}`", "  ") for one in asked]
    if not asked:
        out.append(_filled(" -> ".join(["you", *graph.chain(project)]), "  "))
    out += [
        _filled(f"{who} requires " + (f"`{one.text}`" if one.text else "it"), "  ")
        for who, one in required
    ]
    if node.cuda is not None:
        out.append(_filled(f"built for CUDA {node.cuda}:", "  "))
    out += [_filled(text, "    ") for text in (node.record.evidence if node.record else ())]
    for who, bind in _bonds(graph, node):
        held = " or ".join(sorted(bind.values))
        out.append(_filled(f"held to {bind.package} {held}: {who} {bind.because}", "  "))
    out += [_filled(text, "  ") for text in refused]
    sys.stdout.write("".join(out))
    return 0


def _filled(text: str, indent: str) -> str:
    wrapped = textwrap.fill(
        printable(text),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{wrapped}\n"


def _refused(lock: Lock, project: str) -> list[str]:
    """Return what the lock records of versions of a project that were held back."""
    words = texts(lock.tool, "held-back") or ()
    return [text for text in words if text.removeprefix("held back: ").split(" ", 1)[0] == project]


def _bonds(graph: LockGraph, node: Node) -> Iterator[tuple[Node, Bind]]:
    """Yield what this wheel and others bind of the virtual packages that it is held to."""
    own = {bind.package for bind in (node.record.binds if node.record else ())}
    for name in sorted(graph.nodes):
        other = graph.nodes[name]
        for bind in other.record.binds if other.record else ():
            if bind.package in own and (other is node or bind.package != "<cuda-toolkit>"):
                yield other, bind


def _why_form(
    graph: LockGraph,
    node: Node,
    asked: Sequence[Requires],
    required: Sequence[tuple[Node, Requires]],
    refused: Sequence[str],
) -> dict[str, object]:
    return {
        "schema": "cudalock/why/1",
        "name": node.package.name,
        "version": node.package.version,
        "index": node.package.index,
        "file": node.package.wheels[0].name,
        "cuda": node.cuda,
        "evidence": list(node.record.evidence if node.record else ()),
        "asked": [one.text for one in asked],
        "required_by": [
            {
                "name": who.package.name,
                "version": who.package.version,
                "requirement": one.text,
            }
            for who, one in required
        ],
        "chain": list(graph.chain(node.package.name)),
        "binds": [
            {
                "package": bind.package,
                "values": sorted(bind.values),
                "because": f"{who} {bind.because}",
            }
            for who, bind in _bonds(graph, node)
        ],
        "refused": list(refused),
    }
