"""The usage job: sizes and keys of topics, and how to balance them."""
