"""The tap: observes any compiled LangGraph graph through LangChain's callbacks, its nodes untouched.

`handler.tap` gives the callback handler, `hook.install` puts one into every run of the process. Nothing is imported
here, so that a program that is only prepared for it loads no framework.
"""
