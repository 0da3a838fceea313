"""Regular expressions for names of topics, in Java's syntax, as in Spark's Kafka connector."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

#: What the library `regex` writes in another way than Java: quoted text, references to named groups, Java's properties.
_TRANSLATED = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)|\\k<(?P<group>\w+)>|\\(?P<p>[pP])\{java(?P<property>\w+?)(?:Case)?\}"
    r"|\\x\{(?P<code>[0-9A-Fa-f]+)\}|\\.",
    re.DOTALL,
)


@lru_cache(maxsize=16)
def topic_matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether a regular expression matches a whole name.

    :raises ValueError: With the reason, if it is not a regular expression.
    """
    import regex  # takes 20 ms; has Java's classes of characters, properties and quantifiers, which `re` has not

    try:
        compiled: Any = regex.compile(_TRANSLATED.sub(_translated, pattern), regex.V1)
    except (regex.error, OverflowError) as error:
        raise ValueError(str(error)) from None
    return lambda topic: compiled.fullmatch(topic) is not None


def _translated(found: "re.Match[str]") -> str:
    if found["quoted"] is not None:
        return re.escape(found["quoted"])
    if found["group"] is not None:
        return f"(?P={found['group']})"
    if found["property"] is not None:
        return f"\\{found['p']}{{{found['property']}}}"
    if found["code"] is not None:
        return re.escape(chr(int(found["code"], 16)))
    return found[0]
