"""Requests of Barnabas, declared like Kafka's; written by hand, one module each.

Their API keys are far above Kafka's. ApiVersions lists them only to Barnabas's own clients.
"""

#: The first API key of Barnabas's own APIs.
FIRST_API_KEY = 32_000


def is_kafka_api(api_key: int) -> bool:
    return api_key < FIRST_API_KEY
