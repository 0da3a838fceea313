"""Errors of schemas, values and rows; messages are for users."""


class SchemaError(ValueError):
    """An unusable schema: the path in it, and what would be right."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)


class ConversionError(Exception):
    """A value cannot be decoded, or a row cannot be encoded."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self._problem = problem
        self._path = path

    def within(self, step: str) -> "ConversionError":
        """Return the same error with a longer path: `step` is a field's name, or `[3]`."""
        joint = "." if self._path and not self._path.startswith("[") else ""
        return ConversionError(self._problem, f"{step}{joint}{self._path}")

    def __str__(self) -> str:
        return f"{self._path} {self._problem}" if self._path else self._problem


def described(error: Exception) -> str:
    """Return the message of an error; those of libraries begin with their type."""
    is_own = isinstance(error, SchemaError | ConversionError)
    return encodable(str(error) if is_own else f"{type(error).__name__}: {error}")


def encodable(reason: str) -> str:
    """Return a reason with its lone surrogates escaped: JSON can have them, and UTF-8 and columns cannot."""
    return reason.encode(errors="backslashreplace").decode()


#: The reason for a missing required value.
NULL = "is null, which the schema does not allow"
