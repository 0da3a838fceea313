"""The table of pages: every address of the console, and the menu."""

from barnabas.console.page import MenuEntry, Route
from barnabas.console.pages import (
    acl_review,
    acls,
    audit,
    brokers,
    group,
    groups,
    history,
    log_dirs,
    login,
    messages,
    new_topic,
    overview,
    plan,
    policies,
    produce,
    quorum,
    quotas,
    reassignments,
    status,
    theme,
    topic,
    topic_configs,
    topic_groups,
    topics,
    trash,
    users,
)

#: In the order of the menu. A page is a module with ROUTES and, for a menu entry, MENU.
_PAGES = (
    overview,
    status,
    brokers,
    quorum,
    log_dirs,
    reassignments,
    topics,
    trash,
    groups,
    acls,
    users,
    quotas,
    policies,
    audit,
    plan,
)
#: Pages below those.
_FURTHER = (
    acl_review,
    group,
    history,
    login,
    messages,
    new_topic,
    produce,
    theme,
    topic,
    topic_configs,
    topic_groups,
)

ROUTES: tuple[Route, ...] = tuple(route for page in (*_PAGES, *_FURTHER) for route in page.ROUTES)
MENU: tuple[MenuEntry, ...] = tuple(page.MENU for page in _PAGES)
