import pytest

from barnabas.config.definition import ConfigError, Validator, Value
from barnabas.config.validators import (
    Addresses,
    GzipLevel,
    ListOf,
    MetricMatch,
    Networks,
    NonEmpty,
    NonNull,
    OffsetReset,
    OneOf,
    OneOfIgnoreCase,
    QuorumVoters,
    Range,
    ThrottledReplicas,
)

CASES: list[tuple[Validator, list[Value], list[Value]]] = [
    (Range(0), [0, 0.5, 10**20], [-1, -0.1, None, "1"]),
    (Range(-2, 3), [-2, 3], [-3, 4]),
    (Range(high=5), [-100, 5], [6]),
    (GzipLevel(), [-1, 1, 9], [0, 10, -2, None]),
    (OneOf(("a", "b")), ["a", "b"], ["A", "", None]),
    (OneOfIgnoreCase(("Rs", "x")), ["rS", "X"], ["r", None]),
    (NonEmpty(), ["a", None], [""]),
    (NonNull(), ["", "a"], [None]),
    (ListOf(), [(), ("a", "b")], [None, ("a", "")]),
    (ListOf(("a", "b")), [(), ("b", "a")], [("a", "c"), ("A",)]),
    (ListOf(empty_ok=False), [("a",)], [(), None]),
    (ListOf(empty_ok=False, null_ok=True), [None, ("a",)], [()]),
    (Addresses(), [(), ("h:1", "[::1]:2")], [("h",), (":1",), ("h:x",), None]),
    (Networks(), [(), ("10.1.2.3", "10.0.0.0/8", "::1")], [("*",), ("proxy",), ("10.0.0.1/8",), None]),
    (
        QuorumVoters(),
        [(), ("1@h:9093", "2@[::1]:1")],
        [None, ("1@h",), ("a@h:1",), ("1@:1",), ("h:1",), ("1@h:x",)],
    ),
    (
        ThrottledReplicas(),
        [("*",), (), ("0:1", "2:33"), ("0:1", "")],
        [("*", "*"), ("0",), ("a:1",), ("0:1:2",), None],
    ),
    (
        OffsetReset(),
        ["latest", "by_duration:PT1H", "by_duration:P1DT2S"],
        ["none", "EARLIEST", "BY_DURATION:PT1H", "by_duration:", "by_duration:1h", "by_duration:P", None],
    ),
    (MetricMatch(("client_id",)), [(), ("client_id=a.*",)], [("client_id",), ("user=a",), ("client_id=",)]),
]


@pytest.mark.parametrize(("validator", "valid", "invalid"), CASES)
def test_a_validator_accepts_valid_values_and_names_them_in_its_error(
    validator: Validator, valid: list[Value], invalid: list[Value]
) -> None:
    for value in valid:
        validator.check("some.key", value)
    for value in invalid:
        with pytest.raises(ConfigError) as caught:
            validator.check("some.key", value)
        assert caught.value.key == "some.key"
        assert caught.value.value == value
        assert validator.describe() in caught.value.reason


def test_a_list_error_names_the_invalid_entry() -> None:
    with pytest.raises(ConfigError, match="'foo' is not valid; must be a list of compact, delete"):
        ListOf(("compact", "delete")).check("cleanup.policy", ("compact", "foo"))
    with pytest.raises(ConfigError, match="an entry is empty"):
        ListOf().check("k", ("",))
    with pytest.raises(ConfigError, match="the list is empty"):
        ListOf(empty_ok=False).check("k", ())
