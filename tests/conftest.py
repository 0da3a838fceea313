"""What every test has in common."""

from hypothesis import settings

#: The examples of a property take the time that they need: a machine is busy, a first call may compile.
settings.register_profile("barnabas", deadline=None)
settings.load_profile("barnabas")
