"""The JSON that ``cudalock resolve --format json`` prints: ``cudalock/resolve/1``.

The schema is in the package (``schemas/resolve-1.json``) and tested against real output.
"""

import json
from collections.abc import Mapping, Sequence

from cudalock.cli.outcome import ToldRemedy
from cudalock.errors import CudalockError
from cudalock.explain.report import conflict_rule, format_fact, format_source
from cudalock.explain.rules import fact_rule, rule_of
from cudalock.host import Target
from cudalock.resolver.conflict import Conflict, ConflictFact, UnprovedError
from cudalock.resolver.resolution import Resolution, ResolvedPackage
from cudalock.wheel.evidence import Variant
from cudalock.wheel.file_hash import claimed_hash
from cudalock.wheel.published import AsOf

__all__ = ["error_form", "format_json", "locked_form", "refused_form", "target_form"]

SCHEMA = "cudalock/resolve/1"


def format_json(form: Mapping[str, object]) -> str:
    """Format a form as one object, with a newline at the end.

    Characters that could control a terminal, and what a log of GitHub Actions would take for a
    command, are escaped as JSON has it; other text stays readable.
    """
    text = json.dumps(form, indent=2, ensure_ascii=False).replace("##[", "#\\u0023[")
    return "".join(c if c == "\n" or c.isprintable() else json.dumps(c)[1:-1] for c in text) + "\n"


def locked_form(
    resolution: Resolution, lock: str | None, told: Sequence[str] = ()
) -> dict[str, object]:
    """Return the form of a set; ``lock`` is the path that was written, if one was.

    ``told`` is what was to be said of the input.
    """
    return {
        **_empty("locked", resolution.target, resolution.as_of),
        "packages": [_package(package) for package in resolution.packages],
        "warnings": _told(told)
        + [_warning(w.code, w.message, w.facts) for w in resolution.warnings],
        "needs_driver": None if resolution.driver is None else str(resolution.driver),
        "needs_package": resolution.compat_package,
        "lock": lock,
    }


def _told(told: Sequence[str]) -> list[dict[str, object]]:
    return [_warning("input", message) for message in told]


def _warning(code: str, message: str, facts: Sequence[str] = ()) -> dict[str, object]:
    rule = rule_of(code)
    told = None if rule is None else rule.code
    return {"code": code, "rule": told, "message": message, "facts": list(facts)}


def refused_form(
    target: Target,
    conflict: Conflict,
    remedies: Sequence[ToldRemedy],
    told: Sequence[str] = (),
    *,
    as_of: AsOf | None = None,
) -> dict[str, object]:
    """Return the form of a proved "no".

    ``told`` is what was to be said of the input.
    """
    return {
        **_empty("refused", target, as_of),
        "warnings": _told(told),
        "conflict": {
            "code": conflict_rule(conflict).code,
            "facts": [_fact(fact) for fact in conflict.facts],
            "also": [[_fact(fact) for fact in facts] for facts in conflict.also],
            "remedies": [
                {"command": r.command, "changes": list(r.changes), "note": r.note} for r in remedies
            ],
        },
    }


def error_form(
    error: CudalockError, target: Target | None, *, as_of: AsOf | None = None
) -> dict[str, object]:
    """Return the form of an error: ``error`` when asked wrongly, ``unknown`` when not told."""
    rule = rule_of(error.code)
    return {
        **_empty("error" if error.exit_code == 2 else "unknown", target, as_of),
        "warnings": [
            {
                "code": "seen",
                "rule": fact_rule(fact.fact).code,
                "message": format_fact(fact),
                "facts": list(fact.sources),
            }
            for fact in (error.seen if isinstance(error, UnprovedError) else ())
        ],
        "error": {
            "code": error.code,
            "rule": None if rule is None else rule.code,
            "message": error.message,
            "where": error.where,
            "flag": error.flag,
        },
    }


def _empty(status: str, target: Target | None, as_of: AsOf | None = None) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "status": status,
        "error": None,
        "target": None if target is None else target_form(target),
        "packages": [],
        "warnings": [],
        "conflict": None,
        "needs_driver": None,
        "needs_package": None,
        "as_of": None if as_of is None else str(as_of),
        "lock": None,
    }


def target_form(target: Target) -> dict[str, object]:
    """Return the form of a target, and where each of its values came from."""

    def text(value: object) -> str | None:
        return None if value is None else str(value)

    return {
        "name": target.name,
        "python": target.python,
        "implementation": target.implementation,
        "free_threaded": target.free_threaded,
        "platform": target.platform,
        "driver": text(target.driver),
        "driver_cuda": text(target.driver_cuda),
        "cuda": "any" if target.cuda_any else text(target.cuda),
        "cuda_compat": target.cuda_compat,
        "capabilities": [str(capability) for capability in target.capabilities],
        "cpu": target.cpu,
        "tegra": target.tegra,
        "wsl": target.wsl,
        "origins": {origin.field: origin.text for origin in target.origins},
    }


def _package(package: ResolvedPackage) -> dict[str, object]:
    variant = package.variant
    file = package.file
    settled = claimed_hash(file) if package.hash is None else package.hash
    claims = dict.fromkeys((*file.sha256, *(aside.sha256 for aside in file.aside)))
    return {
        "name": package.project,
        "version": str(package.version),
        "index": package.file.index_url or None,
        "wheels": [
            {
                "name": file.filename,
                "url": file.url,
                "sha256": None if settled is None else settled.sha256,
                "hash": None if settled is None else settled.state,
                "claims": list(claims),
                "variant": {
                    "state": variant.state,
                    "cuda": None if variant.cuda is None else str(variant.cuda),
                    "runtime": variant.runtime,
                    "architectures": _architectures(variant),
                    "evidence": [
                        {"kind": o.kind, "text": o.text, "source": o.source}
                        for o in variant.evidence
                    ],
                    "tier": None if variant.facts is None else variant.facts.tier,
                    "proofs": [
                        {"rule": proof.rule, "state": proof.state, "by": proof.text}
                        for proof in package.proofs
                    ],
                },
                "metadata": {
                    "source": package.metadata.source,
                    "assumed": package.metadata.assumed,
                },
            }
        ],
        "dependencies": list(package.dependencies),
    }


def _architectures(variant: Variant) -> list[str]:
    """Return what the bytes hold, where any were read that do; else what is said of the build."""
    read = [] if variant.facts is None else list(variant.facts.contents.device_code)
    code = variant.device_code
    return read or ([] if code is None else [str(image) for image in code.images])


def _fact(described: ConflictFact) -> dict[str, object]:
    return {
        "kind": described.fact.kind.word,
        "code": fact_rule(described.fact).code,
        "text": format_fact(described),
        "source": format_source(described),
    }
