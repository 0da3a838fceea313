"""What messages show of stores and catalogs."""

from barnabas.objects.settings import StoreSettings
from barnabas.tables.building import TableStores


def test_errors_of_libraries_are_one_line_without_secrets_and_colours() -> None:
    stores = TableStores(
        StoreSettings({"aws_secret_access_key": "hidden-1"}),
        {"token": "hidden-2", "credential": "id:hidden-3", "uri": "https://catalog"},
    )
    error = OSError("\x1b[31mno\x1b[0m\n hidden-1, hidden-2, id:hidden-3 at https://catalog")
    assert stores.describe(error) == "OSError: no ***, ***, *** at https://catalog"
    assert "hidden" not in repr(stores)
