"""`barnabas quotas`: list, set and remove client quotas."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="List, set and remove quotas of users, client ids and addresses.", no_args_is_help=True
)

ENTITY = "Quota entity: user=NAME, client-id=NAME, both, or ip=ADDRESS; without a name, the default quota."


@app.command("list")
@handle_errors
def list_quotas(
    parts: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTITY]...", help=ENTITY, autocompletion=candidates.quotas)
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List quotas: all, or those of some users, client ids or addresses."""
    from barnabas.cli.work import quotas

    quotas.show_list(bootstrap, parts or [], as_json=as_json)


@app.command("set")
@handle_errors
def set_quotas(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ENTITY... KEY=VALUE...",
            help=ENTITY,
            autocompletion=candidates.quotas,
            show_default=False,
        ),
    ],
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Validate the request without applying it.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set quotas, such as 'user=alice producer_byte_rate=1000000'; other quotas are not changed."""
    from barnabas.cli.work import quotas

    quotas.set_values(bootstrap, words, validate_only=validate_only, as_json=as_json)


@app.command("remove")
@handle_errors
def remove_quotas(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ENTITY... [KEY]...", help=ENTITY, autocompletion=candidates.quotas, show_default=False
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Remove the quotas of an entity: all, or those of some keys."""
    from barnabas.cli.work import quotas

    quotas.remove(bootstrap, words, as_json=as_json)
