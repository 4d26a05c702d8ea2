"""The detector: a fold over the events of a run. Event in, decisions out.

The one place where the findings of the layers become a decision, in production, in replay and on the screen alike. It
has no clock, no randomness and does no I/O; the same events give the same decisions in one go or from a snapshot in
the middle.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from loopscope.engine.accounts import Account, Accounts
from loopscope.engine.compiled import Compiled
from loopscope.engine.decision import Decision
from loopscope.engine.events import (
    Batch,
    Call,
    Control,
    Event,
    Header,
    PolicySet,
    Result,
    RunStart,
    ScopeKey,
    Warned,
    Witness,
)
from loopscope.engine.identity import Identified
from loopscope.engine.joins import Place
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.rules import STORED, Facts, Finding, RuleState, Step
from loopscope.engine.scope import Registry, ScopeState, Spent
from loopscope.engine.snapshot import SNAPSHOT_VERSION, ScopeSnapshot, Snapshot
from loopscope.engine.trail import Brought, Outcome, Told, Trail

__all__ = ["Decision", "LoopDetector"]

_NOTHING: tuple[Decision, ...] = ()
_ALWAYS = ("identical_call_set", "tool_frequency")
"""Layers that every policy has."""
_NOBODY = {"ts": None, "thread_id": None, "run_id": None}


class LoopDetector:
    """Decides each batch of a run.

    Not thread-safe: whoever feeds it from threads holds a lock, since the order of events is part of the input.

    Args:
        policy: the thresholds. None takes the recording's own: its header's and its `policy` events'.
        assume_delivery: take a waiting warning for delivered just before the scope's next batch, unless a followed
        recording
            tells of its deliveries. False where the events always tell, as they do live.
        follow_policy: apply the policies of headers and `policy` events; by default only where `policy` is None.

    Raises:
        PolicyError: while observing, if a followed policy breaks a rule.
    """

    def __init__(
        self, policy: Policy | None = None, *, assume_delivery: bool = True, follow_policy: bool | None = None
    ) -> None:
        self._base = Compiled(policy if policy is not None else DEFAULT)
        self._compiled = self._base
        self._own: OrderedDict[ScopeKey, Compiled] = OrderedDict()
        self._registry = Registry()
        self._accounts = Accounts()
        self._follow = policy is None if follow_policy is None else follow_policy
        self._assume_by_default = self.assume_delivery = assume_delivery
        self.batches = 0
        """Batches with calls so far: the number of the newest one."""

    @property
    def policy(self) -> Policy:
        """The policy in force where a scope has none of its own."""
        return self._compiled.policy

    @property
    def follows(self) -> bool:
        """Whether the policies of headers and `policy` events are applied."""
        return self._follow

    def policy_of(self, key: ScopeKey) -> Policy:
        """The policy in force for one scope."""
        return self._own.get(key, self._compiled).policy

    @property
    def scopes(self) -> Mapping[ScopeKey, ScopeState]:
        """The scopes that are remembered, least recently used first."""
        return self._registry.scopes

    def scope(self, key: ScopeKey) -> ScopeState | None:
        """The state of one scope, or of its whole thread; None if it has made no call yet or was evicted."""
        return self._registry.scopes.get(self._home(key))

    def _home(self, key: ScopeKey) -> ScopeKey:
        """Where the state of a scope is kept: its policy may give all runs of a thread one."""
        compiled = self._own.get(key, self._compiled) if self._own else self._compiled
        return ScopeKey(key[0], None) if compiled.whole_thread else key

    def pending(self, key: ScopeKey) -> tuple[str, ...]:
        """The warning texts that wait for this scope's next model call, oldest first."""
        scope = self.scope(key)
        return scope.pending if scope is not None else ()

    def spent(self, key: ScopeKey) -> Spent:
        """What this scope has used up so far."""
        return self._registry.spent(self._home(key))

    def account(self, key: ScopeKey) -> Account | None:
        """The budgets' account of one scope; None under a policy without budgets, and before its first event."""
        return self._accounts.scopes.get(key)

    def lineage(self, key: ScopeKey) -> tuple[ScopeKey, ...]:
        """The scope and its ancestors, nearest first, as far as the run told."""
        return tuple(self._accounts.lineage(key))

    def over_budget(self, key: ScopeKey, now: float | None) -> bool:
        """Whether a budget of this scope, or of one above it, is spent; `now` is the time of the newest batch."""
        budgets = self.policy_of(key).budget
        if not budgets:
            return False
        accounts = [account for each in self.lineage(key) if (account := self.account(each)) is not None]
        return any(a.value(counter, now) >= budget.limit for counter, budget in budgets.items() for a in accounts)

    @property
    def sees_results(self) -> bool:
        """Whether any layer of the policy in force looks at results."""
        return bool(self._compiled.keep) or any(own.keep for own in self._own.values())

    def observe(self, event: Event | Mapping[str, Any]) -> tuple[Decision, ...]:
        """Account one event; the decisions that it brings, none for most kinds.

        Args:
            event: a struct of `loopscope.engine.events`, or a recording's line as a mapping.

        Raises:
            ValueError: if a mapping is no event.
            PolicyError: if a policy that is followed breaks a rule.
        """
        if type(event) is Batch:
            calls = event.calls
            compiled = self._own.get(event.scope, self._compiled) if self._own else self._compiled
            if len(calls) == 1:
                ids = (calls[0].id,) if compiled.keep else ()
                return (self.fold(event, compiled.identity.hash(calls), (calls[0].name or "",), (), ids),)
            return self._observe_batch(event, compiled)
        if type(event) is Result:
            return self._bring((event.thread_id, event.run_id), event)  # type: ignore[arg-type]  # as in `fold`
        if isinstance(event, Mapping):
            return self.observe(msgspec.convert({**_NOBODY, **event}, Event))
        if isinstance(event, Witness):
            return self._observe_witness(event)
        self._take(event)
        return _NOTHING

    def observe_call(self, place: Batch, call: Call) -> Decision:
        """As `observe` of a batch of this one call, without making a batch of it: for where nobody keeps it.

        Args:
            place: any batch of one call; only its scope, `seq`, `ts` and `usage` are used.
            call: what is decided.
        """
        compiled = self._own.get(place.scope, self._compiled) if self._own else self._compiled
        ids = (call.id,) if compiled.keep else ()
        return self.fold(place, compiled.identity.hash((call,)), (call.name or "",), (), ids)

    def _take(self, event: Event) -> None:
        """What changes the state and decides nothing."""
        if isinstance(event, RunStart):
            self._observe_start(event)
        elif isinstance(event, Warned):
            self._follow_warning(event)
        elif isinstance(event, Control):
            self._control(event)
        elif isinstance(event, PolicySet):
            self._set_policy(event)
        elif isinstance(event, Header):
            self._segment(event)

    def _observe_batch(self, batch: Batch, compiled: Compiled) -> tuple[Decision, ...]:
        calls = batch.calls
        if not calls:
            self._registry.charge_callless(self._home(batch.scope), batch, self._compiled.limit)
            if compiled.budgets is not None:
                self._accounts.charge(batch, self._compiled.limit, compiled.budgets)
            return _NOTHING
        digest, repeats = compiled.identity.read(calls)
        names, ids = tuple([call.name or "" for call in calls]), tuple([call.id for call in calls])
        return (self.fold(batch, digest, names, repeats, ids),)

    def identify(self, batch: Batch) -> Identified:
        """The hash and the repeated calls of a batch under the policy that is in force for its scope."""
        compiled = self._own.get(batch.scope, self._compiled) if self._own else self._compiled
        return compiled.identity.read(batch.calls)

    def fold(  # noqa: C901, PLR0912, PLR0915 - the hot path in one piece: a call costs as much as what it would hold
        self,
        batch: Batch,
        digest: str,
        names: tuple[str, ...],
        repeats: tuple[tuple[str, str, int], ...] = (),
        ids: tuple[str | None, ...] = (),
    ) -> Decision:
        """Decide a batch whose hash is known, so that a replay need not read its arguments again.

        Args:
            batch: only its scope, `seq`, `ts`, `usage` and the number of its calls are used.
            digest: its hash, as `identify` gives it.
            names: its tool names in model order, empty where a call has none.
            repeats: its repeated calls, as `identify` gives them.
            ids: of its calls, by which `observe` finds what results belong to; none where `fold_result` is told.
        """
        number = self.batches = self.batches + 1
        thread_id, run_id, compiled, scopes = batch.thread_id, batch.run_id, self._compiled, self._registry.scopes
        key: ScopeKey = (thread_id, run_id)  # type: ignore[assignment]  # equal to the named tuple, and cheaper
        if self._own:
            compiled = self._own.get(key, compiled)
        if compiled.whole_thread:
            key = ScopeKey(thread_id, None)
        scope = scopes.get(key)
        if scope is None or len(scopes) > self._compiled.limit:
            if compiled.budgets is not None:
                self._touch_ancestors(batch.scope)
            scope = self._registry.touch(ScopeKey(*key), batch.ts, self._compiled.limit, compiled.rules)
        else:
            scopes.move_to_end(key)
        if scope.rules is not compiled.rules:
            scope.align(compiled.rules, compiled.policy)
        spent = scope.spent
        spent.batches += 1
        if batch.ts is not None or batch.usage is not None or len(batch.calls) > 1:
            spent.charge(batch)
        trail: Trail | None = None
        accounts: Sequence[Account] = ()
        if not compiled.plain:
            if compiled.keep:
                trail = scope.trail
                if trail is None or trail.keep != compiled.keep:
                    trail = scope.follow(compiled.keep)
            if compiled.budgets is not None:
                charged = self._accounts
                if charged.charge(batch, self._compiled.limit, compiled.budgets):
                    accounts, scope.woken = charged.line, True
                if len(charged.line) > 1:
                    self._touch_ancestors(key)
        window = scope.hashes
        facts = Facts(number, batch.seq, batch.ts, digest, names, window, repeats, trail, accounts)
        if scope.warnings:
            scope.note(facts, assume_delivery=self.assume_delivery)
        end: Finding | None = None
        stop: Finding | None = None
        warn: Finding | None = None
        steps: list[tuple[Step, RuleState]] = scope.brief
        if repeats or scope.woken:
            steps, scope.woken = scope.steps, False
        for account, state in steps:
            finding = account(state, facts, end)
            if finding is not None:
                if finding.action != "warn":
                    end = stop = stop or finding
                elif warn is None:
                    warn = finding
                    if compiled.early:
                        end = stop or warn
        count = window.counts[digest]
        if trail is not None:
            trail.begin(number, digest, names, count, ids)
        if stop is not None:
            found = stop
        elif warn is None:
            return Decision(number, batch.seq, thread_id, run_id, digest, count)
        else:
            found = warn
            scope.warn(warn, number, digest, names)
        return Decision(
            number, batch.seq, thread_id, run_id, digest, count,
            found.action, found.layer, found.tool, found.count, found.threshold, "batch", found.counter or UNSET,
        )  # fmt: skip

    def _touch_ancestors(self, key: ScopeKey) -> None:
        """Make the ancestors of a scope the most recently used ones: before it, lest it evicts them, and after it."""
        scopes = self._registry.scopes
        for each in self._accounts.lineage(key):
            if each in scopes:
                scopes.move_to_end(each)

    def fold_result(self, key: ScopeKey, place: Place, outcome: Outcome, seq: int) -> tuple[Decision, ...]:
        """Account a result whose call is known; a decision where it completes its batch and a layer warns or stops.

        Args:
            key: the scope.
            place: the call that it belongs to.
            outcome: what the layers see of it.
            seq: of the result's event.
        """
        return self._bring(key, Told(place, outcome, seq))

    def _bring(self, key: ScopeKey, result: Result | Told) -> tuple[Decision, ...]:
        """Account a result, in one piece as `fold`, and see what the layers say if it is its batch's last one."""
        compiled = self._own.get(key, self._compiled) if self._own else self._compiled
        scope = self._registry.scopes.get(ScopeKey(key[0], None) if compiled.whole_thread else key)
        if scope is None or (trail := scope.trail) is None or (brought := trail.take(result)) is None:
            return _NOTHING
        if scope.rules is not compiled.rules:
            scope.align(compiled.rules, compiled.policy)
        found: list[Finding] | None = None
        for account, state in scope.result_steps:
            finding = account(state, brought)
            if finding is not None:
                found = [*(found or ()), finding]
        if found is None:
            return _NOTHING
        return self._at_result(scope, key, brought, result.seq, found)

    def _observe_witness(self, witness: Witness) -> tuple[Decision, ...]:
        scope = self.scope(witness.scope)
        if scope is None or scope.trail is None or not scope.trail.batches:
            return _NOTHING
        brought = next(reversed(scope.trail.batches.values()))
        compiled = self._own.get(witness.scope, self._compiled)
        if scope.rules is not compiled.rules:
            scope.align(compiled.rules, compiled.policy)
        found = [
            rule.account_witness(scope.states[rule.layer], witness.values, complete=brought.complete)
            for rule in compiled.witness_rules
        ]
        known = [finding for finding in found if finding is not None]
        return self._at_result(scope, witness.scope, brought, witness.seq, known) if known else _NOTHING

    @staticmethod
    def _at_result(
        scope: ScopeState, key: ScopeKey, brought: Brought, seq: int, found: Sequence[Finding]
    ) -> tuple[Decision, ...]:
        """The decision of the layers that look at results: the first stop, else the first warning."""
        stop = next((finding for finding in found if finding.action == "hard_stop"), None)
        chosen = stop or found[0]
        if stop is None:
            scope.warn(chosen, brought.n, brought.hash, brought.names)
        else:
            scope.woken = True
        return (
            Decision(
                brought.n, seq, key[0], key[1], brought.hash, brought.hash_count,
                chosen.action, chosen.layer, chosen.tool, chosen.count, chosen.threshold, "result",
            ),
        )  # fmt: skip

    def _observe_start(self, start: RunStart) -> None:
        """A run begins: its parent is known from here on, and the clocks of both run."""
        if start.parent_thread_id is not None or start.parent_run_id is not None:
            parent = ScopeKey(start.parent_thread_id, start.parent_run_id)
            self._accounts.adopt(start.scope, parent, self._compiled.limit)
        if self._own.get(start.scope, self._compiled).budgets is not None:
            for key in self.lineage(start.scope):
                self._accounts.begin(key, start.ts, self._compiled.limit)

    def _follow_warning(self, event: Warned) -> None:
        """A run that tells of its warnings is believed; under a policy that it did not have, it cannot tell."""
        if self._follow:
            self.assume_delivery = False
        scope = self.scope(event.scope)
        if scope is not None and not self.assume_delivery:
            scope.settle(event.text, event.state)

    def _control(self, event: Control) -> None:
        if event.action != "reset":
            return
        if event.thread_id is None and event.run_id is None:
            self._registry.forget()
            self._accounts.forget()
        else:
            self._registry.drop(self._home(event.scope))
            self._accounts.drop(event.scope)

    def adopt(self, policy: Policy, scope: ScopeKey | None = None) -> None:
        """Decide under this policy from the next batch on: in one scope, or (None) in all, whatever they had.

        Histories and marks stay; windows are cut at the next append, scopes at the next touch.
        """
        self._accounts.look_again()
        if scope is None:
            self._compiled = Compiled(policy)
            self._own.clear()
            return
        self._own[scope] = Compiled(policy)
        self._own.move_to_end(scope)
        while len(self._own) > 2 * self._compiled.limit:
            self._own.popitem(last=False)

    def _set_policy(self, event: PolicySet) -> None:
        if self._follow:
            everywhere = event.thread_id is None and event.run_id is None
            self.adopt(Policy.recorded(event.policy), None if everywhere else event.scope)

    def _segment(self, header: Header) -> None:
        """A header begins a segment: fresh state, and its own policy where that is followed."""
        self._registry.forget()
        self._accounts = Accounts()
        self._own.clear()
        self.assume_delivery = self._assume_by_default
        if self._follow:
            recorded = header.policy
            self._compiled = self._base if recorded is None else Compiled(Policy.recorded(recorded))

    def reset(self, thread_id: str | None = None) -> None:
        """Forget every scope, or every scope of one thread; the numbering of batches goes on."""
        self._registry.forget(thread_id)
        self._accounts.forget(thread_id)

    def snapshot(self) -> Snapshot:
        """The whole state as plain values; what changes later does not show in it."""
        registry = self._registry
        return Snapshot(
            version=SNAPSHOT_VERSION,
            batches=self.batches,
            assume_delivery=self.assume_delivery,
            policy=self.policy.to_dict(),
            scope_policies=tuple((k.thread_id, k.run_id, own.policy.to_dict()) for k, own in self._own.items()),
            scopes=tuple(_dump_scope(scope) for scope in registry.scopes.values()),
            callless=tuple((k.thread_id, k.run_id, _copy(spent)) for k, spent in registry.callless.items()),
            accounts=tuple((k.thread_id, k.run_id, own.dump()) for k, own in self._accounts.scopes.items()),
            parents=tuple(
                (k.thread_id, k.run_id, parent.thread_id, parent.run_id) for k, parent in self._accounts.parents.items()
            ),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from a snapshot: the same events then give the same decisions.

        Raises:
            ValueError: if the snapshot is of another version.
        """
        if snapshot.version != SNAPSHOT_VERSION:
            msg = f"snapshot version {snapshot.version} is not {SNAPSHOT_VERSION}: it was made by another loopscope"
            raise ValueError(msg)
        self.batches = snapshot.batches
        self.assume_delivery = snapshot.assume_delivery
        self._compiled = self._reuse(snapshot.policy)
        self._own = OrderedDict((ScopeKey(t, r), Compiled(Policy.recorded(p))) for t, r, p in snapshot.scope_policies)
        self._registry = registry = Registry()
        for saved in snapshot.scopes:
            registry.scopes[ScopeKey(saved.thread_id, saved.run_id)] = _load_scope(saved)
        registry.callless.update((ScopeKey(t, r), _copy(spent)) for t, r, spent in snapshot.callless)
        self._accounts = accounts = Accounts()
        accounts.scopes.update((ScopeKey(t, r), Account.load(data)) for t, r, data in snapshot.accounts)
        accounts.parents.update((ScopeKey(t, r), ScopeKey(*parent)) for t, r, *parent in snapshot.parents)

    def _reuse(self, policy: dict[str, object]) -> Compiled:
        """Most restores are under the policy in force: its rules are kept."""
        return self._compiled if policy == self.policy.to_dict() else Compiled(Policy.recorded(policy))


def _copy(spent: Spent) -> Spent:
    return msgspec.structs.replace(spent)


def _dump_scope(scope: ScopeState) -> ScopeSnapshot:
    layers = {rule.layer: rule.dump(scope.states[rule.layer]) for rule in scope.rules}
    warnings = tuple(msgspec.structs.replace(record) for record in scope.warnings)
    trail = scope.trail.dump() if scope.trail is not None else None
    return ScopeSnapshot(scope.key.thread_id, scope.key.run_id, layers, warnings, _copy(scope.spent), trail)


def _load_scope(saved: ScopeSnapshot) -> ScopeState:
    """The scope as it was; it is aligned with the policy in force, as any other, when something comes for it."""
    rules = tuple(rule for layer, rule in STORED.items() if layer in saved.layers or layer in _ALWAYS)
    scope = ScopeState(ScopeKey(saved.thread_id, saved.run_id), rules, _copy(saved.spent))
    scope.set_states({rule.layer: rule.load(saved.layers[rule.layer]) for rule in rules if rule.layer in saved.layers})
    scope.trail = Trail.load(saved.trail) if saved.trail is not None else None
    scope.warnings = [msgspec.structs.replace(record) for record in saved.warnings]
    return scope
