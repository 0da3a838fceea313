"""Codecs of values in Spark; `barnabas.codecs` has the codecs themselves."""
