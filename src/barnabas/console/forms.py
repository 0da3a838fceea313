"""What people send in forms, read field by field; what cannot be is said beside its field."""

from collections.abc import Mapping, Sequence

PARTITION_MAX = NODE_ID_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1
#: Kafka's strings are not longer; brokers hang up on whoever sends one that is.
STRING_BYTES_MAX = 32_767


class Form:
    """The texts of a form. `errors` tells by field what is wrong; a page that finds any shows the form again."""

    def __init__(self, values: Mapping[str, Sequence[str]], files: Mapping[str, bytes] | None = None) -> None:
        self._values = values
        self.files = files or {}
        self.errors: dict[str, str] = {}

    def text(self, name: str, default: str = "") -> str:
        """A field's text without blanks at its ends."""
        return self.raw(name, default).strip()

    def raw(self, name: str, default: str = "") -> str:
        """A field's text as it was typed, with browsers' line ends made plain."""
        values = self._values.get(name)
        return values[0].replace("\r\n", "\n") if values else default

    def all(self, name: str) -> list[str]:
        """The texts of all fields of that name."""
        return [value.replace("\r\n", "\n") for value in self._values.get(name, ())]

    def flag(self, name: str) -> bool:
        """Whether a box is ticked."""
        return bool(self._values.get(name))

    def needed(self, name: str) -> str:
        """A text that must not be empty."""
        text = self.text(name)
        if not text:
            self.errors.setdefault(name, "This must be filled in.")
        return text

    def whole(
        self, name: str, *, minimum: int = 0, maximum: int = OFFSET_MAX, default: int | None = None
    ) -> int | None:
        """A whole number; `default` where the field is empty."""
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
        """One of the choices; the first where the field is empty."""
        text = self.text(name) or choices[0]
        if text not in choices:
            self.errors.setdefault(name, f"'{text[:40]}' is not one of {', '.join(choices)}.")
            return choices[0]
        return text

    def refuse(self, name: str, why: str) -> None:
        """Say what is wrong with a field; the first word stays."""
        self.errors.setdefault(name, why)


def is_node_id(text: str) -> bool:
    """Whether a text can be the id of a broker."""
    return text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= NODE_ID_MAX


def too_long(text: str) -> str | None:
    """What is to be said of a text that no string of Kafka's can hold."""
    size_bytes = len(text.encode())
    if size_bytes <= STRING_BYTES_MAX:
        return None
    return f"This has {size_bytes} bytes, and Kafka takes {STRING_BYTES_MAX} at most."


def encodable(text: object) -> str:
    """The text, which JSON can make of what no UTF-8 has.

    :raises ValueError: When it has half a surrogate.
    """
    str(text).encode()
    return str(text)
