import pytest

from barnabas.base.yaml_nodes import UNTRUSTED_NODES_MAX, YamlError, YamlNode, read_yaml_text

ALIASES = "a: &a [x, x]\nb: *a\n"
LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 30)
)


def keys(node: YamlNode) -> list[str]:
    return list(node.mapping())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ALIASES, "line 1: &a is an anchor"),
        ("b: *a", r"line 1: \*a is an alias"),
        (LAUGHS, "line 1: &a0 is an anchor"),
        ("a: &a x", "line 1: &a is an anchor"),
        (f"[{'x,' * (UNTRUSTED_NODES_MAX + 1)}]", f"more than {UNTRUSTED_NODES_MAX} keys and values"),
        ("[" * 60, "nested too deeply"),
        ("[" * 5_000, "nested too deeply"),
    ],
)
def test_untrusted_text_has_no_aliases_and_is_bounded(text: str, why: str) -> None:
    with pytest.raises(YamlError, match=why):
        read_yaml_text(text, keys, trusted=False)


def test_text_without_aliases_is_accepted_untrusted() -> None:
    assert read_yaml_text("a: 1\nb: {c: [2, 3]}", keys, trusted=False) == ["a", "b"]


def test_files_of_the_local_user_may_have_aliases() -> None:
    assert read_yaml_text(ALIASES, keys) == ["a", "b"]
