"""The surfaces that draw loopscope's views: a terminal here, a notebook beside it.

Each is reached lazily, so that who imports loopscope in production loads neither.
"""
