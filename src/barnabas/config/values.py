"""Converts between the text and the typed value of a property, by the rules of Kafka's `ConfigDef`."""

from barnabas.config.definition import ConfigError, ConfigKey, ConfigType, Value
from barnabas.config.validators import ListOf

#: What Java's `String.trim` removes: every character up to the blank.
_BLANKS = "".join(map(chr, range(33)))
_LIST_BLANKS = " \t\n\x0b\f\r"
_DOUBLE_CHARACTERS = frozenset("0123456789.eE+-")
#: Python reads no more than some thousand digits.
_DIGITS_MAX = 1_000
_INTEGER_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def parse_value(key: ConfigKey, text: str | None) -> Value:
    """Return the typed and validated value of `text` for `key`; repeated list entries count once.

    :raises ConfigError: When the text does not have the key's type, or is out of bounds.
    """
    value = None if text is None else parse_type(key.name, key.type, text)
    if isinstance(key.validator, ListOf) and isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))
    if key.validator is not None:
        key.validator.check(key.name, value)
    return value


def parse_type(name: str, config_type: ConfigType, text: str) -> Value:
    """Return `text` as a value of `config_type`, not checked against the key's bounds.

    :raises ConfigError: When the text does not have that type.
    """
    trimmed = text.strip(_BLANKS)
    if config_type in _INTEGER_BITS:
        return _parse_integer(name, trimmed, _INTEGER_BITS[config_type])
    if config_type is ConfigType.BOOLEAN:
        return _parse_boolean(name, trimmed)
    if config_type is ConfigType.DOUBLE:
        return _parse_double(name, trimmed)
    if config_type is ConfigType.LIST:
        return tuple(item.strip(_LIST_BLANKS) for item in trimmed.split(",")) if trimmed else ()
    return trimmed


def _parse_boolean(name: str, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ConfigError(name, text, "must be true or false")
    return lowered == "true"


def _parse_integer(name: str, text: str, bits: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    bound = 1 << (bits - 1)
    value = int(text) if digits.isdecimal() and len(digits) <= _DIGITS_MAX else bound
    if not -bound <= value < bound:
        raise ConfigError(name, text, f"must be a whole number of {bits} bits, from {-bound} to {bound - 1}")
    return value


def _parse_double(name: str, text: str) -> float:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned in ("NaN", "Infinity"):
        return float(text)
    digits = text[:-1] if text[-1:] in tuple("dDfF") else text
    try:
        if not _DOUBLE_CHARACTERS.issuperset(digits):
            raise ValueError
        return float(digits)
    except ValueError:
        raise ConfigError(name, text, "must be a number") from None


def format_value(value: Value) -> str | None:
    """Return the text of a parsed value in DescribeConfigs; None stays None."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_double(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _format_double(value: float) -> str:
    """Format as Java's `Double.toString`: decimal from 0.001 to 10 million, else with an exponent."""
    if value != value:
        return "NaN"
    sign = "-" if str(value).startswith("-") else ""
    size = abs(value)
    if size == float("inf"):
        return f"{sign}Infinity"
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(value)
    return sign + _scientific(size)


def _scientific(size: float) -> str:
    mantissa, _, exponent = repr(size).partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = len(whole) - 1
    digits = whole + fraction
    if whole == "0":
        shift = -1 - (len(fraction) - len(fraction.lstrip("0")))
    digits = digits.lstrip("0").rstrip("0") or "0"
    return f"{digits[0]}.{digits[1:] or '0'}E{int(exponent or 0) + shift}"
