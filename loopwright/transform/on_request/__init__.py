"""Passes that no pipeline of ours runs: a user or another compiler asks for them by name."""
