"""The one table of pages: every address of the console, and the menu."""

from barnabas.console.page import MenuEntry, Route
from barnabas.console.pages import (
    acls,
    brokers,
    group,
    groups,
    log_dirs,
    login,
    overview,
    quorum,
    quotas,
    reassignments,
    theme,
    topics,
    users,
)

#: In the order of the menu. A page is a module with ROUTES and, if it has a line in the menu, MENU.
_PAGES = (overview, brokers, quorum, log_dirs, reassignments, topics, groups, acls, users, quotas)

ROUTES: tuple[Route, ...] = (
    *login.ROUTES,
    *theme.ROUTES,
    *(route for page in _PAGES for route in page.ROUTES),
    *group.ROUTES,
)
MENU: tuple[MenuEntry, ...] = tuple(page.MENU for page in _PAGES)
