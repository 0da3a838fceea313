"""A SASL listener beside the open one; the same settings for both brokers."""

from interop.brokers import consecutive_ports

LISTENER = "CLIENTS"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_PREFIX = f"listener.name.{LISTENER.lower()}."

#: The PLAIN users and their passwords.
PLAIN_USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}

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


def client_properties(mechanism: str, user: str, password: str) -> dict[str, str]:
    """Return the properties of Kafka's own clients."""
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{password}";',
    }
