"""`barnabas verify-eos` with a broker that is killed meanwhile."""

import json
import subprocess
import sys
from pathlib import Path

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.model import NewTopic
from barnabas.client.admin.offsets import EARLIEST, LATEST, ListedOffset
from barnabas.client.blocking import BlockingClient
from support.process import BrokerProcess, clean_environment
from support.waiting import until

COMMAND = [sys.executable, "-m", "barnabas", "verify-eos"]
INPUTS_COUNT = 3000
KILLS_COUNT = 3
PARTITIONS = [TopicPartition("in", index) for index in (0, 1)]


def verify_eos(broker: BrokerProcess, *arguments: str) -> "subprocess.Popen[str]":
    environment = clean_environment({"BARNABAS_BOOTSTRAP": broker.bootstrap})
    return subprocess.Popen(
        [*COMMAND, *arguments, "--json"], env=environment, stdout=subprocess.PIPE, text=True
    )


def stored_count(client: BlockingClient) -> int:
    ends = client.admin.list_offsets(dict.fromkeys(PARTITIONS, LATEST)).values()
    return sum(end.offset for end in ends if isinstance(end, ListedOffset))


def copy(client: BlockingClient) -> None:
    starts = dict.fromkeys(PARTITIONS, EARLIEST)
    with client.consumer(starts, stop_at_end=True) as consumer, client.producer() as producer:
        for record in consumer:
            producer.send("out", record.value, partition=record.partition)


def test_inputs_are_numbered_without_a_gap_when_the_broker_is_killed(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    with BlockingClient(broker.bootstrap) as client:
        client.admin.create_topics([NewTopic("in", 2), NewTopic("out", 2)])
    producing = verify_eos(broker, "produce", "in", "--count", str(INPUTS_COUNT), "--rate", "1500")
    for number in range(1, KILLS_COUNT + 1):
        with BlockingClient(broker.bootstrap) as client:
            until(lambda expected=number * 500: stored_count(client) >= expected)
        broker.kill()
        broker = BrokerProcess(tmp_path, port=broker.port)
    assert producing.wait(60) == 0
    with broker:
        with BlockingClient(broker.bootstrap) as client:
            copy(client)
        checking = verify_eos(broker, "check", "in", "out")
        found = json.loads(checking.communicate(timeout=60)[0])
    assert (found["exactly_once"], found["inputs"], found["outputs"]) == (True, INPUTS_COUNT, INPUTS_COUNT)
