"""Validators of documents and values. Patterns are those of Python's `re` or else of RE2, such as `\\p{L}`."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from jsonschema import Draft7Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for

from barnabas.registry.json_schema.patterns import is_found, is_pattern

#: (validator, value of the keyword, instance, schema with the keyword) -> what is wrong
_Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


def validator_class(contents: Any) -> Any:
    """Return the class of validators of the document's draft."""
    return validator_for(contents, default=Draft7Validator)


@cache
def format_checker(draft: Any) -> FormatChecker:
    """Return the checker of formats in documents of a draft, which are also checked by its metaschema."""
    checker = FormatChecker(())
    checker.checkers = {**draft.FORMAT_CHECKER.checkers, "regex": (_is_regex, ())}
    return checker


def _is_regex(instance: object) -> bool:
    return not isinstance(instance, str) or is_pattern(instance)


@cache
def value_validator_class(draft: Any) -> Any:
    """Return the class of validators of values for a draft."""
    keywords: dict[str, _Keyword] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    for name in {"additionalProperties", "unevaluatedProperties"} & draft.VALIDATORS.keys():
        keywords[name] = _without_patterns(draft.VALIDATORS[name])
    return extend(draft, keywords)


def _pattern(validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not is_found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for name in instance:
            if is_found(pattern, name):
                yield from validator.descend(instance[name], subschema, path=name, schema_path=pattern)


def _without_patterns(keyword: _Keyword) -> _Keyword:
    """Check a keyword as if the schema named the properties that match its patterns."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(instance, "object"):
            matching = [name for name in instance if any(is_found(pattern, name) for pattern in patterns)]
            schema = {key: part for key, part in schema.items() if key != "patternProperties"}
            schema["properties"] = dict.fromkeys(matching, True) | schema.get("properties", {})
        yield from keyword(validator, value, instance, schema)

    return check
