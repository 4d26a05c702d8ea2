"""What bounds the cycles of a graph, before it ever runs: read off the compiled graph and the code of its routers.

Apart from the debugger, which looks at what a run did: here nothing is run but the module that makes the graph.
"""
