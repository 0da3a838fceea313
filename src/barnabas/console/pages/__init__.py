"""The pages of the console: one module and one template of the same name each."""
