"""The live link: a process that lets itself be looked at or steered, and the viewer's side of it.

`endpoint.listen` opens a process, `client.connect` looks at one, `target.discover` lists them. `docs/link.md` describes
the protocol. Nothing is imported here, so that a viewer loads nothing of the server and the other way round.
"""
