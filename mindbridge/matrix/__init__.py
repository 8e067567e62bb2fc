"""Matrix: the only place with the client library. Events become values and its errors exceptions here."""
