"""Policies as Python classes: `--set create.topic.policy.class.name=rules:OwnedTopics`.

Put this directory into PYTHONPATH, or start the broker in it.
"""

from collections.abc import Mapping

from barnabas.policy import AlterConfigPolicy, CreateTopicPolicy, PolicyViolation


class OwnedTopics(CreateTopicPolicy):
    """A topic's name begins with a team, of which the broker's setting `acme.teams` has the list."""

    def configure(self, configs: Mapping[str, str]) -> None:
        self.teams = configs.get("acme.teams", "orders,payments").split(",")

    def validate(self, request: CreateTopicPolicy.RequestMetadata) -> None:
        team, dot, _ = request.topic.partition(".")
        if not dot or team not in self.teams:
            message = f"'{request.topic}' must begin with a team and a dot: {', '.join(self.teams)}"
            raise PolicyViolation(message)
        if request.replicas_assignments is not None:
            message = "Leave it to the broker where replicas are"
            raise PolicyViolation(message)


class BoundedRetention(AlterConfigPolicy):
    """No topic keeps its records forever."""

    def validate(self, request: AlterConfigPolicy.RequestMetadata) -> None:
        if request.configs.get("retention.ms") == "-1":
            message = f"retention.ms of '{request.resource.name}' must have an end"
            raise PolicyViolation(message)
