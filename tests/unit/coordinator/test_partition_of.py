import pytest

from barnabas.coordinator.partition_of import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("groß", 3181691),
        ("😀", 1772899),
    ],
)
def test_a_hash_equals_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_has_a_partition() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_a_negative_hash_is_replaced_by_its_absolute_value() -> None:
    assert java_hash("my-group") < 0
    assert partition_of("my-group", 50) == -java_hash("my-group") % 50
