"""The way through: event, journal, turn, reply, deliveries."""
