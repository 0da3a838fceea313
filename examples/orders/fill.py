"""Create the topics of the shop, and write its events.

python -m examples.orders.fill [--count 30000] [--bootstrap HOST:PORT]
"""

import argparse
import sys

from examples.orders.events import event

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient

TOPICS = ("shop-events", "shop-replay", "shop-dead", "shop-windows")
PARTITIONS = 4


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="Kafka cluster")
    parser.add_argument("--count", type=int, default=30_000, help="number of events")
    options = parser.parse_args()
    with BlockingClient(options.bootstrap) as client:
        if "shop-events" in client.admin.describe_topics():
            sys.exit("topic shop-events exists already: its events would be written a second time")
        fill(client, options.count)


def fill(client: BlockingClient, count: int) -> None:
    raise_errors(client.admin.create_topics([NewTopic(name, PARTITIONS) for name in TOPICS]).values())
    with client.producer() as producer:
        for number in range(count + 1):
            producer.send("shop-events", event(number, count), partition=number % PARTITIONS)


if __name__ == "__main__":
    main()
