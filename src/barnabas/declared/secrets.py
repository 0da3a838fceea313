"""Secrets by reference: resolved only when needed, never stored in a state, a plan or an error."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas.base.resource_names import HIDDEN
from barnabas.declared.state import SecretRef

#: Shorter parts of a secret count as ordinary words.
_PART_CHARACTERS_MIN = 4
_CONTAINS_SECRET = "the broker's message contains part of the secret, so it is not shown"


class SecretMissing(Exception):
    """A referenced secret does not exist."""


@dataclass(frozen=True)
class Secrets:
    """Resolves secrets from the environment and from files, whose relative paths start at the declared state's
    directory.
    """

    environment: Mapping[str, str]
    folder: Path

    def __repr__(self) -> str:
        return f"Secrets({self.folder})"

    def value(self, secret: SecretRef) -> str:
        """Return the secret; of a file without the newline at its end.

        :raises SecretMissing: When it does not exist.
        """
        if secret.origin == "env":
            secret_text = self.environment.get(secret.name, "")
            what = f"the environment variable {secret.name}"
        else:
            secret_text = self._file(secret.name)
            what = f"the file {secret.name}"
        if not secret_text:
            message = f"{what} is empty or does not exist: it must contain the secret"
            raise SecretMissing(message)
        return secret_text

    def _file(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it must be UTF-8"
            message = f"the file {name} cannot be read: {reason}"
            raise SecretMissing(message) from None


def without_secrets(text: str, values: Collection[str]) -> str:
    """Return a broker's message with secrets removed; empty when it quotes part of a secret."""
    forms = {form for value in values for form in (value, value.strip(), repr(value)[1:-1]) if form}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    parts = [part for value in values for part in re.split(r"[\s\"'=;,]+", value)]
    begins = [part[:_PART_CHARACTERS_MIN] for part in parts if len(part) >= _PART_CHARACTERS_MIN]
    return _CONTAINS_SECRET if any(begin in text for begin in begins) else text
