"""Jobs of an operator, run by Spark: each is a function with a typed result, and a command of `barnabas jobs`."""
