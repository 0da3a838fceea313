"""Policies as people write them: modules in a directory on Python's path."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from textwrap import dedent

from barnabas.policy import AlterConfigPolicy, ConfigResource, ConfigResourceType, CreateTopicPolicy

_numbers = count()

#: A module of which all classes log to `calls`.
HEAD = """
from barnabas.policy import AlterConfigPolicy, CreateTopicPolicy, PolicyViolation

calls = []


class Logged(CreateTopicPolicy):
    def configure(self, configs):
        calls.append(("configure", configs))

    def validate(self, request):
        calls.append(("validate", request))

    def close(self):
        calls.append(("close",))

"""

NAMING = (
    HEAD
    + """
class Naming(Logged):
    def validate(self, request):
        super().validate(request)
        if not request.topic.startswith("team."):
            raise PolicyViolation(f"{request.topic} must begin with team.")
"""
)


class PolicyModule:
    """A module on disk."""

    def __init__(self, directory: Path) -> None:
        self.name = f"policy_of_a_test_{next(_numbers)}"
        self.path = directory / f"{self.name}.py"

    def write(self, text: str) -> None:
        self.path.write_text(dedent(text))

    def named(self, class_name: str) -> str:
        """What the broker's settings call the class."""
        return f"{self.name}:{class_name}"

    @property
    def calls(self) -> list[tuple[object, ...]]:
        """What the module as it is loaded now has logged."""
        found: list[tuple[object, ...]] = sys.modules[self.name].calls
        return found


@contextmanager
def policy_module(directory: Path, text: str) -> Iterator[PolicyModule]:
    """A module with this text that can be imported until the block ends."""
    module = PolicyModule(directory)
    module.write(text)
    sys.path.insert(0, str(directory))
    try:
        yield module
    finally:
        sys.path.remove(str(directory))
        sys.modules.pop(module.name, None)


def new_topic(
    name: str, partitions: int | None = 1, factor: int | None = 1, configs: Mapping[str, str] | None = None
) -> CreateTopicPolicy.RequestMetadata:
    """A topic as policies are told of it."""
    return CreateTopicPolicy.RequestMetadata(name, partitions, factor, None, configs or {})


def altered_topic(name: str, **configs: str | None) -> AlterConfigPolicy.RequestMetadata:
    """A topic's configs, with underscores for dots, as policies are told of them."""
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    return AlterConfigPolicy.RequestMetadata(
        resource, {key.replace("_", "."): value for key, value in configs.items()}
    )
