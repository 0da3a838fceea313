"""Reports about a cluster: measured from its topics, written as tables and as HTML."""
