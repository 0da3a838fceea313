"""What commands on declared states are asked for."""

import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.login import current_login
from barnabas.declared.plan import Wish
from barnabas.declared.reading import read_state
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import Choice, Section


def choice_of(
    include: Sequence[str] | None, exclude: Sequence[str] | None, sections: Sequence[str] | None
) -> Choice:
    """The things that are meant."""
    chosen = frozenset(Section(each.replace("-", "_")) for each in sections or Section)
    return Choice(tuple(include or ()), tuple(exclude or ()), chosen)


def wish_of(file: Path, choice: Choice, renewed: Sequence[str] | None = None) -> Wish:
    """What a file declares, wished for by whoever logs in.

    :raises FileNotFoundError: When there is no such file.
    :raises DeclarationError: When it declares no state.
    """
    file.stat()
    login = current_login()
    principal = f"User:{login.user}" if login else "User:ANONYMOUS"
    secrets = Secrets(os.environ, file.parent)
    return Wish(read_state(file), secrets, principal, choice, tuple(renewed or ()))
