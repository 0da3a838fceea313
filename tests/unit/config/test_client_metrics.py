import pytest

from barnabas.config.client_metrics import effective_client_metrics_values, validate_client_metrics
from barnabas.wire.errors import ErrorCode, KafkaError


def test_a_subscription_has_kafkas_defaults() -> None:
    assert effective_client_metrics_values({}) == {"interval.ms": 300_000, "match": (), "metrics": ()}
    assert effective_client_metrics_values({"metrics": "a.b, c"})["metrics"] == ("a.b", "c")


def test_a_subscription_selects_metrics_and_clients() -> None:
    validate_client_metrics(
        {"interval.ms": "100", "metrics": "*", "match": "client_id=orders-.*,client_software_name=librdkafka"}
    )


@pytest.mark.parametrize(
    ("key", "text", "code"),
    [
        ("no.such.key", "1", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "99", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "3600001", ErrorCode.INVALID_REQUEST),
        ("interval.ms", "soon", ErrorCode.INVALID_CONFIG),
        ("metrics", "a,,b", ErrorCode.INVALID_CONFIG),
        ("match", "client_id", ErrorCode.INVALID_CONFIG),
        ("match", "shoe_size=44", ErrorCode.INVALID_CONFIG),
        ("match", "client_id=(", ErrorCode.INVALID_CONFIG),
    ],
)
def test_invalid_values_are_rejected(key: str, text: str, code: ErrorCode) -> None:
    with pytest.raises(KafkaError, match=key) as caught:
        validate_client_metrics({key: text})
    assert caught.value.code is code
