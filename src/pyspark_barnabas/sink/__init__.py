"""DataFrames into topics: in transactions, so that each row arrives exactly once, or plainly, at least once."""
