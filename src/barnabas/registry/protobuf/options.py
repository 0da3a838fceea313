"""Reads tokens one after another, with what all declarations of .proto files share: names, numbers and options."""

from typing import Any, NoReturn

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor import FieldDescriptor

from barnabas.registry.protobuf.tokens import ProtoToken, TokenKind, quoted, tokens_of, unquoted
from barnabas.registry.schemas import InvalidSchema

_INT32_LIMIT, _INT64_LIMIT = 2**31, 2**63
_SHOWN_CHARACTERS = 60


class OptionParser:
    """Reads the tokens of a file."""

    def __init__(self, text: str) -> None:
        self._tokens = list(tokens_of(text))
        self._position = 0

    @property
    def token(self) -> ProtoToken:
        """The next token, which is not read yet."""
        return self._tokens[self._position]

    def peek(self, ahead: int = 1) -> ProtoToken:
        """Return a token behind the next one."""
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def refuse(self, problem: str) -> NoReturn:
        """:raises InvalidSchema: Always."""
        raise InvalidSchema(f"line {self.token.line}: {problem}")

    def next(self) -> ProtoToken:
        """Read a token."""
        token = self.token
        if token.kind is not TokenKind.END:
            self._position += 1
        return token

    def take(self, text: str) -> None:
        """Read a token that must be there."""
        if self.token.text != text:
            self.refuse(f"'{text}' is expected, not {self.token.text}")
        self.next()

    def take_if(self, text: str) -> bool:
        """Read a token if it is the next one."""
        is_next = self.token.text == text and self.token.kind is not TokenKind.TEXT
        if is_next:
            self.next()
        return is_next

    def word(self) -> str:
        if self.token.kind is not TokenKind.WORD:
            self.refuse(f"a name is expected, not {self.token.text}")
        return self.next().text

    def dotted_name(self) -> str:
        """Read a name such as .shop.Order."""
        name = "." if self.take_if(".") else ""
        name += self.word()
        while self.take_if("."):
            name += f".{self.word()}"
        return name

    def string(self) -> str:
        """Read a string; several in a row are one."""
        if self.token.kind is not TokenKind.TEXT:
            self.refuse(f"a string is expected, not {self.token.text}")
        value = ""
        while self.token.kind is TokenKind.TEXT:
            value += unquoted(self.next())
        if any(0xD800 <= ord(character) < 0xE000 for character in value):
            self.refuse("a string has half of a surrogate pair")
        return value

    def integer(self, limit: int = _INT32_LIMIT) -> int:
        """Read a number from -limit on and below it: decimal, octal or hexadecimal."""
        sign = -1 if self.take_if("-") else 1
        text = self.token.text
        base = 16 if text[:2] in ("0x", "0X") else 8 if text[:1] == "0" and len(text) > 1 else 10
        try:
            value = sign * int(text, base)
        except ValueError:
            self.refuse(f"a number is expected, not {text}")
        if not -limit <= value < limit:
            self.refuse(f"{text[:_SHOWN_CHARACTERS]} is out of range")
        self.next()
        return value

    def option_list(self, options: Any, field: Any = None) -> None:
        """Read options in brackets, of which the first is read."""
        self.option(options, field)
        while self.take_if(","):
            self.option(options, field)
        self.take("]")

    def option(self, options: Any, field: Any = None) -> None:
        """Read a name and a value into the options of a descriptor.

        :param field: The field's descriptor, for options that are not among its options.
        """
        parts = [self._name_part()]
        while self.take_if("."):
            parts.append(self._name_part())
        self.take("=")
        names = [name for name, is_extension in parts if not is_extension]
        if field is not None and names == ["default"] and len(parts) == 1:
            field.default_value = self._default(field)
        elif field is not None and names == ["json_name"] and len(parts) == 1:
            field.json_name = self.string()
        elif len(names) < len(parts) or not self._set_known(options, names):
            self._uninterpreted(options, parts)

    def _name_part(self) -> tuple[str, bool]:
        """Read a part of an option's name, which is an extension if it is in parentheses."""
        if self.take_if("("):
            name = self.dotted_name()
            self.take(")")
            return name, True
        return self.word(), False

    def _default(self, field: Any) -> str:
        if self.token.kind is TokenKind.TEXT:
            value = self.string()
            if field.type == pb.FieldDescriptorProto.TYPE_BYTES:
                return value.encode("unicode_escape").decode()
            return value
        sign = "-" if self.take_if("-") else ""
        return sign + self.next().text

    def _set_known(self, options: Any, names: list[str]) -> bool:
        """Set an option of descriptor.proto; return False if it has no such one."""
        target = options
        for name in names[:-1]:
            described = target.DESCRIPTOR.fields_by_name.get(name)
            if described is None or described.message_type is None or described.is_repeated:
                return False
            target = getattr(target, name)
        described = target.DESCRIPTOR.fields_by_name.get(names[-1])
        if described is None or described.message_type is not None or described.is_repeated:
            return False
        setattr(target, names[-1], self._known_value(described))
        return True

    def _known_value(self, described: Any) -> Any:
        if described.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            word = self.word()
            if word not in ("true", "false"):
                self.refuse(f"true or false is expected, not {word}")
            return word == "true"
        if described.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            value = described.enum_type.values_by_name.get(self.word())
            if value is None:
                names = ", ".join(each.name for each in described.enum_type.values)
                self.refuse(f"the value of {described.name} is one of {names}")
            return value.number
        return self.integer() if described.cpp_type == FieldDescriptor.CPPTYPE_INT32 else self.string()

    def _uninterpreted(self, options: Any, parts: list[tuple[str, bool]]) -> None:
        """Keep an option of others as protoc does before it knows them."""
        option = options.uninterpreted_option.add()
        for name, is_extension in parts:
            option.name.add(name_part=name, is_extension=is_extension)
        if self.take_if("{"):
            option.aggregate_value = self._aggregate()
        elif self.token.kind is TokenKind.TEXT:
            option.string_value = self.string().encode()
        elif self.token.kind is TokenKind.WORD:
            option.identifier_value = self.word()
        else:
            self._uninterpreted_number(option)

    def _uninterpreted_number(self, option: Any) -> None:
        is_negative = self.token.text == "-"
        number = self.peek() if is_negative else self.token
        if number.text.isdigit() or number.text[:2] in ("0x", "0X"):
            name = "negative_int_value" if is_negative else "positive_int_value"
            setattr(option, name, self.integer(_INT64_LIMIT))
            return
        if number.kind is not TokenKind.NUMBER and number.text not in ("inf", "nan"):
            self.refuse(f"a value is expected, not {number.text}")
        self.take_if("-")
        self.next()
        option.double_value = -float(number.text) if is_negative else float(number.text)

    def _aggregate(self) -> str:
        """Read a message in text format up to its closing brace."""
        words: list[str] = []
        depth = 1
        while True:
            token = self.next()
            if token.kind is TokenKind.END:
                self.refuse("'}' is missing")
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind is TokenKind.SYMBOL else 0
            if depth == 0:
                return " ".join(words)
            words.append(quoted(unquoted(token)) if token.kind is TokenKind.TEXT else token.text)
