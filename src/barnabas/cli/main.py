"""The command `barnabas`. What a command needs is imported when it runs, so that `--help` is quick."""

import typer

from barnabas.cli import (
    acls,
    audit,
    brokers,
    configs,
    console,
    consume,
    declared,
    elections,
    features,
    groups,
    jobs,
    log_dirs,
    metadata,
    pipeline,
    policy,
    produce,
    quorum,
    quotas,
    reassignments,
    records,
    serve,
    spark_submit,
    topics,
    transactions,
    users,
    verify_eos,
)

app = typer.Typer(
    name="barnabas",
    help="A complete, wire-compatible Kafka broker in Python, and its command line.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.add_typer(topics.app, name="topics")
app.add_typer(configs.app, name="configs")
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("metadata")(metadata.metadata)
app.command("console")(console.console)
app.command("elections")(elections.elections)
app.add_typer(reassignments.app, name="reassignments")
app.add_typer(log_dirs.app, name="log-dirs")
app.add_typer(features.app, name="features")
app.add_typer(quorum.app, name="quorum")
app.add_typer(brokers.app, name="brokers")
app.add_typer(records.app, name="records")
app.add_typer(policy.app, name="policy")
app.add_typer(users.app, name="users")
app.add_typer(quotas.app, name="quotas")
app.add_typer(acls.app, name="acls")
app.add_typer(groups.app, name="groups")
app.add_typer(transactions.app, name="transactions")
app.add_typer(verify_eos.app, name="verify-eos")
app.command("audit")(audit.audit)
app.command("history")(audit.history)
app.command("rollback")(audit.rollback)
app.command("export")(declared.export)
app.command("plan")(declared.plan)
app.add_typer(jobs.app, name="jobs")
app.command("spark-submit", context_settings=spark_submit.CONTEXT)(spark_submit.spark_submit)
app.add_typer(pipeline.app, name="pipeline")


def main() -> None:
    """Run the command line; ends the process with one of the exit codes in `failures`."""
    app()
