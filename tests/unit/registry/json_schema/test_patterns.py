"""Regular expressions of clients."""

import pytest

from barnabas.registry.json_schema.patterns import names_with


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("b", ["ab", "b"]),
        ("^b", ["b"]),
        (r"^\p{L}$", ["b", "ü"]),
        ("(a+)+$", []),
        ("(?=b)", []),  # RE2 has no lookahead
        ("(", []),
        ("\ud800", []),
    ],
)
def test_a_part_of_a_name_must_match(pattern: str, found: list[str]) -> None:
    assert names_with(pattern, ["ab", "b", "ü", f"{'a' * 60}!", "\ud800c"]) == found
