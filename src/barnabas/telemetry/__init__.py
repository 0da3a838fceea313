"""Metrics, spans and logs of a broker. They cost almost nothing until they are read."""
