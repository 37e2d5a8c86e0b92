"""The daemon on a virtual clock: each slot once, whatever clocks, restarts and brokers do."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trader.core.clock import new_york
from trader.core.config import Daemon as Settings
from trader.core.errors import ConfigError, EndpointError, StateError
from trader.core.market import Timeframe
from trader.ledger.store import Ledger
from trader.pipeline.agenda import Agenda, Job
from trader.pipeline.daemon import Beat, Daemon, RealPace, SimulatedPace

CALENDAR = new_york()
TICK = timedelta(minutes=10)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Clock:
    """A clock that a person may set, and one that only runs forward."""

    def __init__(self, now: datetime) -> None:
        self.now, self.passed = now, 0.0

    def run(self, time: timedelta) -> None:
        self.now += time
        self.passed += time.total_seconds()


class Work:
    """Does nothing but write down what it was asked, as the real one does with slots."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self.ledger, self.clock = ledger, clock
        self.done: list[tuple[str, datetime]] = []
        self.watches: list[datetime] = []
        self.fails: dict[str, list[Exception]] = {}
        self.asks: set[str] = set()
        self.over = ""
        self.said = False

    def carry_out(self, job: Job):
        self._fail(job.key)
        if job.key in self.asks:
            return None
        self.done.append((job.key, self.clock.now))
        if job.slot is not None:
            self.ledger.append("slot", f"slot-{job.key}", {"as_of": job.as_of})
        return {"n": 1}

    def watch(self) -> None:
        self._fail("watch")
        self.watches.append(self.clock.now)

    def _fail(self, name: str) -> None:
        if self.fails.get(name):
            raise self.fails[name].pop(0)

    def ended(self) -> str:
        return self.over

    def heard(self) -> bool:
        said, self.said = self.said, False
        return said


class House:
    """A state folder with its clock; daemons come and go."""

    def __init__(self, start: str, *, timeframe=Timeframe.DAY, path: Path | None = None) -> None:
        self.clock = Clock(at(start))
        self.timeframe, self.path = timeframe, path
        self.ledger = Ledger(path)
        self.work = Work(self.ledger, self.clock)
        self.told: list[tuple[str, dict]] = []
        self.beats: list[Beat] = []
        self.stopped = False
        self.begun = self.clock.now

    def daemon(self, *, simulated: bool = False, ledger: Ledger | None = None, **more) -> Daemon:
        return Daemon(
            more.pop("work", self.work),
            ledger=ledger or self.ledger,
            agenda=Agenda(CALENDAR, self.timeframe, Settings(), delayed=not simulated),
            now=lambda: self.clock.now,
            begun=self.begun,
            simulated=simulated,
            watch_seconds=300.0,
            tell=lambda event, **facts: self.told.append((event, facts)),
            beaten=self.beats.append,
            stopped=lambda: self.stopped,
            seconds=lambda: self.clock.passed,
        )

    def run(self, *daemons: Daemon, until: str, tick: timedelta = TICK) -> None:
        while self.clock.now < at(until):
            for daemon in daemons:
                daemon.wake()
            self.clock.run(tick)

    def cycles(self) -> list[str]:
        return [key for key, _ in self.work.done if key.startswith("cycle")]

    def outcomes(self) -> dict[str, str]:
        return {record.record_id: record.body["outcome"] for record in self.ledger.records("job")}

    def events(self, name: str) -> list[dict]:
        return [facts for event, facts in self.told if event == name]


def expected(first: str, last: str, timeframe=Timeframe.DAY) -> list[str]:
    agenda = Agenda(CALENDAR, timeframe, Settings(), delayed=True)
    return [
        job.key
        for session in CALENDAR.between(date.fromisoformat(first), date.fromisoformat(last))
        for job in agenda.jobs(session)
        if job.slot
    ]


CHANGES = ("2025-03-09", "2025-11-02", "2026-03-08", "2026-11-01")  # clocks in New York
CLOSED = (  # with two unscheduled in spirit: a day of mourning, and the half days beside holidays
    ("2025-01-01", ()),
    ("2025-01-09", ()),
    ("2025-01-20", ()),
    ("2025-04-18", ()),
    ("2025-07-04", ("2025-07-03",)),
    ("2025-09-01", ()),
    ("2025-11-27", ("2025-11-28",)),
    ("2025-12-25", ("2025-12-24",)),
    ("2026-07-03", ()),
    ("2026-11-26", ("2026-11-27",)),
)


@pytest.mark.parametrize("timeframe", list(Timeframe))
@pytest.mark.parametrize("change", CHANGES)
def test_exactly_one_cycle_per_slot_when_clocks_change(change, timeframe):
    day = date.fromisoformat(change)
    first, last = day - timedelta(days=4), day + timedelta(days=4)
    house = House(f"{first}T00:00", timeframe=timeframe)
    house.run(house.daemon(), until=f"{last + timedelta(days=1)}T05:00")
    assert house.cycles() == expected(str(first), str(last), timeframe)
    assert set(house.outcomes().values()) == {"done"}


@pytest.mark.parametrize(("holiday", "half_days"), CLOSED)
def test_holidays_have_no_cycle_and_half_days_one_at_their_own_close(holiday, half_days):
    day = date.fromisoformat(holiday)
    first, last = day - timedelta(days=2), day + timedelta(days=2)
    house = House(f"{first}T00:00")
    house.run(house.daemon(), until=f"{last + timedelta(days=1)}T05:00")
    assert house.cycles() == expected(str(first), str(last))
    assert f"cycle-{holiday}" not in house.cycles()
    moments = dict(house.work.done)
    for half in half_days:
        close = CALENDAR.close(date.fromisoformat(half))
        late = moments[f"cycle-{half}"] - close
        assert close.hour < 19
        assert timedelta(minutes=20) <= late < timedelta(minutes=40)


@pytest.mark.parametrize("hours", [-1, 1])
@pytest.mark.parametrize("when", [f"2025-07-08T{hour:02}:25" for hour in range(12, 24)])
def test_a_clock_that_jumps_an_hour_doubles_and_loses_nothing(when, hours):
    house = House("2025-07-07T00:00")
    daemon = house.daemon()
    house.run(daemon, until=when)
    house.clock.now += timedelta(hours=hours)
    house.run(daemon, until="2025-07-10T10:00")
    assert house.cycles() == expected("2025-07-07", "2025-07-09")
    assert Counter(house.outcomes().values()) == {"done": 12}


def test_a_restart_inside_the_window_runs_the_slot_that_was_not_run():
    house = House("2025-07-08T12:00")
    house.run(house.daemon(), until="2025-07-08T20:10")  # it dies before the bars are there
    house.clock.run(timedelta(hours=5))
    house.run(house.daemon(), until="2025-07-09T02:00")
    assert house.cycles() == ["cycle-2025-07-08"]
    assert house.outcomes()["cycle-2025-07-08"] == "done"


def test_a_restart_after_the_next_opening_records_the_slot_as_missed_and_never_trades_it():
    house = House("2025-07-08T12:00")
    house.run(house.daemon(), until="2025-07-08T20:10")
    house.clock.run(timedelta(hours=20))
    house.run(house.daemon(), until="2025-07-10T02:00")
    assert house.cycles() == ["cycle-2025-07-09"]
    assert house.outcomes()["cycle-2025-07-08"] == "missed"
    assert house.events("missed")[0]["job"] == "cycle-2025-07-08"


def test_a_job_that_was_cut_short_is_done_again_and_a_finished_slot_is_not():
    house = House("2025-07-08T12:00")
    house.work.fails["post_close-2025-07-08"] = [KeyboardInterrupt()]
    daemon = house.daemon()
    with pytest.raises(KeyboardInterrupt):
        house.run(daemon, until="2025-07-09T02:00")
    assert "post_close-2025-07-08" not in house.outcomes()
    house.run(house.daemon(), until="2025-07-09T02:00")
    assert house.cycles() == ["cycle-2025-07-08"]
    assert house.outcomes()["post_close-2025-07-08"] == "done"


def test_a_slot_that_was_finished_by_hand_is_not_run_again():
    house = House("2025-07-08T12:00")
    close = CALENDAR.close(date(2025, 7, 8))
    house.ledger.append("slot", "by-hand", {"as_of": close})
    house.run(house.daemon(), until="2025-07-09T02:00")
    assert house.cycles() == []
    assert "cycle-2025-07-08" not in house.outcomes()


def test_two_daemons_over_one_ledger_run_each_slot_once(tmp_path):
    path = tmp_path / "ledger.db"
    house = House("2025-07-07T00:00", path=path)
    other = Ledger(path)
    theirs = Work(other, house.clock)
    house.run(house.daemon(), house.daemon(ledger=other, work=theirs), until="2025-07-12T00:00")
    both = [key for key, _ in (*house.work.done, *theirs.done)]
    assert sorted(key for key in both if key.startswith("cycle")) == expected(
        "2025-07-07", "2025-07-11"
    )
    assert max(Counter(both).values()) == 1
    house.ledger.verify()


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["run", "run", "run", "sleep", "set", "restart", "fail"]),
            st.integers(-180, 2_000),
        ),
        min_size=5,
        max_size=40,
    ),
    timeframe=st.sampled_from(list(Timeframe)),
)
def test_whatever_happens_each_slot_is_run_at_most_once_and_none_is_forgotten(steps, timeframe):
    house = House("2025-10-30T00:00", timeframe=timeframe)
    daemon = house.daemon()
    furthest = house.clock.now
    for action, minutes in steps:
        if action == "set":
            house.clock.now += timedelta(minutes=max(-180, min(minutes, 180)))
        elif action == "sleep":
            house.clock.run(timedelta(minutes=abs(minutes)))
        elif action == "restart":
            daemon = house.daemon()
        elif action == "fail":
            for key in expected("2025-10-30", "2025-12-31", timeframe):
                house.work.fails[key] = [EndpointError("down")]
        for _ in range(3):
            daemon.wake()
            house.clock.run(TICK)
        furthest = max(furthest, house.clock.now)
    house.clock.now = max(furthest, house.clock.now)
    house.run(daemon, until=(house.clock.now + timedelta(days=5)).strftime("%Y-%m-%dT%H:%M"))
    assert max(Counter(key for key, _ in house.work.done).values()) == 1
    last = max(date.fromisoformat(key[6:16]) for key in house.cycles())
    outcomes = {key: said for key, said in house.outcomes().items() if key.startswith("cycle")}
    assert sorted(outcomes) == expected("2025-10-30", str(last), timeframe)[: len(outcomes)]
    assert {key for key, said in outcomes.items() if said == "done"} == set(house.cycles())


def test_a_failing_job_is_tried_again_later_and_later_and_told_once():
    house = House("2025-07-08T19:00")
    house.work.fails["cycle-2025-07-08"] = [EndpointError("no answer")] * 4
    tries: list[float] = []
    carry_out = house.work.carry_out

    def noted(job: Job):
        if job.slot:
            tries.append(house.clock.passed)
        return carry_out(job)

    house.work.carry_out = noted
    house.run(house.daemon(), until="2025-07-08T21:00", tick=timedelta(seconds=1))
    gaps = [round(later - sooner) for sooner, later in pairwise(tries)]
    assert gaps == [15, 30, 60, 120]
    assert house.cycles() == ["cycle-2025-07-08"]
    assert len(house.events("failed")) == 1
    assert house.events("failed")[0]["problem"] == "no answer"
    assert house.events("recovered") == [{"job": "cycle-2025-07-08"}]
    assert house.beats[-1].failures == 4


def test_a_slot_that_is_finished_is_done_although_the_broker_went_away_right_after():
    house = House("2025-07-08T12:00")
    carry_out = house.work.carry_out

    def then_away(job: Job):
        done = carry_out(job)
        if job.slot is not None:
            raise EndpointError("away")
        return done

    house.work.carry_out = then_away
    daemon = house.daemon()
    house.run(daemon, until="2025-07-09T02:00")
    assert house.outcomes()["cycle-2025-07-08"] == "done"
    assert daemon.beat.last_cycle == "cycle-2025-07-08"
    assert daemon.beat.failures == 1
    assert house.cycles() == ["cycle-2025-07-08"]


def test_a_failing_job_does_not_hold_up_the_others():
    house = House("2025-07-08T12:30")
    house.work.fails["pre_market-2025-07-08"] = [EndpointError("down")] * 1000
    house.run(house.daemon(), until="2025-07-09T02:00")
    assert house.cycles() == ["cycle-2025-07-08"]
    assert house.outcomes()["pre_market-2025-07-08"] == "missed"


def test_the_account_is_looked_at_every_five_minutes_and_soon_again_after_a_failure():
    house = House("2025-07-08T01:00")
    house.work.fails["watch"] = [EndpointError("down")]
    house.run(house.daemon(), until="2025-07-08T02:00", tick=timedelta(seconds=5))
    minutes = [(moment - at("2025-07-08T01:00")).total_seconds() for moment in house.work.watches]
    assert minutes[0] == 15
    assert {round(b - a) for a, b in pairwise(minutes)} == {300}


def test_the_time_between_two_looks_does_not_follow_a_clock_that_is_set_back():
    house = House("2025-07-08T01:00")
    daemon = house.daemon()
    daemon.wake()
    house.clock.now -= timedelta(hours=1)
    house.clock.passed += 300
    daemon.wake()
    assert len(house.work.watches) == 2


def test_a_control_of_a_person_is_looked_at_with_the_next_wake():
    house = House("2025-07-08T01:00")
    daemon = house.daemon()
    daemon.wake()
    house.clock.run(timedelta(seconds=1))
    daemon.wake()
    assert len(house.work.watches) == 1
    house.ledger.append("control", "c1", {"action": "close"})
    house.clock.run(timedelta(seconds=1))
    daemon.wake()
    assert len(house.work.watches) == 2


def test_what_the_brokers_stream_says_is_looked_into_soon_and_not_every_second():
    house = House("2025-07-08T01:00")
    daemon = house.daemon()
    for _ in range(60):
        house.work.said = True
        daemon.wake()
        house.clock.run(timedelta(seconds=1))
    gaps = {(b - a).total_seconds() for a, b in pairwise(house.work.watches)}
    assert gaps == {5}


def test_a_slot_that_waits_for_a_person_goes_on_with_the_answer():
    house = House("2025-07-08T12:00")
    house.work.asks = {"cycle-2025-07-08"}
    daemon = house.daemon()
    house.run(daemon, until="2025-07-09T02:00")
    assert house.cycles() == []
    assert "cycle-2025-07-08" not in house.outcomes()
    assert house.beats[-1].state == "asking"
    assert len(house.events("asking")) == 1
    house.work.asks = set()
    house.run(daemon, until="2025-07-09T02:30")
    assert house.cycles() == []  # nobody has answered
    house.ledger.append("answer", "some-cycle", {"answer": "approved"})
    house.run(daemon, until="2025-07-09T03:00")
    assert house.cycles() == ["cycle-2025-07-08"]
    assert house.beats[-1].state == "waiting"


def test_what_nobody_approved_expires_with_its_slot():
    house = House("2025-07-08T12:00")
    house.work.asks = {"cycle-2025-07-08"}
    house.run(house.daemon(), until="2025-07-10T02:00")
    assert house.outcomes()["cycle-2025-07-08"] == "expired"
    assert house.cycles() == ["cycle-2025-07-09"]


def test_what_was_asked_by_a_process_that_is_gone_expires_as_well():
    house = House("2025-07-08T12:00")
    request = {"request": {"as_of": at("2025-07-08T20:00")}}
    house.ledger.append("approval", "paper-1", request)
    house.work.fails["cycle-2025-07-08"] = [EndpointError("away")] * 100
    house.run(house.daemon(), until="2025-07-10T02:00")
    assert house.outcomes()["cycle-2025-07-08"] == "expired"


def test_a_look_at_a_slow_broker_is_work_and_no_silence():
    house = House("2025-07-08T12:00")
    daemon = house.daemon()
    seen: list[Beat] = []
    house.work.watch = lambda: seen.append(daemon.beat)
    daemon.wake()
    assert seen[0].busy_since is not None
    assert daemon.beat.busy_since is None


@pytest.mark.parametrize("error", [StateError("broken"), ConfigError("wrong")])
def test_what_a_person_has_to_mend_ends_the_daemon(error):
    house = House("2025-07-08T12:00")
    house.work.fails["cycle-2025-07-08"] = [error]
    with pytest.raises(type(error)):
        house.run(house.daemon(), until="2025-07-09T02:00")


def test_a_stop_comes_between_two_jobs_and_leaves_the_second_for_the_next_start():
    house = House("2025-07-08T20:50")
    house.begun = at("2025-07-08T14:00")
    daemon = house.daemon()
    carry_out = house.work.carry_out

    def then_stop(job: Job):
        house.stopped = True
        return carry_out(job)

    house.work.carry_out = then_stop
    assert daemon.wake() is None
    assert [key for key, _ in house.work.done] == ["cycle-2025-07-08"]
    assert house.beats[-1].state == "stopped"
    house.stopped, house.work.carry_out = False, carry_out
    house.daemon().wake()
    assert [key for key, _ in house.work.done] == [
        "cycle-2025-07-08",
        "post_close-2025-07-08",
        "reflection-2025-07-08",
    ]


def test_the_beat_says_what_is_at_work_and_what_comes_next():
    house = House("2025-07-08T12:00")
    house.run(house.daemon(), until="2025-07-09T02:00")
    working = [beat for beat in house.beats if beat.state == "working"]
    assert [beat.job for beat in working] == [key for key, _ in house.work.done]
    assert all(beat.busy_since is not None for beat in working)
    last = house.beats[-1]
    assert (last.last_job, last.last_cycle) == ("reflection-2025-07-08", "cycle-2025-07-08")
    assert (last.next_job, last.next_job_at) == ("pre_market-2025-07-09", at("2025-07-09T13:00"))


# ---- simulated time


def simulated(house: House, speed: float, waits: list[float]) -> None:
    pace = SimulatedPace(house.clock.now, speed=speed, wait=waits.append)

    daemon = house.daemon(simulated=True)

    def wake():
        house.clock.now = pace.now()
        return daemon.wake()

    pace.follow(wake)


def test_the_embedded_market_walks_from_job_to_job_and_ends_with_its_bars():
    house = House("2025-07-03T17:00")
    carry_out = house.work.carry_out

    def until_the_bars_end(job: Job):
        if job.key == "cycle-2025-07-09":
            house.work.over = "the bars end"
        return carry_out(job)

    house.work.carry_out = until_the_bars_end
    waits: list[float] = []
    simulated(house, 0, waits)
    assert house.cycles() == expected("2025-07-07", "2025-07-09")
    assert [key for key, _ in house.work.done][-2:] == [
        "post_close-2025-07-09",
        "reflection-2025-07-09",
    ]
    assert dict(house.work.done)["cycle-2025-07-08"] == CALENDAR.close(date(2025, 7, 8))
    assert house.events("market_ended") == [{"reason": "the bars end"}]
    assert house.beats[-1].state == "ended"
    assert sum(waits) == 0


def test_speed_is_seconds_of_the_market_a_second():
    house = House("2025-07-07T20:00")
    house.work.over = "the bars end"
    waits: list[float] = []
    house.ledger.append("slot", "first", {"as_of": at("2025-07-07T20:00")})
    house.begun = at("2025-07-07T13:00")
    simulated(house, 900, waits)  # 45 minutes to the post-close job
    assert sum(waits) == pytest.approx(3)
    assert max(waits) <= 1  # a person is heard every second


def test_the_embedded_market_stands_still_while_a_person_is_asked():
    house = House("2025-07-07T20:00")
    house.work.asks = {"cycle-2025-07-08"}
    waits: list[float] = []
    pace = SimulatedPace(house.clock.now, speed=0, wait=waits.append)
    daemon = house.daemon(simulated=True)
    wakes = 0

    def wake():
        nonlocal wakes
        wakes += 1
        house.clock.now = pace.now()
        if len(waits) and waits[-1] > 0:
            if len([wait for wait in waits if wait]) > 5:
                house.stopped = True
            assert pace.now() == CALENDAR.close(date(2025, 7, 8))
        return daemon.wake()

    pace.follow(wake)
    assert house.cycles() == []
    assert "cycle-2025-07-08" not in house.outcomes()


# ---- real time


def test_the_brokers_clock_is_told_on_between_two_readings_whatever_this_computer_says():
    clock = Clock(at("2025-07-08T14:00"))
    readings: list[datetime] = []

    def read() -> datetime:
        readings.append(clock.now)
        return clock.now

    pace = RealPace(read, fresh_seconds=300, seconds=lambda: clock.passed)
    assert pace.now() == at("2025-07-08T14:00")
    clock.run(timedelta(seconds=299))
    assert pace.now() == at("2025-07-08T14:04:59")
    assert len(readings) == 1
    clock.run(timedelta(seconds=1))
    clock.now += timedelta(seconds=2)  # the broker's clock is right, whatever was told on
    assert pace.now() == at("2025-07-08T14:05:02")
    assert len(readings) == 2


def test_a_broker_out_of_reach_does_not_stop_the_clock():
    clock = Clock(at("2025-07-08T14:00"))
    answers = [clock.now]

    def read() -> datetime:
        if not answers:
            raise EndpointError("down")
        return answers.pop()

    pace = RealPace(read, fresh_seconds=60, seconds=lambda: clock.passed)
    pace.now()
    clock.run(timedelta(hours=3))
    assert pace.now() == at("2025-07-08T17:00")


def test_the_scheduler_wakes_at_once_for_what_is_due_and_hands_errors_on():
    moments = iter([at("2020-01-01T00:00"), at("2020-01-02T00:00"), None])
    pace = RealPace(lambda: at("2025-07-08T14:00"), fresh_seconds=60)
    assert pace.follow(lambda: next(moments)) is None
    assert next(moments, "all") == "all"

    def broken():
        raise StateError("broken")

    with pytest.raises(StateError):
        RealPace(lambda: at("2025-07-08T14:00"), fresh_seconds=60).follow(broken)
