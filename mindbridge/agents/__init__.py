"""Who is asked to reply: the turn an agent gets, and the backends that run it."""
