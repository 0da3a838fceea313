"""`barnabas quotas`: list, set and remove client quotas."""

from collections.abc import Iterable
from typing import Annotated

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import NOT_FOUND, CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, ValidateOnly
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.client.admin.admin import Admin, raise_errors
from barnabas.client.admin.quotas import ClientQuotaAlteration, Entity

_ENTITY_TYPES = ("user", "client-id", "ip")
_ENTITY_HELP = (
    "Quota entity: user=NAME, client-id=NAME, both, or ip=ADDRESS; without a name, the default quota."
)


@command(
    "list",
    example="quotas list user=alice",
    apis=("DescribeClientQuotas",),
    needs=("describe-configs cluster",),
)
def list_quotas(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENTITY]...", help=_ENTITY_HELP, autocompletion=candidates.quotas),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List quotas: all, or those of some users, client ids or addresses."""
    entity, others = _parse_entity(words or ())
    if others:
        raise wrong_use(f"'{others[0]}' is not a quota entity", f"use {', '.join(_ENTITY_TYPES)}")
    quotas_by_entity = with_admin(bootstrap, lambda admin: admin.describe_client_quotas(entity))
    if as_json:
        print_json([{"entity": dict(key), "quotas": quotas} for key, quotas in quotas_by_entity.items()])
        return
    rows = [
        (_format_entity(quota_entity), key, f"{value:.15g}")
        for quota_entity, quotas in quotas_by_entity.items()
        for key, value in sorted(quotas.items())
    ]
    print_table(("entity", "quota", "value"), rows)
    if not quotas_by_entity:
        notice("no quotas: 'barnabas quotas set user=NAME KEY=VALUE' sets one")


@command(
    "set",
    example="quotas set user=alice producer_byte_rate=1000000",
    apis=("AlterClientQuotas",),
    needs=("alter-configs cluster",),
)
def set_quotas(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ENTITY... KEY=VALUE...",
            help=_ENTITY_HELP,
            autocompletion=candidates.quotas,
            show_default=False,
        ),
    ],
    validate_only: ValidateOnly = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set quotas, such as 'user=alice producer_byte_rate=1000000'; other quotas are not changed."""
    entity, others = _parse_entity(words)
    _check(entity, others, "KEY=VALUE")
    alteration = ClientQuotaAlteration(entity, _parse_values(others))
    with_admin(bootstrap, lambda admin: _alter(admin, alteration, validate_only=validate_only))
    _print_done("could be set" if validate_only else "set", alteration, as_json=as_json)


@command(
    "remove",
    example="quotas remove user=alice producer_byte_rate",
    apis=("AlterClientQuotas",),
    needs=("alter-configs cluster",),
)
def remove_quotas(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ENTITY... [KEY]...",
            help=_ENTITY_HELP,
            autocompletion=candidates.quotas,
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Remove the quotas of an entity: all, or those of some keys."""
    entity, keys = _parse_entity(words)
    _check(entity, keys or ["all"], "KEY")
    alteration = with_admin(bootstrap, lambda admin: _remove(admin, entity, keys))
    _print_done("removed", alteration, as_json=as_json)


def _parse_entity(words: Iterable[str]) -> tuple[Entity, list[str]]:
    """Return the entity that the arguments name, and the other arguments.

    :raises CommandError: If a part of the entity is given twice.
    """
    parts: dict[str, str | None] = {}
    others: list[str] = []
    for word in words:
        kind, equals, name = word.partition("=")
        if kind not in _ENTITY_TYPES:
            others.append(word)
            continue
        if kind in parts:
            raise wrong_use(f"'{kind}' is given twice", f"specify {kind} once")
        parts[kind] = name if equals else None
    return tuple(sorted(parts.items())), others


def _parse_values(words: Iterable[str]) -> dict[str, float | None]:
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


def _format_entity(entity: Entity) -> str:
    """Format an entity as in arguments: `user=alice client-id=app`."""
    return " ".join(kind if name is None else f"{kind}={name}" for kind, name in entity)


def _check(entity: Entity, others: Iterable[str], form: str) -> None:
    if not entity:
        raise wrong_use("no quota entity specified", f"use {', '.join(_ENTITY_TYPES)}")
    if not others:
        raise wrong_use("no quota specified", f"use {form}")


async def _remove(admin: Admin, entity: Entity, keys: Iterable[str]) -> ClientQuotaAlteration:
    names = list(keys)
    if not names:
        quotas = await admin.describe_client_quotas(entity, strict=True)
        names = sorted(quotas.get(entity, {}))
    if not names:
        message = f"{_format_entity(entity)} has no quotas"
        raise CommandError(message, hint="'barnabas quotas list' shows the quotas", exit_code=NOT_FOUND)
    alteration = ClientQuotaAlteration(entity, dict.fromkeys(names))
    await _alter(admin, alteration)
    return alteration


async def _alter(admin: Admin, alteration: ClientQuotaAlteration, *, validate_only: bool = False) -> None:
    results = await admin.alter_client_quotas([alteration], validate_only=validate_only)
    raise_errors(results.values())


def _print_done(verb: str, alteration: ClientQuotaAlteration, *, as_json: bool) -> None:
    if as_json:
        print_json({"entity": dict(alteration.entity), "done": verb, "quotas": dict(alteration.values)})
        return
    for key, value in alteration.values.items():
        print(f"{_format_entity(alteration.entity)}: {verb} {key}{'' if value is None else f'={value:.15g}'}")


app = command_group(list_quotas, set_quotas, remove_quotas)
