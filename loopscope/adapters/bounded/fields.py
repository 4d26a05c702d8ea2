"""What a bounded loop keeps in the graph's state, with the reducers, and how it is read from a state of any kind.

In the state, and nowhere else: so it is in every checkpoint and trace, survives a restart, and a test can see it.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import typing_extensions
from typing_extensions import get_type_hints, is_typeddict

from loopscope.errors import UsageError

__all__ = ["Fields", "add_up", "newest"]

S = TypeVar("S")


def newest(_: Any, value: Any) -> Any:
    """The reducer of a field that holds the newest value, whoever else writes it in the same step."""
    return value


def add_up(before: Mapping[str, float] | None, spent: Mapping[str, float] | None) -> dict[str, float]:
    """The reducer of what was spent, by counter."""
    total = dict(before or {})
    for counter, value in (spent or {}).items():
        total[counter] = total.get(counter, 0) + value
    return total


class Fields(NamedTuple):
    """The names of one loop's fields in the state."""

    iterations: str
    """How often the loop was gone through: only ever added to, one each time, within one task."""
    renewed: str
    """How often a person has granted the loop its bounds once more."""
    witness: str
    """The last witness, as it was when the newest iteration began."""
    best: str
    """The best witness so far."""
    checked: str
    """The iteration that the last witness is of, and how many had shown no progress by then."""
    after: str
    """A witness of the program's own as it was right behind the wrapped node, with its own count of no progress."""
    spent: str
    """What was spent, by counter of a budget."""
    began: str
    """When the first iteration began: Unix seconds."""
    error: str
    """What the wrapped node raised in the newest iteration."""
    advice: str
    """What a person said when the loop had given up."""
    ended: str
    """Why the loop gave up: `budget`, `budget: COUNTER` or `stagnation`."""

    @classmethod
    def of(cls, name: str) -> Fields:
        """The fields of the loop of this name."""
        return cls(*(f"{name}_{field}" for field in cls._fields))

    def annotations(self) -> dict[str, Any]:
        """The fields with their reducers, as a `TypedDict` declares them."""
        reducers: dict[str, Any] = dict.fromkeys(self, Annotated[Any, newest])
        reducers[self.iterations] = reducers[self.renewed] = Annotated[int, operator.add]
        reducers[self.spent] = Annotated[dict[str, float], add_up]
        return reducers

    def mixed_into(self, schema: type[S]) -> type[S]:
        """A state like `schema` that has these fields as well.

        Raises:
            UsageError: if it is no `TypedDict`.
        """
        if not is_typeddict(schema):
            raise UsageError(f"{schema!r:.80} is no TypedDict: declare the fields {', '.join(self)} in it yourself")
        hints = {**get_type_hints(schema, include_extras=True), **self.annotations()}
        return typed_dict(schema.__name__, hints)


def typed_dict(name: str, hints: dict[str, Any]) -> type[Any]:
    """A `TypedDict` that is made while the program runs.

    Of the kind that LangGraph's own `MessagesState` is: before Python 3.13 only such can be inherited from together.
    """
    make: Any = typing_extensions.TypedDict
    made: type[Any] = make(name, hints, total=False)
    return made


def read(state: Any, field: str, default: Any = None) -> Any:
    """A field of a state that is a mapping or an object."""
    value = state.get(field) if isinstance(state, Mapping) else getattr(state, field, None)
    return default if value is None else value


def whole(state: Any) -> dict[str, Any]:
    """The state as a mapping."""
    if isinstance(state, Mapping):
        return dict(state)
    names = getattr(type(state), "model_fields", None) or getattr(state, "__dict__", {})
    return {name: getattr(state, name) for name in names}
