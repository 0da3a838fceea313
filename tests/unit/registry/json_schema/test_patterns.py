"""Regular expressions of clients."""

import pytest

from barnabas.registry.json_schema.patterns import is_found, is_pattern, names_with


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


@pytest.mark.parametrize(
    ("pattern", "is_known", "is_in_text"),
    [
        ("b", True, True),
        (r"^\p{L}+$", True, True),
        ("(?=b)", True, True),
        (r"(?=\p{L})", False, False),
        ("(", False, False),
        ("a{99999999999}", True, False),
    ],
)
def test_documents_and_values_are_checked_by_re_or_else_by_re2(
    pattern: str, is_known: bool, is_in_text: bool
) -> None:
    assert is_pattern(pattern) == is_known
    assert is_found(pattern, "ab") == is_in_text
