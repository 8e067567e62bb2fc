"""What `mindbridge doctor` looks at: one module a concern, each giving findings."""
