import pytest

from barnabas.config.jaas import PLAIN_MODULE, parse_jaas, quoted


def test_a_login_module_has_options() -> None:
    text = f'{PLAIN_MODULE} required username="admin" password="p;w=\\"x\\" y" user_admin=\'it is\' serviceName=kafka;'
    entry = parse_jaas(text)
    assert entry.module == PLAIN_MODULE
    assert entry.options == {
        "username": "admin",
        "password": 'p;w="x" y',
        "user_admin": "it is",
        "serviceName": "kafka",
    }


def test_line_breaks_and_blanks_are_ignored() -> None:
    assert parse_jaas('\n  a.B REQUIRED\n  k = "v"\n  "l m"="n" ;\n').options == {"k": "v", "l m": "n"}
    assert parse_jaas("a.B required;").options == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "a.B required",
        'a.B needed k="v";',
        'a.B required k="v"; c.D required;',
        'a.B required k="secret;',
        'a.B required k "secret";',
        'a.B required k="v"l="w";',
        "a.B required =;",
    ],
)
def test_invalid_text_is_rejected_without_being_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="must be one login module") as refused:
        parse_jaas(text)
    assert "secret" not in str(refused.value)


def test_options_are_not_in_the_repr() -> None:
    assert "secret" not in repr(parse_jaas('a.B required password="secret";'))


@pytest.mark.parametrize("text", ["secret", 'a"b', "a\\b", "a'; b=c", ""])
def test_quoted_text_round_trips(text: str) -> None:
    assert parse_jaas(f"a.B required {quoted('k')}={quoted(text)};").options == {"k": text}
