"""`barnabas console` in a process of its own."""

import re
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from barnabas.testing import EmbeddedBroker
from support.certificates import Authority
from support.process import START_TIMEOUT_S, clean_environment

COMMAND = [sys.executable, "-m", "barnabas", "console"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_url_and_stops_on_sigterm(kafka: EmbeddedBroker, number: signal.Signals) -> None:
    command = [*COMMAND, "--bootstrap", kafka.bootstrap, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        printed = re.search(rf"The console of {kafka.bootstrap}: (http://\S+)", process.stdout.readline())
        assert printed
        assert "Overview" in httpx.get(printed[1]).text
        process.send_signal(number)
        assert process.wait(START_TIMEOUT_S) == 0


def test_with_a_keystore_it_serves_https(kafka: EmbeddedBroker, tmp_path: Path) -> None:
    authority = Authority()
    keystore = authority.issue().write_pem(tmp_path / "own.pem")
    trusting = ssl.create_default_context(cadata=authority.pem)
    options = ["--bootstrap", kafka.bootstrap, "--listen", "127.0.0.1:0", "--keystore", str(keystore)]
    with subprocess.Popen(
        [*COMMAND, *options], env=clean_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        printed = re.search(rf"The console of {kafka.bootstrap}: (https://\S+)", process.stdout.readline())
        assert printed
        assert "Overview" in httpx.get(printed[1], verify=trusting).text
        process.terminate()
        assert process.wait(START_TIMEOUT_S) == 0


def test_a_keystore_without_a_key_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text(Authority().pem)
    options = ["--listen", "127.0.0.1:0", "--keystore", str(tmp_path / "own.pem")]
    ended = subprocess.run(
        [*COMMAND, *options], env=clean_environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode != 0
    assert f"--keystore {tmp_path / 'own.pem'}: must have a private key" in ended.stderr
    assert "Traceback" not in ended.stderr


def refused(*options: str) -> str:
    """Return what a console prints that is expected not to start."""
    ended = subprocess.run(
        [*COMMAND, *options], env=clean_environment(), capture_output=True, text=True, check=False, timeout=30
    )
    assert ended.returncode == 2, ended
    return ended.stderr


def test_a_cluster_without_login_on_this_machine_is_not_opened_to_others(kafka: EmbeddedBroker) -> None:
    printed = refused("--bootstrap", kafka.bootstrap, "--listen", "0.0.0.0:0")
    assert f"would change the cluster at {kafka.bootstrap}, which requires no login" in printed
    assert "--read-only" in printed


def is_served(*options: str) -> bool:
    """Whether a console starts to serve; it is stopped at once."""
    command = [*COMMAND, "--listen", "0.0.0.0:0", *options]
    with subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        process.terminate()
        return "http://0.0.0.0:" in line and process.wait(START_TIMEOUT_S) == 0


def test_a_cluster_without_login_may_be_shown_to_others(kafka: EmbeddedBroker) -> None:
    assert is_served("--bootstrap", kafka.bootstrap, "--read-only")


@pytest.mark.kafka_users({"alice": "secret"})
def test_a_cluster_with_a_login_may_be_opened_to_others(kafka: EmbeddedBroker) -> None:
    assert is_served("--bootstrap", kafka.bootstrap)


def test_the_client_certificate_of_the_command_is_not_lent_to_others(tmp_path: Path) -> None:
    authority = Authority()
    keystore = authority.issue().write_pem(tmp_path / "own.pem")
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={keystore}\n")
    printed = refused("--command-config", str(file), "--listen", "0.0.0.0:0")
    assert "everyone who can reach 0.0.0.0 would act as the user of the client certificate" in printed
