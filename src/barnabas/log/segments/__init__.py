"""The files of a segment: records and indexes."""
