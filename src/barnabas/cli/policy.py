"""`barnabas policy`: test policies."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs

app = typer.Typer(help="Test policies.", no_args_is_help=True)


@app.callback()
def policy() -> None:
    """Test policies."""


@app.command("test")
@handle_errors
def try_policy(
    cases: Annotated[
        Path | None,
        typer.Argument(
            metavar="CASES",
            help="YAML file of changes and expected results (default: the topics of the cluster at --bootstrap).",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE", help="File of rules, in the format of barnabas.policy.file."),
    ] = None,
    create_topic: Annotated[
        str | None,
        typer.Option(
            "--create-topic", metavar="MODULE:CLASS", help="Class that implements CreateTopicPolicy."
        ),
    ] = None,
    alter_config: Annotated[
        str | None,
        typer.Option(
            "--alter-config", metavar="MODULE:CLASS", help="Class that implements AlterConfigPolicy."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The server.properties of a broker that has the policies."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Broker setting, overrides the file; may be repeated."
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Show which changes policies would reject, and why; exits with 1 if a result is not as expected.

    Existing topics are expected to be allowed.
    """
    overrides = dict(key_value_pairs(settings, "--set"))
    from barnabas.cli.work import policy as work

    policies = work.policies_to_test(config, overrides, rules, create_topic, alter_config)
    if cases is not None:
        work.try_cases(policies, cases, as_json=as_json)
    else:
        work.try_cluster(policies, bootstrap, as_json=as_json)
