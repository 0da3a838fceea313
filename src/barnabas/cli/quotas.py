"""`barnabas quotas`: what users, client ids and addresses may take."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

app = typer.Typer(
    help="List, set and remove quotas of users, client ids and addresses.", no_args_is_help=True
)

WHOSE = "user=NAME, client-id=NAME, both, or ip=ADDRESS; without a name whoever has no quota of its own."


@app.command("list")
@handle_errors
def list_quotas(
    parts: Annotated[
        list[str] | None, typer.Argument(metavar="[WHOSE]...", help=WHOSE, autocompletion=candidates.quotas)
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """List the quotas that are set, all or those of some users, client ids or addresses."""
    from barnabas.cli.work import quotas

    quotas.show_list(bootstrap, parts or [], as_json=as_json)


@app.command("set")
@handle_errors
def set_quotas(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WHOSE... KEY=VALUE...", help=WHOSE, autocompletion=candidates.quotas, show_default=False
        ),
    ],
    validate_only: Annotated[
        bool, typer.Option("--validate-only", help="Only find out whether it could be done.")
    ] = False,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Set quotas, such as 'user=alice producer_byte_rate=1000000'; others stay as they are."""
    from barnabas.cli.work import quotas

    quotas.set_values(bootstrap, words, validate_only=validate_only, as_json=as_json)


@app.command("remove")
@handle_errors
def remove_quotas(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WHOSE... [KEY]...", help=WHOSE, autocompletion=candidates.quotas, show_default=False
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Remove quotas, all or those of some keys."""
    from barnabas.cli.work import quotas

    quotas.remove(bootstrap, words, as_json=as_json)
