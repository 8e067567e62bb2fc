"""What happened: the SQLite journal of accepted events, turns, questions, selections and deliveries."""
