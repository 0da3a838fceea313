"""Regular expressions in Java's syntax."""

import pytest

from barnabas.reading.topic_patterns import topic_matcher


@pytest.mark.parametrize(
    ("pattern", "matched", "other"),
    [
        ("orders-.*", "orders-new", "my-orders-new"),
        ("(?!internal-).*", "orders", "internal-orders"),
        (r"\Qorders.new\E-\d+", "orders.new-1", "ordersxnew-1"),
        (r"\Qa.b", "a.b", "axb"),
        ("[a-z&&[^bc]]+", "adz", "abz"),
        ("[a-c[x-z]]+", "ax", "am"),
        (r"\p{Alpha}+-\p{Digit}++", "abc-12", "abc-x"),
        (r"\p{javaLowerCase}+", "abc", "aBc"),
        (r"\P{javaUpperCase}+", "abc", "aBc"),
        (r"(?<name>[ab])-\k<name>", "a-a", "a-b"),
        ("orders(?i)-NEW", "orders-new", "Orders-new"),
        (r"\x{6f}rders\z", "orders", "arders"),
        (r"a\\Q.*", r"a\Qbc", "abc"),
        ("(?>a+)b", "aab", "b"),
    ],
)
def test_a_pattern_has_the_meaning_that_it_has_in_java(pattern: str, matched: str, other: str) -> None:
    matches = topic_matcher(pattern)
    assert matches(matched)
    assert not matches(other)


@pytest.mark.parametrize("pattern", ["(", "[a", "*", r"\p{Nothing}"])
def test_an_invalid_pattern_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        topic_matcher(pattern)
