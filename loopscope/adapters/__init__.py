"""Frameworks in, effects out: each adapter turns the runs of one framework into events and decisions into effects."""
