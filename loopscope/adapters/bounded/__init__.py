"""The bounded loop for any StateGraph: success, budget and stagnation decide in code, and an escalation ends it.

Apart from the middleware, which bounds agents that `create_agent` builds; a graph drawn by hand has no hooks, so its
loop is bounded where it is drawn: around a node, behind it, and in one node more.
"""
