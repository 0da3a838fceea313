"""Numbers with the thing that is counted."""


def plural(number: int, one: str, many: str = "", number_text: str = "") -> str:
    """Return `1 topic` or `2 topics`, with `number_text` for the number if it is given."""
    return f"{number_text or number} {one if number == 1 else many or one + 's'}"
