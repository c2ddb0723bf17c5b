"""The simulator itself: what Kafka promises holds in it, what Kafka is known to lose it loses, and each bug bites."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.simulated.chronicle import Kind, Place, Why
from tests.simulated.controller import NOBODY, Electorate, PartitionState, changed
from tests.simulated.log import Log, Record
from tests.simulated.play import Played, Stage, play
from tests.simulated.settings import SETTINGS, Bug, Seen, Settings, bug_of, settings_of
from tests.simulated.truth import Permits, losses
from tests.simulated.world import SECOND, Process, World

#: A seed in which each bug takes records that nothing permits to take.
BITES = {
    Bug.HOLE: 12,
    Bug.TAIL_DROPPED: 36,
    Bug.LOST_AFTER_HEAL: 60,
    Bug.LACKS_ITS_END: 84,
    Bug.ACKNOWLEDGED_EARLY: 109,
    Bug.NOT_WAITED_FOR: 133,
    Bug.ELECTED_OUTSIDE: 159,
    Bug.CUT_TO_HIGH: 182,
    Bug.FORGETS: 205,
}


def log(*epochs: int) -> Log:
    """A log with a record of each of these epochs."""
    made = Log()
    for offset, epoch in enumerate(epochs):
        made.append(Record(offset, epoch, offset))
    return made


def test_logs_part_where_the_leader_s_epoch_ends() -> None:
    leader, follower = log(0, 0, 2), log(0, 0, 1, 1)
    assert leader.diverges(follower.last_epoch, follower.end) == (0, 2)
    assert [record.offset for record in follower.truncate(2)] == [2, 3]
    assert leader.diverges(follower.last_epoch, follower.end) is None


def test_a_log_that_ends_beyond_its_epoch_at_the_leader_parts_there() -> None:
    assert log(0, 0).diverges(0, 3) == (0, 2)
    assert log(0, 0).diverges(None, 0) is None
    with pytest.raises(LookupError):
        log(0).diverges(1, 1)


def test_a_hole_leaves_the_offsets_of_the_rest() -> None:
    pierced = log(0, 0, 0)
    assert pierced.remove([Record(1, 0, 1)]) == [Record(1, 0, 1)]
    assert [record.offset for record in pierced.read(0, 3, 10)] == [0, 2]
    assert pierced.end == 3


def test_no_more_is_dropped_than_there_is() -> None:
    short = log(0, 0, 1)
    assert len(short.truncate(-2)) == 3
    assert (short.end, short.high, short.records, short.epochs) == (0, 0, [], [])


def electorate(*active: int, elr: bool = False, unclean: bool = False, min_isr: int = 1) -> Electorate:
    return Electorate(frozenset(active), Settings(elr=elr, min_isr=min_isr), unclean)


LED = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1)


def test_another_of_the_isr_leads_where_the_leader_is_fenced() -> None:
    state, kind = changed(LED, electorate(2, 3), without=1)
    assert (state.leader, state.isr, state.epoch, kind) == (2, (2,), 1, Kind.CLEAN)


def test_without_one_of_the_isr_nobody_leads_and_the_last_stays_in_it() -> None:
    state, kind = changed(replace(LED, isr=(1,)), electorate(2, 3), without=1)
    assert (state.leader, state.isr, kind) == (NOBODY, (1,), None)
    assert changed(state, electorate(1, 2, 3))[0].leader == 1


def test_an_unclean_leader_is_alone_in_the_isr() -> None:
    state, kind = changed(replace(LED, isr=(1,)), electorate(2, 3, unclean=True), without=1)
    assert (state.leader, state.isr, kind) == (2, (2,), Kind.UNCLEAN)


def test_eligible_replicas_lead_when_the_isr_is_empty() -> None:
    state, _ = changed(LED, electorate(3, 2, elr=True, min_isr=2), without=1)
    assert (state.isr, state.elr) == ((2,), (1,))
    nobody, _ = changed(state, electorate(3, elr=True, min_isr=2), without=2)
    assert (nobody.leader, nobody.isr, set(nobody.elr)) == (NOBODY, (), {1, 2})
    back, kind = changed(nobody, electorate(1, 3, elr=True, min_isr=2))
    assert (back.leader, back.isr, back.elr, kind) == (1, (1,), (2,), Kind.CLEAN)


def test_a_broker_that_did_not_shut_down_is_no_longer_eligible() -> None:
    state, _ = changed(replace(LED, isr=(1,)), electorate(3, elr=True), without=1)
    assert state.elr == (1,)
    state, _ = changed(state, electorate(3, elr=True), without=1, shut_down_uncleanly=True)
    assert (state.elr, state.last_known) == ((), 1)
    back, kind = changed(state, electorate(1, 3, elr=True))
    assert (back.leader, kind) == (1, Kind.LAST_KNOWN)


def test_a_paused_process_does_later_what_it_was_to_do_and_one_that_ended_does_not() -> None:
    process, done = Process("b1"), list[str]()
    act = process.bound(lambda: done.append("act"))
    process.paused = True
    act()
    assert done == []
    process.resume()
    assert done == ["act"]
    process.end()
    process.start()
    act()
    assert done == ["act"]


def test_no_message_crosses_a_cut() -> None:
    world, one, other, heard = World(Random(0)), Process("b1"), Process("b2"), list[int]()
    world.cut("c", [frozenset({"b1", "b2"})])
    world.send(one, other, lambda: heard.append(1))
    world.run_until(SECOND)
    world.mend("c")
    world.send(one, other, lambda: heard.append(2))
    world.run_until(2 * SECOND)
    assert heard == [2]


@pytest.mark.parametrize("seed", [0, 17])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    one, other = (play(seed, settings_of(seed), Bug.LACKS_ITS_END) for _ in range(2))
    assert one.tables == other.tables
    assert losses(one) == losses(other)


@pytest.mark.parametrize("version", ["3.5.2", "4.3.1"])
def test_before_3_6_a_leader_gets_a_new_epoch_with_each_smaller_isr(version: str) -> None:
    def cut_off(stage: Stage, place: Place, leader: int) -> None:
        stage.nemesis.cut([leader], others(stage, place, leader))
        stage.world.run_until(15 * SECOND)

    played, place = acted(Settings(version=version, new_terms=True), cut_off)
    led = [(one.leader, one.epoch) for one in played.chronicles[place].elections]
    assert [epoch for _, epoch in led] == ([0] if version == "4.3.1" else [0, 1])
    assert len({leader for leader, _ in led}) == 1


@pytest.mark.parametrize("metadata", ["kraft", "zookeeper"])
def test_a_leader_gets_a_new_epoch_when_a_dead_broker_leaves_the_isr(metadata: str) -> None:
    def killed(stage: Stage, place: Place, leader: int) -> None:
        stage.nemesis.kill(others(stage, place, leader)[0])
        stage.world.run_until(15 * SECOND)

    settings = Settings(version="3.5.2", metadata=metadata, new_terms=True)
    played, place = acted(settings, killed)
    assert [one.epoch for one in played.chronicles[place].elections][:2] == [0, 1]
    offices = played.chronicles[place].offices
    assert [(one.leader, one.epoch) for one in offices][:2] == [(offices[0].leader, 0), (offices[0].leader, 1)]


def test_a_broker_that_is_asked_seldom_tells_less() -> None:
    often, seldom = (len(play(4, settings_of(4, seen)).tables["observations"]) for seen in (Seen.OFTEN, Seen.SELDOM))
    assert seldom < often / 3


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.name)
def test_without_bugs_nothing_is_lost_that_the_settings_do_not_permit(settings: Settings) -> None:
    found = [loss for seed in range(3) for loss in losses(play(seed, settings))]
    assert [loss for loss in found if loss.permits is not Permits.YES] == []


@pytest.mark.parametrize("elr", [True, False])
def test_without_bugs_and_wipes_min_isr_2_loses_nothing(elr: bool) -> None:
    played = [play(seed, Settings(min_isr=2, elr=elr), wipes=False) for seed in range(8)]
    assert [loss for one in played for loss in losses(one)] == []
    assert any(len(facts.offices) > 1 for one in played for facts in one.chronicles.values())


@pytest.mark.parametrize("bug", [bug for bug in Bug if bug is not Bug.HIGH_GOES_BACK])
def test_a_bug_takes_what_is_not_permitted(bug: Bug) -> None:
    seed = BITES[bug]
    assert bug_of(seed) is bug
    assert any(loss.permits is Permits.NO for loss in losses(play(seed, settings_of(seed), bug)))


def acted(settings: Settings, act: Callable[[Stage, Place, int], None], seed: int = 6) -> tuple[Played, Place]:
    """A history in which something happens, after 5 s, to the leader of the first partition."""
    stage = Stage(seed, settings, refreshes=30 * SECOND)
    stage.world.run_until(5 * SECOND)
    place = stage.places[0]
    act(stage, place, stage.cluster.controller.partitions[place].leader)
    return stage.finish(), place


def others(stage: Stage, place: Place, leader: int) -> list[int]:
    return [one for one in stage.cluster.chronicles[place].replicas if one != leader]


def as_in_2013(stage: Stage, place: Place, leader: int) -> None:
    """The leader is cut from its followers, acknowledges alone, and is then cut from all."""
    stage.nemesis.cut([leader], others(stage, place, leader))
    stage.world.run_until(15 * SECOND)
    stage.nemesis.isolate(leader, clients_too=True)
    stage.world.run_until(25 * SECOND)


def lost_at(found: tuple[Played, Place]) -> int:
    played, place = found
    return sum(loss.acknowledged_ns is not None and loss.place == place for loss in losses(played))


def test_2013_loses_with_one_in_sync_replica_and_unclean_election() -> None:
    assert lost_at(acted(Settings(unclean=True), as_in_2013)) > 20


def test_2013_loses_nothing_with_min_isr_2() -> None:
    played, place = acted(Settings(unclean=True, min_isr=2), as_in_2013)
    assert lost_at((played, place)) == 0
    assert any(row["error"] == "NOT_ENOUGH_REPLICAS" for row in played.tables["sends"])


def test_2013_loses_nothing_and_has_no_leader_without_unclean_election() -> None:
    played, place = acted(Settings(), as_in_2013)
    assert lost_at((played, place)) == 0
    assert any(row["leader"] == NOBODY for row in played.tables["observations"])


def isolated_but_from_clients(stage: Stage, place: Place, leader: int) -> None:
    stage.nemesis.isolate(leader, clients_too=False)
    stage.world.run_until(8 * SECOND)


def test_a_deposed_leader_goes_on_acknowledging_with_acks_1_alone() -> None:
    lost, _ = acted(Settings(acks="1"), isolated_but_from_clients)
    assert {loss.permits for loss in losses(lost)} == {Permits.YES}
    kept, _ = acted(Settings(acks="all"), isolated_but_from_clients)
    assert losses(kept) == []


def last_wiped(stage: Stage, place: Place, leader: int) -> None:
    """The last in the ISR loses its disk, and comes back before all others."""
    cut = stage.nemesis.cut([leader], others(stage, place, leader))
    stage.world.run_until(12 * SECOND)
    killed = stage.nemesis.kill(leader)
    stage.nemesis.wipe(leader)
    stage.nemesis.heal(cut)
    stage.world.run_until(18 * SECOND)
    stage.nemesis.heal(killed)
    stage.world.run_until(25 * SECOND)


def test_the_last_replica_standing_leads_with_an_empty_disk() -> None:
    played, place = acted(Settings(version="3.9.2", metadata="zookeeper"), last_wiped)
    found = [loss for loss in losses(played) if loss.place == place]
    assert len(found) > 20
    assert {loss.permits for loss in found} == {Permits.YES}
    assert any(removal.why is Why.TRUNCATED for removal in played.chronicles[place].removals)


def test_with_log_directory_ids_it_is_not_elected() -> None:
    played, place = acted(Settings(version="3.9.2"), last_wiped)
    assert place not in played.final


def test_with_eligible_leader_replicas_it_leads_in_some_histories_as_the_last_known_leader() -> None:
    """As lose-messages/leader-wiped on 4.3.1."""
    found = [acted(Settings(elr=True), last_wiped, seed) for seed in range(12)]
    led = [(played, place) for played, place in found if place in played.final]
    assert 0 < len(led) < len(found)
    for played, place in led:
        assert [one.kind for one in played.chronicles[place].elections][-1] is Kind.LAST_KNOWN
        lost = [loss for loss in losses(played) if loss.place == place]
        assert len(lost) > 20
        assert {loss.permits for loss in lost} == {Permits.YES}
