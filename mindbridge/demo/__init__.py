"""The demo: a whole bridge on a throwaway homeserver, for a person at a terminal."""
