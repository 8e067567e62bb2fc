"""The configuration: a YAML file, read whole and checked whole before anything starts (contract, section 2)."""
