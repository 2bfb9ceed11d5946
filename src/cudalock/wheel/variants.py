"""The metadata of wheel variants: ``{name}-{version}-variants.json`` (PEP 825, schema 0.1.x).

A variant label in a file name says nothing by itself; this file maps it to properties, triples of
namespace, feature and value. Schema 0.2.0 (written by variantlib 0.2.2, and the one that uv 0.13.9
reads) adds ``providers``, which is kept as it is and never acted on: no code of a provider runs here.
What a property means for a machine is known to `variant_match.py`.

PEP 825: "Tools MUST NOT make any compatibility assumptions over these versions" (those that begin
with a zero). So a schema that is not one of these is not guessed at.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from cudalock.errors import WheelError
from cudalock.wheel.filename import NULL_VARIANT, WheelFile
from cudalock.wheel.names import format_quoted

__all__ = [
    "VARIANTS_LIMIT",
    "PlainValue",
    "VariantProperties",
    "VariantsLink",
    "VariantsMetadata",
    "VariantsUnread",
    "is_known_schema",
    "parse_variants",
    "read_variants_table",
    "variants_file_name",
]

VARIANTS_LIMIT = 1024 * 1024
"""The bytes that are read of a file at most; those seen are a thousandth of it."""

_SCHEMA = re.compile(
    r"https://variants-schema\.wheelnext\.dev/"
    r"(?:peps/825/v(?P<plain>0\.1\.[0-9]{1,3})|(?:peps/850/)?v(?P<provided>0\.2\.0))\.json\Z"
)
_LABEL = re.compile(r"[0-9a-z_.]{1,200}\Z", re.ASCII)
_NAME = re.compile(r"[0-9a-z_]{1,200}\Z", re.ASCII)
_VALUE = re.compile(r"[0-9a-z_.]{1,200}\Z", re.ASCII)
_MOST_VARIANTS = 1000
_MOST_VALUES = 20_000
_LONGEST_LIST = 1000
_DEEPEST = 12
# The lock takes no text with a user's name or password in an address.
_USERINFO = re.compile(r"//[^/\s]*@")

PlainValue: TypeAlias = "str | bool | int | Sequence[PlainValue] | Mapping[str, PlainValue]"
VariantProperties: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Values by feature by namespace. Every feature must suit, by any one of its values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantsLink:
    """Where a page says that the metadata of a version's variants is, and its claimed hashes."""

    url: str
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantsMetadata:
    """What the labels of one version stand for.

    ``namespaces`` are in decreasing priority, ``variants`` are properties by label, ``document`` is
    the whole of it as plain data for a lock, ``source`` where it was read.
    """

    namespaces: tuple[str, ...]
    variants: Mapping[str, VariantProperties] = field(hash=False)
    document: Mapping[str, PlainValue] = field(hash=False)
    source: str

    def properties(self, label: str) -> VariantProperties | None:
        """Return what a label stands for, None for one that is not in the file.

        PEP 825: `null` "always corresponds to the variant with zero properties".
        """
        return {} if label == NULL_VARIANT else self.variants.get(label)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantsUnread:
    """Why nothing is known of the variants of a version."""

    reason: str


def variants_file_name(wheel: WheelFile) -> str:
    """Return the name of the file that belongs to a wheel: spelt as the wheel spells its version."""
    return "-".join(wheel.filename.split("-", 2)[:2]) + "-variants.json"


def is_known_schema(document: Mapping[str, Any]) -> bool:
    """Whether ``$schema`` is one that is read here."""
    schema = document.get("$schema")
    return isinstance(schema, str) and _SCHEMA.match(schema) is not None


class _TwiceError(ValueError):
    pass


def parse_variants(data: bytes, *, where: str) -> VariantsMetadata:
    """Parse a file; raise `WheelError` naming it for one that is no such JSON, or of another schema.

    Linear, and at most `VARIANTS_LIMIT` bytes are looked at.
    """
    if len(data) > VARIANTS_LIMIT:
        raise WheelError(
            f"expected variant metadata of at most {VARIANTS_LIMIT} bytes, found {len(data)}",
            where=where,
        )
    try:
        document = json.loads(
            data.decode("utf-8-sig"),
            object_pairs_hook=_members,
            parse_constant=_refuse,
            parse_float=_refuse,
        )
    except _TwiceError as error:
        message = f"expected each key once in variant metadata, found {error} twice"
        raise WheelError(message, where=where) from error
    except RecursionError as error:
        message = "expected variant metadata of a few levels, found too many"
        raise WheelError(message, where=where) from error
    except ValueError as error:
        message = "expected variant metadata in JSON, found something else"
        raise WheelError(message, where=where) from error
    if not isinstance(document, dict):
        raise WheelError("expected variant metadata, found JSON that is no object", where=where)
    return read_variants_table(document, where=where)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise _TwiceError(format_quoted(key))
        members[key] = value
    return members


def _refuse(text: str) -> NoReturn:
    # Neither TOML nor any key of the format has such a number.
    raise ValueError(text)


def read_variants_table(document: Mapping[str, Any], *, where: str) -> VariantsMetadata:
    """Read metadata that is already plain data, as in a lock; raise `WheelError` as for a file."""
    reader = _Reader(where)
    schema = document.get("$schema")
    match = _SCHEMA.match(schema) if isinstance(schema, str) else None
    if match is None:
        found = "none" if schema is None else format_quoted(str(schema))
        reader.fault("$schema", f"expected schema 0.1.x of PEP 825 or 0.2.0, found {found}")
    keys = {"$schema", "default-priorities", "variants"}
    if match["provided"] is not None:
        keys.add("providers")
    reader.keys(document, keys, "")
    namespaces = reader.namespaces(document)
    variants = reader.variants(document, namespaces)
    plain: dict[str, PlainValue] = {
        "$schema": str(schema),
        "default-priorities": reader.plain(document["default-priorities"], "default-priorities"),
        "variants": {
            label: {
                name: {feature: list(values) for feature, values in sorted(features.items())}
                for name, features in sorted(properties.items())
            }
            for label, properties in sorted(variants.items())
        },
    }
    if "providers" in document:
        plain["providers"] = reader.plain(reader.table(document, "providers", ""), "providers")
    return VariantsMetadata(namespaces=namespaces, variants=variants, document=plain, source=where)


class _Reader:
    """Takes typed values out of the document; every fault names its place in it."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._values = 0

    def fault(self, path: str, message: str) -> NoReturn:
        raise WheelError(f"{message} at `{path}` of variant metadata", where=self._where)

    def keys(self, table: Mapping[str, Any], known: set[str], path: str) -> None:
        for key in table:
            if key not in known:
                self.fault(path or "the top", f"expected no key {format_quoted(key)}")

    def table(self, parent: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
        value = parent.get(key)
        if not isinstance(value, Mapping):
            self.fault(f"{path}{key}", "expected an object")
        return value

    def words(self, value: object, grammar: re.Pattern[str], path: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            self.fault(path, "expected a list that is not empty")
        if len(value) > _LONGEST_LIST:
            self.fault(path, f"expected at most {_LONGEST_LIST} values of one feature")
        self._values += len(value)
        if self._values > _MOST_VALUES:
            self.fault(path, f"expected at most {_MOST_VALUES} values")
        for word in value:
            if not isinstance(word, str) or not grammar.match(word):
                self.fault(path, "expected lower-case letters, digits and `_`")
        if len(set(value)) != len(value):
            self.fault(path, "expected each value once")
        return tuple(value)

    def namespaces(self, document: Mapping[str, Any]) -> tuple[str, ...]:
        priorities = self.table(document, "default-priorities", "")
        # 0.1.0 had two more lists, which ordered variants further; they decide nothing here.
        self.keys(priorities, {"namespace", "feature", "property"}, "default-priorities")
        return self.words(priorities.get("namespace"), _NAME, "default-priorities.namespace")

    def variants(
        self, document: Mapping[str, Any], namespaces: tuple[str, ...]
    ) -> dict[str, VariantProperties]:
        table = self.table(document, "variants", "")
        if len(table) > _MOST_VARIANTS:
            self.fault("variants", f"expected at most {_MOST_VARIANTS} variants")
        found: dict[str, VariantProperties] = {}
        for label in table:
            path = f"variants.{format_quoted(label)[1:-1]}"
            if not _LABEL.match(label):
                self.fault(path, "expected a variant label")
            found[label] = self._properties(self.table(table, label, "variants."), path)
            if label == NULL_VARIANT and found[label]:
                self.fault(path, "expected no properties")
            for namespace in found[label]:
                # PEP 825: "This list MUST contain all namespaces used in variant properties".
                if namespace not in namespaces:
                    self.fault(path, "expected namespaces of `default-priorities` only")
        return found

    def _properties(self, table: Mapping[str, Any], path: str) -> VariantProperties:
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for namespace in table:
            self._name(namespace, path)
            inner = f"{path}.{namespace}"
            features = self.table(table, namespace, f"{path}.")
            found[namespace] = {}
            for feature, values in features.items():
                self._name(feature, inner)
                words = self.words(values, _VALUE, f"{inner}.{feature}")
                # PEP 825: "sets of feature values, converted to lists and sorted lexically".
                found[namespace][feature] = tuple(sorted(words))
        return found

    def _name(self, name: str, path: str) -> None:
        if not _NAME.match(name):
            self.fault(path, f"expected a name, found {format_quoted(name)}")

    def plain(self, value: object, path: str, depth: int = 0) -> PlainValue:
        """Return data that a lock can hold, unchanged."""
        self._values += 1
        if depth > _DEEPEST or self._values > _MOST_VALUES:
            self.fault(path, "expected less and flatter data")
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            if abs(value) >= 2**63:
                self.fault(path, "expected an integer of 64 bits")
            return value
        if isinstance(value, list):
            return [self.plain(item, path, depth + 1) for item in value]
        if not isinstance(value, Mapping):
            self.fault(path, f"expected text, a number, a list or an object, found {value!r:.40}")
        return {
            self._text(key, path): self.plain(item, path, depth + 1) for key, item in value.items()
        }

    def _text(self, text: str, path: str) -> str:
        if any("\ud800" <= character <= "\udfff" for character in text):
            self.fault(path, "expected Unicode text")
        if _USERINFO.search(text):
            self.fault(path, "expected no address with a user's name")
        return text
