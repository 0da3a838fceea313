"""`barnabas topics`: list, create, describe, delete, undelete and purge topics, add partitions."""

from barnabas.cli.support.commands import command_group
from barnabas.cli.topics.describe import describe_topics
from barnabas.cli.topics.partitions import add_partitions, show_partitions
from barnabas.cli.topics.topics import create_topics, delete_topics, list_topics
from barnabas.cli.topics.trash import purge_topics, show_trash, undelete_topic

app = command_group(
    list_topics,
    create_topics,
    describe_topics,
    delete_topics,
    add_partitions,
    show_partitions,
    show_trash,
    undelete_topic,
    purge_topics,
)
