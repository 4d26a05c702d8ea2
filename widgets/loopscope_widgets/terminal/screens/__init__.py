"""The debugger's screen, and the windows that open in front of it."""
