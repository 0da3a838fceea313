"""Reads form fields; errors are collected by field."""

from collections.abc import Mapping, Sequence

PARTITION_MAX = NODE_ID_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1
#: The maximum length of Kafka's strings; brokers close the connection on longer ones.
STRING_BYTES_MAX = 32_767


class Form:
    """The texts of a form. `errors` has messages by field; a page with errors shows the form again."""

    def __init__(self, values: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None = None) -> None:
        self._values = values
        self.files = files or {}
        self.errors: dict[str, str] = {}

    def text(self, name: str, default: str = "") -> str:
        """A field's text without surrounding blanks."""
        return self.raw(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """A field's text as it was typed, with `\
        ` line ends.
        """
        values = self._values.get(name)
        return values[0].replace("\r\n", "\n") if values else default

    def all(self, name: str) -> list[str]:
        """The texts of all fields of that name."""
        return [value.replace("\r\n", "\n") for value in self._values.get(name, ())]

    def flag(self, name: str) -> bool:
        """Whether a checkbox is ticked."""
        return bool(self._values.get(name))

    def needed(self, name: str) -> str:
        """A text that must not be empty."""
        text = self.text(name)
        if not text:
            self.errors.setdefault(name, "This field is required.")
        return text

    def whole(
        self, name: str, *, minimum: int = 0, maximum: int = OFFSET_MAX, default: int | None = None
    ) -> int | None:
        """A whole number; `default` if the field is empty."""
        text = self.text(name).replace("\u202f", "").replace(" ", "")
        if not text:
            return default
        try:
            number = int(text) if len(text) < 21 else None
        except ValueError:
            number = None
        if number is None or not minimum <= number <= maximum:
            upper = f" to {maximum}" if maximum < OFFSET_MAX else " upwards"
            self.errors.setdefault(name, f"'{text[:40]}' is not a whole number from {minimum}{upper}.")
            return default
        return number

    def one_of(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices; the first if the field is empty."""
        text = self.text(name) or choices[0]
        if text not in choices:
            self.errors.setdefault(name, f"'{text[:40]}' is not one of {', '.join(choices)}.")
            return choices[0]
        return text

    def refuse(self, name: str, why: str) -> None:
        """Add an error to a field that has none yet."""
        self.errors.setdefault(name, why)


def is_node_id(text: str) -> bool:
    """Whether a text can be a broker's id."""
    return text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= NODE_ID_MAX


def too_long(text: str) -> str | None:
    """The error message for a text longer than Kafka's strings."""
    size_bytes = len(text.encode())
    if size_bytes <= STRING_BYTES_MAX:
        return None
    return f"The text has {size_bytes} bytes; Kafka allows at most {STRING_BYTES_MAX}."


def encodable(text: object) -> str:
    """The text, checked for lone surrogates, which JSON allows and UTF-8 does not.

    :raises ValueError: When it has one.
    """
    str(text).encode()
    return str(text)
