"""Updates a file to a cluster's state and keeps its wording and comments where they still hold. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.base.yaml_nodes import compose
from barnabas.config.config_resource import EVERY_BROKER
from barnabas.declared.diff import same_value
from barnabas.declared.parser import EVERY_BROKER_WORD, PRUNE, acls_of, entity_of
from barnabas.declared.renderer import Tree, dumped, to_tree
from barnabas.declared.state import (
    CONFIG_SECTIONS,
    BrokerState,
    ClusterState,
    Configs,
    ResourceFilter,
    Section,
    TopicState,
)
from barnabas.declared.yaml_edits import edited, typed


def updated(text: str, declared: ClusterState, live: ClusterState, resource_filter: ResourceFilter) -> str:
    """Return the text of a file that declared `declared`, changed to declare `live` in all that is chosen.

    Pruning, passwords and expected values stay.

    :raises CannotEdit: When the file cannot be edited in place.
    """
    node = compose(text)
    old: Tree = {} if node is None else typed(node)
    new = to_tree(live, declared)
    tree: Tree = {PRUNE: old[PRUNE]} if PRUNE in old else {}
    update = _Update(declared, live, resource_filter)
    for section in Section:
        merged = _MERGE[section](section, old.get(section), new.get(section), update)
        if merged or section in old:
            tree[section.value] = merged
    order = [*(key for key in old if key in tree), *(key for key in tree if key not in old)]
    return edited(text, {key: tree[key] for key in order}, dumped)


class _Update(NamedTuple):
    """What an update of a file depends on."""

    declared: ClusterState
    live: ClusterState
    resource_filter: ResourceFilter


#: Called with a section, what the file has in it, and what the live state has.
Merge = Callable[[Section, Any, Any, _Update], Any]


def _config_resources(section: Section, old: Any, new: Any, update: _Update) -> Tree:
    before: Tree = dict(old or {})
    after: Tree = dict(new or {})
    merged: Tree = {}
    for name in [*before, *(name for name in after if name not in before)]:
        key = EVERY_BROKER if section is Section.BROKERS and name == EVERY_BROKER_WORD else name
        if not update.resource_filter.matches(section, key):
            merged[name] = before[name]
        elif name in after or "expect" in (before.get(name) or {}):
            there = _configs(getattr(update.live, section).get(key, {}))
            declared_configs = _configs(getattr(update.declared, section).get(key, {}))
            merged[name] = _merged_resource(
                section, before.get(name) or {}, after.get(name, {}), declared_configs, there
            )
    return merged


def _configs(resource: TopicState | BrokerState | Configs) -> Configs:
    return resource.configs if isinstance(resource, TopicState | BrokerState) else resource


def _merged_resource(
    section: Section, old: Tree, new: Tree, declared_configs: Configs, there: Configs
) -> Tree:
    """Return a resource; values with the same meaning stay as they are written."""
    before, after = old.get("configs") or {}, new.get("configs") or {}
    configs = {
        key: before[key]
        if key in declared_configs and same_value(section, key, declared_configs[key], there.get(key))
        else after.get(key)
        for key in [*before, *(key for key in after if key not in before)]
        if key in after or declared_configs.get(key) is None
    }
    whole = {**old, **new, "configs": configs}
    return {key: value for key, value in whole.items() if value or key in old}


def _acls(_: Section, old: Any, _new: Any, update: _Update) -> list[Tree]:
    """Keep the entries that are still true; add missing ACLs after them."""
    entries: list[Tree] = []
    left = set(update.live.acls)
    for entry in old or ():
        acls = acls_of(entry)
        is_meant = any(update.resource_filter.matches(Section.ACLS, acl) for acl in acls)
        if not is_meant or acls <= update.live.acls:
            entries.append(entry)
            left -= acls
    rest = to_tree(ClusterState(acls=frozenset(left))).get(Section.ACLS, [])
    return [*entries, *rest]


def _quotas(section: Section, old: Any, new: Any, update: _Update) -> list[Tree]:
    merged: list[Tree] = []
    fresh = {entity_of(quota["entity"]): quota for quota in new or ()}
    for entry in old or ():
        entity = entity_of(entry["entity"])
        is_same = update.declared.quotas[entity] == update.live.quotas.get(entity)
        now = fresh.pop(entity, None)
        if is_same or not update.resource_filter.matches(section, entity):
            merged.append(entry)
        elif now is not None:
            merged.append(now)
    return [*merged, *fresh.values()]


def _users(section: Section, old: Any, new: Any, update: _Update) -> Tree:
    """Update users; keep references to passwords."""
    before: Tree = dict(old or {})
    after: Tree = dict(new or {})
    merged: Tree = {}
    for name in [*before, *(name for name in after if name not in before)]:
        if not update.resource_filter.matches(section, name):
            merged[name] = before[name]
        elif name in after:
            declared_credentials = before.get(name, {})
            merged[name] = {
                title: {
                    **credential,
                    "password": declared_credentials.get(title, {}).get("password", credential["password"]),
                }
                for title, credential in after[name].items()
            }
    return merged


_MERGE: Mapping[Section, Merge] = {
    **dict.fromkeys(CONFIG_SECTIONS, _config_resources),
    Section.ACLS: _acls,
    Section.QUOTAS: _quotas,
    Section.USERS: _users,
}
