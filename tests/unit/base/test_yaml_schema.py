"""What schemas read, and what is wrong with other values."""

import re
from enum import Enum
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.base.yaml_nodes import YamlError, YamlNode, read_yaml, read_yaml_text
from barnabas.base.yaml_schema import (
    SECRET_REFERENCE,
    TEXT,
    Boolean,
    ByKind,
    Custom,
    Key,
    Keyed,
    MappingOf,
    Nullable,
    Numeric,
    RegularExpression,
    Schema,
    SequenceOf,
    Text,
    Variants,
    Whole,
    Word,
    by_name,
    either,
    word,
    word_for,
)


class Color(Enum):
    RED = "red"
    DARK_BLUE = "blue"


class Shape(NamedTuple):
    name: str
    sides: int = 0
    colors: tuple[Color, ...] = ()
    line: int = 0


class Circle(NamedTuple):
    radius: float
    color: Color = Color.RED


class Square(NamedTuple):
    side: float
    color: Color = Color.RED
    turned: bool = False


COLOR = word_for(Color)
SHAPE = Keyed(
    Shape,
    {
        "title": Key(TEXT, required="what it is called", into="name"),
        "sides": Whole(0, 9),
        "colors": SequenceOf(COLOR).to(tuple),
    },
    context={"line": attrgetter("line")},
)
SHAPES = SequenceOf(
    Keyed(Shape, {"name": Key(TEXT, required=True)}), distinct="name", empty="must have a shape"
)
FIGURE = Variants[Circle | Square](
    {
        "radius": Keyed(Circle, {"radius": Key(Numeric(), required=True), "color": COLOR}),
        "side": Keyed(
            Square, {"side": Key(Numeric(), required=True), "color": COLOR, "turned": Boolean()}
        ).then(lambda square, node: square if square.side else node.at("side").fail("must not be 0")),
    }
)
ANGLE = ByKind(
    Word({"right": 90.0}), sequence=SequenceOf(Numeric()).to(sum), mapping=MappingOf(Numeric()).to(len)
)
NAMES = MappingOf(Whole(1), name=Text("[a-z]+", "must be a word"))


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (TEXT, "010", "010"),
        (TEXT, "true", "true"),
        (Text("a+", "must be a"), "aa", "aa"),
        (word("on", "off"), "'on'", "on"),
        (COLOR, "blue", Color.DARK_BLUE),
        (Word(by_name(Color)), "dark_blue", Color.DARK_BLUE),
        (Word(by_name(Color), any_case=True), "Dark_Blue", Color.DARK_BLUE),
        (Boolean(), "yes", True),
        (Numeric(), "1_000", 1000),
        (Numeric(), "-1.5", -1.5),
        (Whole(1), "0x1F", 31),
        (RegularExpression(), "a.c", re.compile("a.c")),
        (Nullable[str | None](TEXT, None), "null", None),
        (Nullable[str | None](TEXT, None), "''", ""),
        (ANGLE, "right", 90.0),
        (ANGLE, "[1, 2.5]", 3.5),
        (ANGLE, "{a: 1}", 1),
        (SequenceOf(TEXT), "[]", []),
        (MappingOf(Whole(1)), "{a: 1, 2: 3}", {"a": 1, "2": 3}),
        (NAMES, "{a: 1}", {"a": 1}),
        (SECRET_REFERENCE, "{env: A}", ("env", "A")),
        (SHAPE, "\ntitle: a", Shape("a", line=2)),
        (SHAPE, "{sides: 3, colors: [red, blue], title: a}", Shape("a", 3, (Color.RED, Color.DARK_BLUE), 1)),
        (Keyed(dict, {"a": TEXT}), "{a: b}", {"a": "b"}),
        (Keyed(partial(Shape, sides=4), {"name": Key(TEXT, required=True)}), "name: a", Shape("a", 4)),
        (FIGURE, "{color: blue, radius: 2}", Circle(2, Color.DARK_BLUE)),
        (FIGURE, "{side: 1, turned: true}", Square(1, turned=True)),
        (Custom(lambda node: [each.text() for each in node.items()]), "[a]", ["a"]),
    ],
)
def test_a_value_becomes_what_its_schema_says(schema: Schema[object], text: str, value: object) -> None:
    found = read_yaml_text(text, schema.read)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("schema", "text", "error"),
    [
        (TEXT, "[a]", "line 1: the file is a list: must be text"),
        (TEXT, "~", "line 1: the file is '~': must be text"),
        (Text("a+", "must be a"), "aab", "line 1: the file is 'aab': must be a"),
        (COLOR, "green", "line 1: the file is 'green': must be red or blue"),
        (COLOR, "Red", "line 1: the file is 'Red': must be red or blue"),
        (COLOR, "[red]", "line 1: the file is a list: must be red or blue"),
        (Word({"a": 1}, expected="must be a, or left out"), "b", "the file is 'b': must be a, or left out"),
        (Boolean(), "1", "line 1: the file is '1': must be true or false"),
        (Boolean(), "!!bool x", "line 1: the file is 'x': must be true or false"),
        (Boolean(), "!!bool [x]", "line 1: the file is a list: must be true or false"),
        (Numeric(), "'1'", "line 1: the file is '1': must be a number"),
        (Numeric(), ".nan", "line 1: the file is '.nan': must be a number"),
        (Numeric(), "!!int ''", "line 1: the file is '': must be a number"),
        (Numeric(), "!!float {}", "line 1: the file is a mapping: must be a number"),
        (Numeric(), "9" * 5000, "must be a number"),
        (Whole(1, 3), "4", "line 1: the file is '4': must be a whole number from 1 to 3"),
        (Whole(1), "0", "line 1: the file is '0': must be a whole number of at least 1"),
        (Whole(1), "2.0", "line 1: the file is '2.0': must be a whole number of at least 1"),
        (Whole(1), "true", "line 1: the file is 'true': must be a whole number of at least 1"),
        (RegularExpression(), "'['", "line 1: the file is '[': must be a regular expression: "),
        (ANGLE, "left", "line 1: the file is 'left': must be right"),
        (ByKind(COLOR), "{}", "line 1: the file is a mapping: must be red or blue"),
        (SequenceOf(TEXT), "a", "line 1: the file is 'a': must be a list"),
        (SequenceOf(Whole(1)), "- 1\n- 0", "line 2: [1] is '0': must be"),
        (SHAPES, "[]", "line 1: the file is a list: must have a shape"),
        (SHAPES, "- name: a\n- name: b\n-\n  name: a", "line 4: [2].name is 'a': is repeated, first in line 1"),
        (MappingOf(TEXT), "a", "line 1: the file is 'a': must be a mapping"),
        (MappingOf(TEXT, empty="must have one"), "{}", "line 1: the file is a mapping: must have one"),
        (MappingOf(TEXT, known=["user"]), "users: 1", "unknown key 'users' in the file; did you mean user?"),
        (MappingOf(SHAPE), "a:\n  b: 1", "line 2: unknown key 'b' in a; valid are colors, sides, title"),
        (MappingOf(NAMES), "a:\n  B:\n  - 1", "line 2: a key of a is 'B': must be a word"),
        (MappingOf(NAMES), "a: {b: 1, b: 2}", "line 1: a key of a is 'b': is repeated, first in line 1"),
        (SHAPE, "sides: 3", "line 1: the file is a mapping: must have title: what it is called"),
        (SHAPE, "title: b\nsides: -1", "line 2: sides is '-1': must be a whole number from 0 to 9"),
        (Keyed(dict, {}, empty="must have one"), "{}", "line 1: the file is a mapping: must have one"),
        (FIGURE, "color: red", "line 1: the file is a mapping: must have exactly one of radius, side; it has none"),
        (FIGURE, "{side: 1, radius: 1}", "must have exactly one of radius, side; it has radius, side"),
        (FIGURE, "radius: 1\nturned: true", "line 2: turned is 'true': can only be used with side"),
        (FIGURE, "colour: red", "line 1: unknown key 'colour' in the file; did you mean color?"),
        (SequenceOf(FIGURE), "- color: red\n  side: 0", "line 2: [0].side is '0': must not be 0"),
    ],
)  # fmt: skip
def test_an_error_names_line_key_value_and_what_is_right(
    schema: Schema[object], text: str, error: str
) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml_text(text, schema.read)
    assert error in str(caught.value)


def test_all_required_keys_that_are_missing_are_named() -> None:
    color, sides = Key(COLOR, required=True), Key(Whole(1), required=True)
    schema: Keyed[object] = Keyed(
        dict, {"name": Key(TEXT, required="a name"), "color": color, "sides": sides}
    )
    with pytest.raises(YamlError, match="must have name: a name, color: red or blue, sides"):
        read_yaml_text("{}", schema.read)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (SECRET_REFERENCE, "hunter2"),
        (SECRET_REFERENCE, "[hunter2]"),
        (SECRET_REFERENCE, "{hunter2}"),
        (SECRET_REFERENCE, "{env: a, file: hunter2}"),
        (SECRET_REFERENCE, "{env: a, env: hunter2}"),
        (Keyed(dict, {"password": SECRET_REFERENCE}, instead="must be a mapping"), "hunter2"),
        (MappingOf(SECRET_REFERENCE, instead="must be a mapping"), "[hunter2]"),
    ],
)
def test_what_may_be_a_password_is_not_shown(schema: Schema[object], text: str) -> None:
    with pytest.raises(YamlError, match=r"line 1: user: must be ") as caught:
        read_yaml_text(f"user: {text}", MappingOf(schema).read)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "keys",
    [
        {"name": Key(TEXT, required=True), "size": TEXT},  # which a shape does not have
        {"title": Key(TEXT, required=True)},  # the same, for lack of `into`
        {"name": TEXT},  # without which there is no shape
        {},
    ],
)
def test_a_table_that_does_not_fit_what_it_builds_is_an_error_of_the_program(
    keys: dict[str, Schema[object] | Key],
) -> None:
    with pytest.raises(TypeError):
        Keyed(Shape, keys)


def test_a_value_knows_its_file_its_line_and_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shapes.yaml").write_text("a:\n  b: [c]")
    monkeypatch.chdir(tmp_path)

    def read(node: YamlNode) -> tuple[str, str, Path]:
        [item] = node.at("a").at("b").items()
        return node.at("a").at("b").key, item.position, item.folder

    assert read_yaml(Path("shapes.yaml"), read) == ("b", "shapes.yaml:2", tmp_path)


def test_words_are_enumerated() -> None:
    assert [either(["a"]), either(["a", "b"]), either(["a", "b", "c"])] == ["a", "a or b", "a, b or c"]
