"""Implementation of `barnabas quotas`."""

from collections.abc import Iterable, Mapping

from barnabas.cli.failures import wrong_use
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.quotas import ClientQuotaAlteration, Entity

ENTITY_TYPES = ("user", "client-id", "ip")


def parse_entity(words: Iterable[str]) -> tuple[Entity, list[str]]:
    """Return the entity that the arguments name, and the other arguments.

    :raises CommandError: If a part of the entity is given twice.
    """
    parts: dict[str, str | None] = {}
    others: list[str] = []
    for word in words:
        kind, equals, name = word.partition("=")
        if kind not in ENTITY_TYPES:
            others.append(word)
            continue
        if kind in parts:
            raise wrong_use(f"'{kind}' is given twice", f"specify {kind} once")
        parts[kind] = name if equals else None
    return tuple(sorted(parts.items())), others


def parse_values(words: Iterable[str]) -> dict[str, float | None]:
    """Parse quotas of the form KEY=NUMBER.

    :raises CommandError: For an argument of another form.
    """
    quotas: dict[str, float | None] = {}
    for word in words:
        key, _, text = word.partition("=")
        try:
            quotas[key] = float(text)
        except ValueError:
            message = f"invalid quota '{word}': must have the form KEY=NUMBER"
            raise wrong_use(message, "KEY=NUMBER, such as producer_byte_rate=1000000") from None
    return quotas


def show_list(bootstrap: str, words: Iterable[str], *, as_json: bool) -> None:
    """Print the quotas that are set."""
    entity, others = parse_entity(words)
    if others:
        raise wrong_use(f"'{others[0]}' is not a quota entity", f"use {', '.join(ENTITY_TYPES)}")
    quotas_by_entity = with_admin(bootstrap, lambda admin: admin.describe_client_quotas(entity))
    if as_json:
        print_json([{"entity": dict(key), "quotas": quotas} for key, quotas in quotas_by_entity.items()])
        return
    rows = [
        (format_entity(quota_entity), key, f"{value:.15g}")
        for quota_entity, quotas in quotas_by_entity.items()
        for key, value in sorted(quotas.items())
    ]
    print_table(("entity", "quota", "value"), rows)
    if not quotas_by_entity:
        notice("no quotas: 'barnabas quotas set user=NAME KEY=VALUE' sets one")


def set_values(bootstrap: str, words: Iterable[str], *, validate_only: bool, as_json: bool) -> None:
    """Set quotas, and print them."""
    entity, others = parse_entity(words)
    _check(entity, others, "KEY=VALUE")
    alteration = ClientQuotaAlteration(entity, parse_values(others))
    with_admin(bootstrap, lambda admin: _alter(admin, alteration, validate_only=validate_only))
    _print_done("could be set" if validate_only else "set", alteration, as_json=as_json)


def remove(bootstrap: str, words: Iterable[str], *, as_json: bool) -> None:
    """Remove the named quotas, or all quotas, of an entity, and print them."""
    entity, keys = parse_entity(words)
    _check(entity, keys or ["all"], "KEY")
    alteration = with_admin(bootstrap, lambda admin: _remove(admin, entity, keys))
    _print_done("removed", alteration, as_json=as_json)


def format_entity(entity: Entity) -> str:
    """Format an entity as in arguments: `user=alice client-id=app`."""
    return " ".join(kind if name is None else f"{kind}={name}" for kind, name in entity)


def _check(entity: Entity, others: Iterable[str], form: str) -> None:
    if not entity:
        raise wrong_use("no quota entity specified", f"use {', '.join(ENTITY_TYPES)}")
    if not others:
        raise wrong_use("no quota specified", f"use {form}")


async def _remove(admin: Admin, entity: Entity, keys: Iterable[str]) -> ClientQuotaAlteration:
    names = list(keys)
    if not names:
        quotas = await admin.describe_client_quotas(entity, strict=True)
        names = sorted(quotas.get(entity, {}))
    alteration = ClientQuotaAlteration(entity, dict.fromkeys(names))
    await _alter(admin, alteration)
    return alteration


async def _alter(admin: Admin, alteration: ClientQuotaAlteration, *, validate_only: bool = False) -> None:
    results = await admin.alter_client_quotas([alteration], validate_only=validate_only)
    raise_errors(results.values())


def _print_done(verb: str, alteration: ClientQuotaAlteration, *, as_json: bool) -> None:
    changed: Mapping[str, float | None] = alteration.values
    if as_json:
        print_json({"entity": dict(alteration.entity), "done": verb, "quotas": dict(changed)})
        return
    for key, value in changed.items():
        print(f"{format_entity(alteration.entity)}: {verb} {key}{'' if value is None else f'={value:.15g}'}")
