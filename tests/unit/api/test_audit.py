from barnabas.api.audit import warnings_of_successes
from barnabas.metadata.audit.records import Refusal
from barnabas.wire.errors import ErrorCode

FAILED = ErrorCode.POLICY_VIOLATION


def warned(*resources: str) -> list[Refusal]:
    return [Refusal(resource, "POLICY_VIOLATION", "is discouraged") for resource in resources]


def test_a_warning_is_kept_if_a_change_of_its_resource_succeeded() -> None:
    results = [
        ("topic/a", 0, None),
        ("topic/b", FAILED, "no"),
        ("topic/b", 0, None),
        ("topic/c", FAILED, "no"),
    ]
    assert warnings_of_successes(warned("topic/a", "topic/b", "topic/c"), results) == warned(
        "topic/a", "topic/b"
    )


def test_a_warning_about_a_new_name_is_kept_if_anything_succeeded() -> None:
    assert warnings_of_successes(warned("topic/new"), [("topic/old", 0, None)]) == warned("topic/new")
    assert warnings_of_successes(warned("topic/new"), [("topic/old", FAILED, "no")]) == []
