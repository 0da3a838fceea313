"""What can be wrong with schemas, values and rows, said for people."""


class SchemaError(ValueError):
    """A schema that cannot be used: where in it, and what would be right."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)


class ConversionError(Exception):
    """A value that is no row, or a row that is no value."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(problem)
        self._problem = problem
        self._path = path

    def within(self, step: str) -> "ConversionError":
        """The same, seen from one level above: `step` is a field's name, or `[3]`."""
        joint = "." if self._path and not self._path.startswith("[") else ""
        return ConversionError(self._problem, f"{step}{joint}{self._path}")

    def __str__(self) -> str:
        return f"{self._path} {self._problem}" if self._path else self._problem


#: Of a value that must be there.
NULL = "is null, which the schema does not allow"
