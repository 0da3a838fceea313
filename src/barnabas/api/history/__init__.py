"""The history of the metadata and rollback, which only Barnabas has."""
