"""examples/cluster: the processes of `make cluster`, and the settings of the other files."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import yaml
from interop.brokers import consecutive_ports, first_broker, free_ports

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.config.listener_validation import check_listeners
from barnabas.config.load import load_broker_config, read_properties
from barnabas.stores.etcd_url import parse_etcd_url
from support.process import clean_environment
from support.waiting import until

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "cluster"


def test_make_cluster_starts_processes_again_and_stops_all_in_order(tmp_path: Path) -> None:
    port, console = consecutive_ports(3), free_ports(1)[0]
    command = [sys.executable, "-m", "examples.cluster.run", f"--data={tmp_path}", f"--broker-port={port}"]
    command += [f"--etcd-port={consecutive_ports(9)}", f"--console=127.0.0.1:{console}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=EXAMPLE.parents[1], env=clean_environment()
    ) as process:
        try:
            assert process.stdout is not None
            head = [process.stdout.readline() for _ in range(3)]
            pids = {name: int(pid) for name, pid in re.findall(r"([a-z]+[ -]\d) (\d+)", head[2])}
            assert sorted(pids) == ["broker 1", "broker 2", "broker 3", "etcd-1", "etcd-2", "etcd-3"]
            with BlockingClient(f"127.0.0.1:{port}") as client:
                raise_errors(client.admin.create_topics([NewTopic("t", 3, 3)]).values())
                os.kill(pids["broker 2"], signal.SIGKILL)
                os.kill(pids["etcd-3"], signal.SIGKILL)
                restarted: set[str] = set()
                while len(restarted) < 2:
                    restarted |= set(re.findall(r"^(.*) starts again, process", process.stdout.readline()))
                assert restarted == {"broker 2", "etcd-3"}
            until(lambda: first_broker(f"127.0.0.1:{port + 1}", brokers_count=3) is not None)
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(100) == 0
    for number in (1, 2, 3):
        assert (tmp_path / f"broker-{number}" / ".kafka_cleanshutdown").exists()
    assert not any(str(tmp_path).encode() in arguments for arguments in running_commands())


def running_commands() -> list[bytes]:
    commands = []
    for directory in Path("/proc").iterdir():
        try:
            commands.append((directory / "cmdline").read_bytes())
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            continue
    return commands


def test_the_settings_of_the_containers_are_valid() -> None:
    services = yaml.safe_load((EXAMPLE / "compose.yaml").read_text())["services"]
    brokers = {
        name: service["environment"] for name, service in services.items() if name.startswith("broker")
    }
    assert len(brokers) == 3
    for environment in brokers.values():
        loaded = load_broker_config(file={}, environment=environment, settings=[])
        check_listeners(loaded.config)
        assert (loaded.warnings, loaded.without_effect) == ((), ())
        hosts = [endpoint.host for endpoint in parse_etcd_url(loaded.config.text("barnabas.store")).endpoints]
        assert set(hosts) <= set(services)


def test_the_settings_of_the_machines_are_valid() -> None:
    file = read_properties(EXAMPLE / "systemd" / "server.properties")
    loaded = load_broker_config(file=file, environment={"BARNABAS_STORE_PASSWORD": "secret"}, settings=[])
    check_listeners(loaded.config)
    assert (loaded.warnings, loaded.without_effect) == ((), ())
    assert loaded.config.text("barnabas.store.password") == "secret"
    assert parse_etcd_url(loaded.config.text("barnabas.store")).is_tls


def test_etcdctl_has_the_address_and_the_certificates_of_the_member() -> None:
    member = read_properties(EXAMPLE / "systemd" / "etcd")
    exported = dict(re.findall(r"(ETCDCTL_\w+)=(\S+)", (EXAMPLE / "README.md").read_text()))
    assert exported == {
        "ETCDCTL_ENDPOINTS": member["ETCD_ADVERTISE_CLIENT_URLS"],
        "ETCDCTL_CACERT": member["ETCD_TRUSTED_CA_FILE"],
        "ETCDCTL_CERT": member["ETCD_CERT_FILE"],
        "ETCDCTL_KEY": member["ETCD_KEY_FILE"],
    }
