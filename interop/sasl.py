"""A SASL listener beside the open one; the same settings for both brokers."""

from pathlib import Path

from interop.brokers import consecutive_ports
from interop.reference import tool

LISTENER = "CLIENTS"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PREFIX = f"listener.name.{LISTENER.lower()}."

#: The PLAIN users and their passwords.
PLAIN_USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}

#: Mechanism, user and password for each mechanism; `create_scram_users` creates those of SCRAM.
LOGINS = {
    "PLAIN": ("PLAIN", "alice", "alice-secret"),
    "SCRAM-SHA-256": ("SCRAM-SHA-256", "carol", "carol-secret"),
    "SCRAM-SHA-512": ("SCRAM-SHA-512", "dave", "dave-secret"),
}

SETTINGS = {
    "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{LISTENER}:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    f"{_PREFIX}plain.sasl.jaas.config": " ".join(
        [_PLAIN_MODULE, "required", *(f'user_{user}="{word}"' for user, word in PLAIN_USERS.items()), ";"]
    ),
    f"{_PREFIX}scram-sha-256.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
    f"{_PREFIX}scram-sha-512.sasl.jaas.config": f"{_SCRAM_MODULE} required;",
}


def free_address(brokers_count: int = 1) -> str:
    """Return host and port for the listener of the first broker; the ports of the others count up."""
    return f"127.0.0.1:{consecutive_ports(brokers_count)}"


def client_properties(
    mechanism: str, user: str, password: str, protocol: str = "SASL_PLAINTEXT"
) -> dict[str, str]:
    """Return the properties of Kafka's own clients."""
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }


def create_scram_users(address: str, *options: str | Path) -> None:
    """Create the users of SCRAM with Kafka's own tool, which gets the options."""
    for mechanism, user, password in LOGINS.values():
        if mechanism != "PLAIN":
            credential = f"{mechanism}=[iterations=4096,password={password}]"
            who = ("--alter", "--entity-type", "users", "--entity-name", user)
            tool("kafka-configs", "--bootstrap-server", address, *options, *who, "--add-config", credential)


def create_token(address: str, config: Path, *options: str) -> tuple[str, str]:
    """Create a delegation token with Kafka's own tool, as the user in a file; return its id and its HMAC."""
    connection = ("--bootstrap-server", address, "--command-config", config)
    made = tool("kafka-delegation-tokens", *connection, "--create", "--max-life-time-period", "-1", *options)
    _header, row = made.stdout.splitlines()[-2:]
    token_id, hmac = row.split()[:2]
    return token_id, hmac
