"""The debugger in a notebook: one widget and the magics, drawn from the same presenters as the terminal."""
