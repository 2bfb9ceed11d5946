"""A lock in the form of other tools: requirements with hashes, or a bill of materials.

What a form cannot carry is refused, never dropped: a lock that installs something else after it was
converted is worse than none.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from urllib.parse import quote

from cudalock.errors import UsageError
from cudalock.host.target import marker_environment
from cudalock.lock.markers import parse_marker
from cudalock.lock.model import Lock, LockedPackage
from cudalock.verify.graph import LockGraph, lock_graph
from cudalock.verify.recorded import read_target
from cudalock.verify.selection import select_entries
from cudalock.wheel.filename import split_variant_label

__all__ = ["export_cyclonedx", "export_requirements"]


def export_requirements(lock: Lock) -> str:
    """Return a requirements file of pins with the hashes of every wheel, for `--require-hashes`.

    It holds what is installed when no extra is named, and says what it leaves out. A pin with a local
    label exists on its own index only, so that index is named. Raises `UsageError` for what such a
    file cannot say: a wheel by a path, a wheel variant, a marker that mixes extras with an environment.
    """
    packages, left_out = _default_entries(lock)
    for package in packages:
        _check_carried(package)
    indices = sorted({p.index for p in packages if "+" in p.version and p.index is not None})
    lines = ["# Made by cudalock from a lock; install with `--require-hashes`."]
    target = read_target(lock)
    if target is not None:
        name = f" `{target.name}`" if target.name else ""
        lines.append(f"# For the target{name}: Python {target.python} on {target.platform}.")
    if left_out:
        lines.append(f"# Without what an extra or a group selects: {', '.join(left_out)}.")
    lines += [f"--extra-index-url {index}" for index in indices]
    for package in sorted(packages, key=lambda p: (p.name, p.version, p.marker or "")):
        lines += _pin(package)
    return "\n".join(lines) + "\n"


def _default_entries(lock: Lock) -> tuple[list[LockedPackage], list[str]]:
    """Return the entries that no extra and only the default groups select, and the others' names.

    Such an entry loses the part of its marker that says so; a marker in which that part is one of
    several is refused.
    """
    kept: list[LockedPackage] = []
    left_out: set[str] = set()
    groups = frozenset(lock.default_groups)
    for package in lock.packages:
        marker = None if package.marker is None else parse_marker(package.marker)
        if marker is None or not (marker.extras or marker.groups):
            kept.append(package)
        elif not marker.may_hold(extras=frozenset(), groups=groups):
            left_out.add(f"{package.name} {package.version}")
        elif " and " in marker.text or " or " in marker.text:
            raise UsageError(
                f"expected a marker without extras and groups, found `{marker.text[:120]}` of "
                f"{package.name}: a requirements file knows neither; `pylock.toml` does"
            )
        else:
            kept.append(replace(package, marker=None))
    return kept, sorted(left_out)


def _check_carried(package: LockedPackage) -> None:
    for wheel in package.wheels:
        if wheel.url is None:
            raise UsageError(
                f"expected wheels of an index, found {package.name} at the path {wheel.path}: a "
                "requirements file does not know the folder of the lock"
            )
        if split_variant_label(wheel.name)[1] is not None:
            raise UsageError(
                f"expected ordinary wheels, found the wheel variant {wheel.name}: a requirements "
                "file cannot ask for a variant"
            )
    if "+" in package.version and package.index is None:
        raise UsageError(
            f"expected the index of {package.name} {package.version}, which exists on no other, "
            "found none in the lock"
        )


def _pin(package: LockedPackage) -> Iterator[str]:
    marker = "" if package.marker is None else f" ; {package.marker}"
    digests = sorted({wheel.hashes["sha256"] for wheel in package.wheels})
    yield f"{package.name}=={package.version}{marker} \\"
    for place, digest in enumerate(digests):
        end = " \\" if place < len(digests) - 1 else ""
        yield f"    --hash=sha256:{digest}{end}"
    if "+" in package.version:
        yield f"    # from {package.index}"


def export_cyclonedx(lock: Lock) -> dict[str, object]:
    """Return a CycloneDX 1.6 bill of materials: hashes, addresses, and CUDA as properties.

    It holds no time and no serial number, so the same lock gives the same bytes.
    """
    graph = lock_graph(lock)
    target = read_target(lock)
    packages = list(lock.packages)
    if target is not None:
        asked: dict[str, str | AbstractSet[str]] = {
            **marker_environment(target),
            "extras": frozenset[str](),
            "dependency_groups": frozenset(lock.default_groups),
        }
        packages = list(select_entries(lock, asked))
    described: Mapping[str, object] | object = lock.tool.get("target", {})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "cudalock"}]},
            "properties": [
                {"name": f"cudalock:target:{key}", "value": _words(value)}
                for key, value in sorted(described.items())
            ]
            if isinstance(described, Mapping)
            else [],
        },
        "components": [_component(package, graph) for package in sorted(packages, key=_by_name)],
        "dependencies": [
            {
                "ref": _purl(package),
                "dependsOn": sorted(
                    _purl(graph.nodes[one.project].package)
                    for one in graph.nodes[package.name].requires
                    if one.project in graph.nodes
                ),
            }
            for package in sorted(packages, key=_by_name)
            if package.name in graph.nodes
        ],
    }


def _by_name(package: LockedPackage) -> tuple[str, str]:
    return package.name, package.version


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _purl(package: LockedPackage) -> str:
    """Return the package URL of an entry (purl-spec, type ``pypi``)."""
    purl = f"pkg:pypi/{package.name}@{quote(package.version, safe='.!-_')}"
    return (
        purl if package.index is None else f"{purl}?repository_url={quote(package.index, safe='')}"
    )


def _component(package: LockedPackage, graph: LockGraph) -> dict[str, object]:
    node = graph.nodes.get(package.name)
    record = None if node is None else node.record
    wheel = package.wheels[0]
    properties = [{"name": "cudalock:file", "value": wheel.name}]
    if record is not None:
        properties.append({"name": "cudalock:built-for", "value": record.built_for})
        if record.cuda is not None:
            properties.append({"name": "cudalock:cuda", "value": str(record.cuda)})
        if record.runtime is not None:
            properties.append({"name": "cudalock:runtime", "value": str(record.runtime)})
        properties += [{"name": "cudalock:evidence", "value": text} for text in record.evidence]
    found: dict[str, object] = {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "purl": _purl(package),
        "hashes": [
            {"alg": "SHA-256", "content": digest}
            for digest in sorted({wheel.hashes["sha256"] for wheel in package.wheels})
        ],
        "properties": properties,
    }
    urls = [wheel.url for wheel in package.wheels if wheel.url is not None]
    if urls:
        found["externalReferences"] = [{"type": "distribution", "url": url} for url in urls]
    return found
