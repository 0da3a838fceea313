"""The pages of the console: a module each, and a template of the same name."""
