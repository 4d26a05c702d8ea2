"""One file a pane: each draws the lines of its presenter and turns keys and clicks into messages."""
