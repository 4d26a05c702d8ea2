"""Recordings of runs: written where the events are made, read where they are looked at, and kept free of secrets."""
