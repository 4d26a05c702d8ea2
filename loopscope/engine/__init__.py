"""The engine: pure, deterministic, the same in production and in replay."""
