"""Files of Protobuf: parsed, printed, and parsed from descriptors."""

import pytest

from barnabas.registry.protobuf.schema import ProtobufSchema
from barnabas.registry.schemas import InvalidSchema
from support.cpu import cpu_time_limit

ITEM = 'syntax = "proto3"; package shop; message Item { string sku = 1; }'

PROTO3 = """\
syntax = "proto3";
package shop.v1;

import public "google/protobuf/timestamp.proto";
import "item.proto";

option java_package = "org.example";
option (owner).team = "billing";

message Order {
  reserved 5, 7 to 9, 100 to max;
  reserved "gone";
  option deprecated = true;
  string id = 1 [json_name = "ID", deprecated = true, (rule) = { min : 1 text : "a\\"b" }];
  repeated .shop.Item items = 2 [packed = false];
  optional int64 count = 3;
  oneof payment {
    string card = 4;
    Cash cash = 6;
  }
  map<string, Cash> notes = 10;
  google.protobuf.Timestamp at = 11;

  message Cash {
    int32 message = 1;
    Kind option = 2;
  }

  enum Kind {
    reserved 3 to max;
    option allow_alias = true;
    A = 0;
    B = 1;
    C = 1 [deprecated = true];
  }
}

service Orders {
  rpc Find (Order) returns (stream .shop.Item) {
    option idempotency_level = IDEMPOTENT;
  }
  rpc Put (stream Order) returns (Order);
}
"""

PROTO2 = """\
syntax = "proto2";

message A {
  extensions 10 to 20;
  optional group G = 1 {
    required int32 a = 1 [default = -5];
  }
  optional bytes b = 2 [default = "a\\\\001"];
  optional double c = 3 [default = inf];
  optional string d = 4 [default = "x\\ny"];
}

extend A {
  optional string more = 10;
}
"""

EDITION = """\
edition = "2023";

option features.field_presence = IMPLICIT;

message A {
  reserved foo, bar;
  string a = 1 [features.field_presence = EXPLICIT];
}
"""


def parsed(text: str) -> ProtobufSchema:
    return ProtobufSchema.parse(text, {"item.proto": ITEM}, is_new=True)


@pytest.mark.parametrize("text", [PROTO3, PROTO2, EDITION])
def test_a_file_is_printed_as_it_was_parsed(text: str) -> None:
    assert parsed(text).canonical == text


WITHOUT_CUSTOM = PROTO3.replace('option (owner).team = "billing";\n', "").replace(
    ', (rule) = { min : 1 text : "a\\"b" }', ""
)


@pytest.mark.parametrize("text", [WITHOUT_CUSTOM, PROTO2, EDITION])
def test_a_descriptor_is_the_same_schema_when_it_is_normalized(text: str) -> None:
    schema = parsed(text)
    assert parsed(schema.serialized).normalized == schema.normalized


def test_layout_and_comments_do_not_count() -> None:
    text = '// a\nsyntax="proto3";/* b\n */message A{string a=0x1;;}; enum E{ZERO=00;}'
    assert (
        parsed(text).canonical
        == 'syntax = "proto3";\n\nmessage A {\n  string a = 1;\n}\n\nenum E {\n  ZERO = 0;\n}\n'
    )


def test_the_order_of_fields_and_imports_does_not_count_when_normalized() -> None:
    head = 'syntax = "proto3"; import "{}.proto"; import "{}.proto"; message A {{ {} {} }}'
    first = head.format("item", "google/protobuf/any", "string a = 1;", "shop.Item b = 2;")
    second = head.format("google/protobuf/any", "item", ".shop.Item b = 2;", "string a = 1;")
    assert parsed(first).canonical != parsed(second).canonical
    assert parsed(first).normalized == parsed(second).normalized


def test_custom_options_count_when_normalized() -> None:
    head = 'syntax = "proto3"; package shop; import "confluent/meta.proto"; option (team) = "billing";'
    text = (
        head
        + """
        message A {{
          option (confluent.message_meta) = {{ doc: "m" }};
          oneof o {{ string b = 2; string a = 1 [{options}]; }}
          message Inner {{ map<string, Kind> m = 1 [(confluent.field_meta) = {{ doc: "i" }}]; }}
        }}
        enum Kind {{ ZERO = 0 [(confluent.enum_value_meta) = {{ doc: "z" }}]; }}
        service S {{ rpc Find (A) returns (A) {{ option (cached) = true; }} }}
    """
    )
    tags, other = '(confluent.field_meta) = { tags: "PII" }', "(rule) = 1"
    normalized = parsed(text.format(options=f"{other}, {tags}")).normalized
    for option in (
        'team) = "billing"',
        'tags : "PII"',
        'doc : "m"',
        'doc : "i"',
        'doc : "z"',
        "cached) = true",
    ):
        assert option in normalized
    assert parsed(normalized).normalized == normalized
    assert parsed(text.format(options=f"{tags}, {other}")).normalized == normalized
    assert parsed(text.format(options=other)).normalized != normalized


def test_messages_keep_their_positions_among_those_of_maps() -> None:
    text = """
        syntax = "proto3";
        message A {
          message B {}
          map<string, B> first = 1;
          message C {}
          oneof one { C c = 2; }
          map<string, B> second = 3;
          message D {}
        }
    """
    names = ["B", "FirstEntry", "C", "SecondEntry", "D"]
    for each in (text, parsed(text).canonical, parsed(text).normalized):
        assert [
            inner.name for inner in parsed(each).descriptor.message_types_by_name["A"].nested_types
        ] == names


def test_a_group_may_be_in_an_extension() -> None:
    text = "message A { extensions 10 to 20; } extend A { optional group G = 11 { optional int32 a = 1; } }"
    assert parsed(parsed(text).canonical).canonical == parsed(text).canonical
    assert parsed(text).canonical.count("G") == 1


@cpu_time_limit()
def test_many_oneofs_and_groups_are_printed() -> None:
    oneofs = "".join(f"oneof o{number} {{ int32 f{number} = {number}; }} " for number in range(1, 5_001))
    assert parsed(f"message A {{ {oneofs} }}").canonical.count("oneof") == 5_000
    groups = "".join(f"optional group G{number} = {number} {{}} " for number in range(1, 5_001))
    assert parsed(f"message A {{ {groups} }}").canonical.count("group") == 5_000


def test_fields_may_have_the_names_of_keywords() -> None:
    names = (
        "message",
        "enum",
        "oneof",
        "option",
        "reserved",
        "extensions",
        "extend",
        "optional",
        "repeated",
        "map",
        "group",
    )
    fields = "".join(f"string {name} = {number}; " for number, name in enumerate(names, 1))
    assert parsed(f'syntax = "proto3"; message A {{ {fields} }}').canonical.count("string ") == len(names)


def test_files_that_confluent_knows_need_no_reference() -> None:
    text = 'syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";'
    text += 'message A { confluent.type.Decimal a = 1 [(confluent.field_meta) = { doc: "x" }]; }'
    assert '(confluent.field_meta) = { doc : "x" }' in parsed(text).canonical


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('syntax = "proto4";', "proto2 and proto3 are valid"),
        ('edition = "1";', "not known"),
        ("hello", "'hello' is not a declaration"),
        ("message A", "is expected"),
        ("message A { string a = 1; }", "must be optional, required or repeated"),
        ("message A { optional string a = b; }", "a number is expected"),
        ("message A { optional string a = 1 [deprecated = 3]; }", "a name is expected"),
        ("message A { optional string a = 1 [deprecated = maybe]; }", "true or false"),
        ("message A { optional string a = 1 [(x) = { a: 1", "'}' is missing"),
        ('syntax = "proto3"; message A { B b = 1; }', "'B'"),
        ('syntax = "proto3"; message A { string a = 1; string b = 1; }', "duplicate field number"),
        ('syntax = "proto3"; import "other.proto";', "'other.proto' has no reference"),
        ('syntax = "proto3"; import "google/protobuf/nothing.proto";', "has no reference"),
        ("option optimize_for = NOTHING;", "one of SPEED"),
        ("message A { optional string a = 99999999999; }", "out of range"),
        (f"message A {{ optional string a = 0x{'f' * 9_000}; }}", "out of range"),
        ("option (x) = };", "a value is expected"),
        ("message A { reserved 2147483647; }", "out of range"),
        (r'option java_package = "\uD800";', "surrogate"),
        (r'option java_package = "\UFFFFFFFF";', "is not a character"),
        ("message A { \x00 }", "not valid here"),
        ("message A {" * 200, "too deeply"),
    ],
)
def test_other_texts_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidSchema, match=problem):
        parsed(text)
