"""Secrets by reference: looked up only where one is needed, never kept in a state, a plan or an error."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas.declared.state import Secret


class SecretMissing(Exception):
    """A secret is not where it is said to be."""


@dataclass(frozen=True)
class Secrets:
    """Where secrets are: the environment, and files, of which relative ones lie beside the declared state."""

    environment: Mapping[str, str]
    folder: Path

    def __repr__(self) -> str:
        return f"Secrets({self.folder})"

    def value(self, secret: Secret) -> str:
        """The secret itself; of a file without the end of its last line.

        :raises SecretMissing: When there is none.
        """
        if secret.origin == "env":
            found = self.environment.get(secret.name, "")
            what = f"the environment variable {secret.name}"
        else:
            found = self._file(secret.name)
            what = f"the file {secret.name}"
        if not found:
            message = f"{what} holds no secret"
            raise SecretMissing(message)
        return found

    def _file(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it must be UTF-8"
            message = f"the file {name} cannot be read: {reason}"
            raise SecretMissing(message) from None
