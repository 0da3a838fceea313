import pytest

from barnabas.base.resource_names import resource_name


@pytest.mark.parametrize(
    ("kind", "name", "prefixed", "expected"),
    [
        ("TOPIC", "orders", False, "topic/orders"),
        ("topic", "ord", True, "topic/ord*"),
        ("CLIENT_METRICS", "all", False, "client-metrics/all"),
        ("BROKER", "", False, "broker/"),
    ],
)
def test_a_resource_is_named_by_its_kind_and_name(
    kind: str, name: str, prefixed: bool, expected: str
) -> None:
    assert resource_name(kind, name, prefixed=prefixed) == expected
