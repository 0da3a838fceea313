"""`barnabas policy`: try policies out."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs

app = typer.Typer(help="Try policies out.", no_args_is_help=True)


@app.callback()
def policy() -> None:
    """Try policies out."""


@app.command("test")
@handle_errors
def try_policy(
    cases: Annotated[
        Path | None,
        typer.Argument(
            metavar="CASES",
            help="A YAML file of changes and what is expected; else the topics of the cluster at --bootstrap.",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="Rules, as barnabas.policy.file has them.")
    ] = None,
    create_topic: Annotated[
        str | None, typer.Option("--create-topic", metavar="MODULE:CLASS", help="A CreateTopicPolicy.")
    ] = None,
    alter_config: Annotated[
        str | None, typer.Option("--alter-config", metavar="MODULE:CLASS", help="An AlterConfigPolicy.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="A server.properties that says all that a broker has."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A broker setting, stronger than the file's."),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show what policies would refuse, and why; exit code 1 when a verdict is not as expected.

    Topics that are there already are expected to be allowed.
    """
    overrides = dict(key_value_pairs(settings, "--set"))
    from barnabas.cli.work import policy as work

    chosen = work.settings(config, overrides, rules, create_topic, alter_config)
    if cases is not None:
        work.try_cases(chosen, cases, as_json=as_json)
    else:
        work.try_cluster(chosen, bootstrap, as_json=as_json)
