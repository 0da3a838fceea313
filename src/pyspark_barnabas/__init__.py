"""Kafka topics in Spark, in Python: of Barnabas and of Apache Kafka alike.

Spark itself looks for packages whose name begins with `pyspark_`, imports them when a session first asks for a data
source, and offers the `DefaultSource` it finds in each. An error in here would break every session on a machine, so
nothing is imported here but what Spark itself has; the readers and writers are imported when they are asked for.
"""
