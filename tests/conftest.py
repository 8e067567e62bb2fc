"""How the property tests look for examples."""

from hypothesis import settings

# The same ones each time, so that a commit passes again that has passed; `make explore` looks for others.
settings.register_profile("repeatable", derandomize=True, print_blob=True)
settings.register_profile("exploring", max_examples=500, print_blob=True)
