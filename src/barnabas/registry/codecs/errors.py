"""Errors of values."""


class MalformedValue(ValueError):
    """A value is not one of its schema."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self._problem = problem
        self._path = path

    def within(self, step: str) -> "MalformedValue":
        """Return the same error with a longer path."""
        joint = "." if self._path and not self._path.startswith("[") else ""
        return MalformedValue(self._problem, f"{step}{joint}{self._path}")
