"""Presenters: what each pane shows, as plain data, without a screen.

A pane is computed once here and drawn by whoever has a surface: the terminal in theme colours, `text.py` as plain
text, the notebook later. A presenter takes a session and answers for the lines that are visible, at the cost of
those.
"""
