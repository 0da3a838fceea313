"""`barnabas consume`: records to lines."""

from typing import Annotated

import typer

from barnabas.cli import candidates
from barnabas.cli.failures import handle_errors
from barnabas.cli.options import BOOTSTRAP_DEFAULT, Bootstrap, Json

FORMAT_HELP = (
    "As kcat's: %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp, "
    "%K %S lengths, %% percent, \\n \\t \\xNN."
)


@handle_errors
def consume(
    topic: Annotated[
        str,
        typer.Argument(help="Where the records are.", show_default=False, autocompletion=candidates.topics),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the beginning of each partition.")
    ] = False,
    offset: Annotated[
        int | None,
        typer.Option("--offset", "-o", help="Start at this offset; -10 starts ten records before the end."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Begin at 2026-01-31T09:30, 1767225600000 or 10m ago."),
    ] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this one; may be repeated.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="Exit after this many records.")
    ] = None,
    exit_at_end: Annotated[bool, typer.Option("--exit-at-end", "-e", help="Do not wait for more.")] = False,
    committed: Annotated[
        bool,
        typer.Option("--committed", help="Read committed records only (isolation.level=read_committed)."),
    ] = False,
    form: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT", help=FORMAT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Print records as they come; from the end on, unless told otherwise."""
    from barnabas.cli.work import consume as work

    start = work.start(from_beginning=from_beginning, offset=offset, since=since)
    writer = work.writer(form, as_json=as_json)
    wanted = work.ConsumeOptions(topic, frozenset(partition or ()), start, count, exit_at_end, committed)
    work.run(bootstrap, wanted, writer)
