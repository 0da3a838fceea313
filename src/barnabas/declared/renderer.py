"""Writes a state as YAML; equal states give equal text."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import yaml

from barnabas.config.config_resource import EVERY_BROKER
from barnabas.declared.parser import EVERY_BROKER_WORD
from barnabas.declared.state import (
    KEPT_SECRET,
    BrokerState,
    ClusterState,
    Configs,
    Credentials,
    Quotas,
    SecretRef,
    Section,
    TopicState,
    acl_resource,
    name_of,
)
from barnabas.wire.acls import WILDCARD, AclBinding, AclPermission, PatternType

#: The content of a YAML file: mappings, lists and scalars.
Tree: TypeAlias = dict[str, Any]

#: What a secret belongs to -> the environment variable for it: ("PASSWORD", user), or ("BROKER", its id, key).
_Variables: TypeAlias = Mapping[tuple[str, ...], str]

_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,18}")
_WORDS = {"true": True, "false": False}


def to_tree(state: ClusterState, beside: ClusterState | None = None) -> Tree:
    """Return the state as the content of a file, without empty sections.

    :param beside: Another state in the same file, which shares no variables with this one.
    """
    variables = _variables([state] if beside is None else [state, beside])
    tree: Tree = {
        "prune": sorted(state.prune),
        Section.TOPICS.value: {name: _topic(state.topics[name]) for name in sorted(state.topics)},
        Section.ACLS.value: _acls(state.acls),
        Section.QUOTAS.value: [_quotas(*item) for item in sorted(state.quotas.items(), key=_quota_order)],
        Section.USERS.value: {
            name: _credentials(state.users[name], variables["PASSWORD", name]) for name in sorted(state.users)
        },
        Section.GROUPS.value: _config_resources(state.groups),
        Section.BROKERS.value: {
            name or EVERY_BROKER_WORD: _broker(name or EVERY_BROKER_WORD, state.brokers[name], variables)
            for name in sorted(state.brokers, key=lambda name: (name != EVERY_BROKER, int(name or 0)))
        },
        Section.CLIENT_METRICS.value: _config_resources(state.client_metrics),
    }
    return {key: part for key, part in tree.items() if part}


def to_yaml(tree: Tree, comment: str = "") -> str:
    """Return the text of a file, with comment lines before it."""
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    return head + dumped(tree)


def dumped(value: Any) -> str:
    """Block style, except for lists of scalars and secret references."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000, indent=2)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, and short values in one line."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent list items below their key."""
        return super().increase_indent(flow, False)

    def represent_short_sequence(self, data: Sequence[Any]) -> yaml.Node:
        """Write lists of scalars in one line."""
        short = not any(isinstance(element, dict | list) for element in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=short)

    def represent_short_mapping(self, data: Mapping[str, Any]) -> yaml.Node:
        """Write secret references and empty mappings in one line."""
        short = not data or data.keys() <= {"env", "file"}
        return self.represent_mapping("tag:yaml.org,2002:map", data.items(), flow_style=short)


_Dumper.add_representer(list, _Dumper.represent_short_sequence)
_Dumper.add_representer(dict, _Dumper.represent_short_mapping)


def _topic(topic: TopicState) -> Tree:
    counts = {"partitions": topic.partitions, "replication_factor": topic.replication_factor}
    tree: Tree = {key: count for key, count in counts.items() if count is not None}
    return {**tree, "configs": _configs(topic.configs)} if topic.configs else tree


def _configs(configs: Configs) -> Tree:
    return {key: _setting(configs[key]) for key in sorted(configs)}


def _setting(value: str | SecretRef | None) -> Any:
    """Write numbers and booleans without quotation marks, where they are spelled as in YAML."""
    if isinstance(value, SecretRef):
        return {value.origin: value.name}
    if value is None or value in _WORDS:
        return value and _WORDS[value]
    return int(value) if _DIGITS.fullmatch(value) else value


def _variables(states: Iterable[ClusterState]) -> _Variables:
    """Return distinct names; names that would be the same have the digest of what they are for.

    A digest begins with a small letter, which other names do not have, so it makes no new name equal to one of them.
    """
    names = {
        words: re.sub(r"\W", "_", "_".join(words)).upper() for state in states for words in _secrets(state)
    }
    counts = Counter(names.values())
    return {
        words: name if counts[name] == 1 else f"{name}_x{_digest(words)}" for words, name in names.items()
    }


def _secrets(state: ClusterState) -> Iterator[tuple[str, ...]]:
    for user in state.users:
        yield "PASSWORD", user
    for name, broker in state.brokers.items():
        for key, value in broker.configs.items():
            if isinstance(value, SecretRef):
                yield "BROKER", name or EVERY_BROKER_WORD, key


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def _config_resources(config_resources: Mapping[str, Configs]) -> Tree:
    return {name: {"configs": _configs(config_resources[name])} for name in sorted(config_resources)}


def _broker(name: str, broker: BrokerState, variables: _Variables) -> Tree:
    """Write a secret that the broker hides as a reference to the environment."""
    configs = {
        key: SecretRef("env", variables["BROKER", name, key]) if value == KEPT_SECRET else value
        for key, value in broker.configs.items()
    }
    parts = {"configs": _configs(configs), "expect": _configs(broker.expected)}
    return {key: part for key, part in parts.items() if part}


def _acls(acls: frozenset[AclBinding]) -> list[Tree]:
    """Write one entry for ACLs that differ only in their operation."""
    grouped: defaultdict[tuple[Any, ...], list[AclBinding]] = defaultdict(list)
    for acl in sorted(acls):
        pattern = acl_resource(acl), acl.pattern_type  # `ord*` is a name, or the prefix `ord`
        grouped[*pattern, acl.principal, acl.permission, acl.host].append(acl)
    return [_acl(grouped[key]) for key in sorted(grouped)]


def _acl(alike: Sequence[AclBinding]) -> Tree:
    acl = alike[0]
    tree = {
        "principal": acl.principal,
        "resource_type": acl.resource_type.name.lower(),
        "resource_name": acl.resource_name,
        "operations": [each.operation.name.lower() for each in alike],
    }
    if acl.pattern_type is not PatternType.LITERAL:
        tree["pattern_type"] = acl.pattern_type.name.lower()
    if acl.host != WILDCARD:
        tree["host"] = acl.host
    if acl.permission is not AclPermission.ALLOW:
        tree["permission"] = acl.permission.name.lower()
    return tree


def _quota_order(item: tuple[Any, Quotas]) -> str:
    return name_of(Section.QUOTAS, item[0])


def _quotas(entity: Sequence[tuple[str, str | None]], values: Quotas) -> Tree:
    numbers = {key: _number(values[key]) for key in sorted(values)}
    return {"entity": dict(entity), "values": numbers}


def _number(value: float | None) -> float | None:
    return int(value) if value is not None and value.is_integer() else value


def _credentials(credentials: Credentials, variable: str) -> Tree:
    """Write a password as a reference to the environment; it is needed only if the user does not exist."""
    default = SecretRef("env", variable)
    return {
        mechanism.title: {
            **({} if credential.iterations is None else {"iterations": credential.iterations}),
            "password": _setting(credential.password or default),
        }
        for mechanism, credential in sorted(credentials.items())
    }
