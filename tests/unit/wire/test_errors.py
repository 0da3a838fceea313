import pytest

from barnabas.wire.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (0, ErrorCode.NONE),
        (3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (-1, ErrorCode.UNKNOWN_SERVER_ERROR),
        (32_000, ErrorCode.UNKNOWN_SERVER_ERROR),
        (-2, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_code_that_is_not_known_is_an_unknown_error(code: int, error: ErrorCode) -> None:
    assert ErrorCode.of(code) is error
