"""What `barnabas quotas` does."""

from collections.abc import Iterable, Mapping

from barnabas.cli.failures import wrong_use
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.quotas import ClientQuotaAlteration, Entity

ENTITY_TYPES = ("user", "client-id", "ip")


def parse_entity(words: Iterable[str]) -> tuple[Entity, list[str]]:
    """The entity that words name, and the words that name none.

    :raises Failure: When a part is named twice.
    """
    parts: dict[str, str | None] = {}
    others: list[str] = []
    for word in words:
        kind, equals, name = word.partition("=")
        if kind not in ENTITY_TYPES:
            others.append(word)
            continue
        if kind in parts:
            raise wrong_use(f"'{kind}' is given twice", "say it once")
        parts[kind] = name if equals else None
    return tuple(sorted(parts.items())), others


def values(words: Iterable[str]) -> dict[str, float | None]:
    """Quotas as people type them: KEY=NUMBER.

    :raises Failure: When one is not of that form.
    """
    found: dict[str, float | None] = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            found[key] = float(text)
        except ValueError:
            advice = "say it as KEY=NUMBER, such as producer_byte_rate=1000000"
            raise wrong_use(f"'{word}' is no quota", advice) from None
    return found


def show_list(bootstrap: str, words: Iterable[str], *, as_json: bool) -> None:
    """Print the quotas that are set."""
    entity, others = parse_entity(words)
    if others:
        raise wrong_use(f"'{others[0]}' says nobody", f"say whose: {', '.join(ENTITY_TYPES)}")
    found = with_admin(bootstrap, lambda admin: admin.describe_client_quotas(entity))
    if as_json:
        print_json([{"entity": dict(each), "quotas": quotas} for each, quotas in found.items()])
        return
    rows = [
        (shown(each), key, f"{value:.15g}")
        for each, quotas in found.items()
        for key, value in sorted(quotas.items())
    ]
    print_table(("whose", "quota", "value"), rows)
    if not found:
        notice("no quotas: 'barnabas quotas set user=NAME KEY=VALUE' sets one")


def set_values(bootstrap: str, words: Iterable[str], *, validate_only: bool, as_json: bool) -> None:
    """Set quotas and say so."""
    entity, others = parse_entity(words)
    _check(entity, others, "KEY=VALUE")
    alteration = ClientQuotaAlteration(entity, values(others))
    with_admin(bootstrap, lambda admin: _alter(admin, alteration, validate_only=validate_only))
    _print_done("could be set" if validate_only else "set", alteration, as_json=as_json)


def remove(bootstrap: str, words: Iterable[str], *, as_json: bool) -> None:
    """Remove quotas, those named or all, and say which."""
    entity, keys = parse_entity(words)
    _check(entity, keys or ["all"], "KEY")
    alteration = with_admin(bootstrap, lambda admin: _remove(admin, entity, keys))
    _print_done("removed", alteration, as_json=as_json)


def shown(entity: Entity) -> str:
    """Whose quotas, as people type it."""
    return " ".join(kind if name is None else f"{kind}={name}" for kind, name in entity)


def _check(entity: Entity, others: Iterable[str], wanted: str) -> None:
    if not entity:
        raise wrong_use("nobody is named", f"say whose: {', '.join(ENTITY_TYPES)}")
    if not others:
        raise wrong_use("no quota is named", f"say some {wanted}")


async def _remove(admin: Admin, entity: Entity, keys: Iterable[str]) -> ClientQuotaAlteration:
    names = list(keys)
    if not names:
        found = await admin.describe_client_quotas(entity, strict=True)
        names = sorted(found.get(entity, {}))
    alteration = ClientQuotaAlteration(entity, dict.fromkeys(names))
    await _alter(admin, alteration)
    return alteration


async def _alter(admin: Admin, alteration: ClientQuotaAlteration, *, validate_only: bool = False) -> None:
    outcomes = await admin.alter_client_quotas([alteration], validate_only=validate_only)
    raise_errors(outcomes.values())


def _print_done(verb: str, alteration: ClientQuotaAlteration, *, as_json: bool) -> None:
    changed: Mapping[str, float | None] = alteration.values
    if as_json:
        print_json({"entity": dict(alteration.entity), "done": verb, "quotas": dict(changed)})
        return
    for key, value in changed.items():
        print(f"{shown(alteration.entity)}: {verb} {key}{'' if value is None else f'={value:.15g}'}")
