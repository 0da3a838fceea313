"""Where cluster state is kept: SQLite on one machine. The only rooms that know a database."""
