"""hang_detect: what holds when, however sections nest, cross, fail and fork."""
import asyncio
import functools
import os
import threading
import unittest
import warnings

from fake_agent import WithAgent

from aimaster import _agent
from aimaster import job_monitor as jm


def run(coroutine):
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()


class SectionsTest(WithAgent):
    def told(self, *expected):
        self.assertEqual(self.agent.intervals(len(expected)), list(expected))

    def test_a_section_ends_at_the_jobs_own_interval(self):
        with jm.hang_detect(180) as status:
            self.assertTrue(status.ok())
        self.told(180.0, None)

    def test_or_at_that_of_the_monitor(self):
        monitor = jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=1800))
        with monitor.hang_detect(-1):
            pass
        monitor.reset_config(job_hang_interval=900)
        with monitor.hang_detect(60):
            monitor.reset_config(job_hang_interval=800)
        self.told(1800.0, -1.0, 1800.0, 900.0, 60.0, 800.0, 800.0)

    def test_sections_nest_and_an_exception_leaves_all_of_them(self):
        with self.assertRaises(KeyError):
            with jm.hang_detect(300):
                with jm.hang_detect(60):
                    raise KeyError("x")
        self.told(300.0, 60.0, 300.0, None)

    def test_sections_that_cross_end_where_they_began(self):
        first, second = jm.hang_detect(300), jm.hang_detect(60)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
        self.told(300.0, 60.0, None)

    def test_one_object_may_be_entered_again_while_it_is_entered(self):
        section = jm.hang_detect(60)
        with section:
            with section:
                pass
        with section:
            pass
        self.told(60.0, 60.0, 60.0, None, 60.0, None)

    def test_threads_share_the_process_and_leave_nothing_behind(self):
        barrier = threading.Barrier(8)

        def work(number):
            for i in range(20):
                with jm.hang_detect(number + 1):
                    if i == 0:
                        barrier.wait()
                    jm.report_step(i)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        jm.Monitor().send_custom_message(content="done")
        while self.agent.heard[-1][0] != "/v1/message":
            self.agent.wait_for(len(self.agent.heard) + 1)
        intervals = [(body["at_ns"], body["seconds"]) for target, body in self.agent.heard if "hang" in target]
        self.assertIsNone(max(intervals, key=lambda told: told[0])[1])

    def test_nonsense_is_a_section_without_effect(self):
        for nonsense in (0, -5, None, "soon", float("nan"), True, [1], 1e10):
            with jm.hang_detect(nonsense) as status:
                self.assertFalse(status.ok(), nonsense)
        self.assertEqual(self.agent.heard, [])

    # -- as a decorator

    def test_a_function(self):
        @jm.hang_detect(60)
        def add(a, b=1):
            """Adds."""
            self.told(60.0)
            return a + b

        self.assertEqual(add(1, b=2), 3)
        self.assertEqual((add.__name__, add.__doc__), ("add", "Adds."))
        self.told(60.0, None)

    def test_methods(self):
        class Work(object):
            @jm.hang_detect(60)
            def plain(self):
                return self

            @jm.hang_detect(60)
            @staticmethod
            def static(value):
                return value

            @classmethod
            @jm.hang_detect(60)
            def of_class(cls):
                return cls

        work = Work()
        self.assertIs(work.plain(), work)
        self.assertEqual(work.static(5), 5)
        self.assertIs(Work.of_class(), Work)
        self.told(*[60.0, None] * 3)

    def test_a_generator_is_a_section_from_its_first_item_to_its_end(self):
        @jm.hang_detect(60)
        def items():
            got = yield 1
            try:
                yield got
            except ValueError:
                yield "caught"
            return "returned"

        generator = items()
        self.assertEqual(self.agent.heard, [], "nobody has asked for an item yet")
        self.assertEqual(next(generator), 1)
        self.assertEqual(generator.send("sent"), "sent")
        self.assertEqual(generator.throw(ValueError()), "caught")
        self.told(60.0)
        with self.assertRaises(StopIteration) as stop:
            next(generator)
        self.assertEqual(stop.exception.value, "returned")
        self.told(60.0, None)

    def test_a_generator_that_is_closed_has_left_its_section(self):
        @jm.hang_detect(60)
        def items():
            while True:
                yield

        generator = items()
        next(generator)
        generator.close()
        self.told(60.0, None)

    def test_a_coroutine(self):
        @jm.hang_detect(60)
        async def work():
            await asyncio.sleep(0)
            return 5

        self.assertEqual(run(work()), 5)
        self.told(60.0, None)

    def test_coroutines_that_take_turns(self):
        @jm.hang_detect(60)
        async def one(event):
            await event.wait()

        @jm.hang_detect(30)
        async def other(event):
            event.set()
            await asyncio.sleep(0.01)

        async def both():
            event = asyncio.Event()
            await asyncio.wait([asyncio.ensure_future(one(event)), asyncio.ensure_future(other(event))])

        run(both())
        self.told(60.0, 30.0, None)

    def test_a_cancelled_coroutine_has_left_its_section(self):
        @jm.hang_detect(60)
        async def work():
            await asyncio.sleep(60)

        async def cancel():
            task = asyncio.ensure_future(work())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        run(cancel())
        self.told(60.0, None)

    def test_an_asynchronous_generator(self):
        seen = []

        @jm.hang_detect(60)
        async def items():
            try:
                got = yield 1
                seen.append(got)
                try:
                    yield 2
                except ValueError:
                    yield "caught"
                yield 3
            finally:
                seen.append("closed")

        async def use():
            generator = items()
            seen.append(await generator.__anext__())
            seen.append(await generator.asend("sent"))
            seen.append(await generator.athrow(ValueError()))
            await generator.aclose()
            async for item in items():
                seen.append(item)

        run(use())
        self.assertEqual(seen, [1, "sent", 2, "caught", "closed", 1, None, 2, 3, "closed"])
        self.told(60.0, None, 60.0, None)

    def test_an_error_in_an_asynchronous_generator_goes_through(self):
        @jm.hang_detect(60)
        async def items():
            yield 1
            raise KeyError("x")

        async def use():
            async for _ in items():
                pass

        with self.assertRaises(KeyError):
            run(use())
        self.told(60.0, None)

    def test_async_with(self):
        async def work():
            async with jm.hang_detect(60) as status:
                self.assertTrue(status.ok())

        run(work())
        self.told(60.0, None)

    def test_what_is_called_like_a_function(self):
        class Step(object):
            async def __call__(self):
                self_of_test.told(60.0)
                return 7

        self_of_test = self
        self.assertEqual(run(jm.hang_detect(60)(Step())()), 7)
        self.assertEqual(jm.hang_detect(30)(functools.partial(int, "5"))(), 5)
        self.told(60.0, None, 30.0, None)

    def test_a_decorator_that_makes_no_sense_leaves_the_function_in_peace(self):
        def work():
            return 5

        class Class(object):
            pass

        for how in ("always", "error"):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter(how)
                self.assertIs(jm.hang_detect(work), work)
                self.assertIs(jm.hang_detect(0)(work), work)
                self.assertIs(jm.hang_detect(60)(Class), Class)
                self.assertEqual(jm.hang_detect(60)(5), 5)
            self.assertEqual(len(seen), 4 if how == "always" else 0)
        self.assertEqual(self.agent.heard, [])


@unittest.skipUnless(hasattr(os, "fork"), "needs fork")
class ForkTest(WithAgent):
    def child(self, body):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this test has threads, and newer Pythons warn of a fork beside any
            pid = os.fork()
        if pid == 0:
            code = 1
            try:
                body()
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_child_leaves_the_sections_of_its_parent_alone(self):
        section = jm.hang_detect(60)
        with section:
            self.child(lambda: section.__exit__(None, None, None))
            self.assertEqual(self.agent.intervals(1), [60.0])
        self.assertEqual(self.agent.intervals(2), [60.0, None])

    def test_a_child_has_sections_of_its_own_and_the_monitor_of_its_parent(self):
        jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=900))

        def load():
            with jm.hang_detect(30):
                pass

        with jm.hang_detect(60):
            self.child(load)
        self.assertEqual(self.agent.intervals(5), [900.0, 60.0, 30.0, 900.0, 900.0])

    def test_a_lock_that_another_thread_held_at_the_fork_holds_no_child_up(self):
        from aimaster import _state

        held, let_go = threading.Event(), threading.Event()

        def hold():
            with _state.STATES.get()._lock:
                held.set()
                let_go.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()

        def report():
            assert jm.report_step(5).ok()

        _agent.WAIT_SECONDS = 0.05
        try:
            self.child(report)
            self.assertEqual(jm.report_step(6).code, "busy", "it waits for a moment and goes on")
        finally:
            let_go.set()
            thread.join()
        self.assertEqual([body["step"] for _, body in self.agent.wait_for(1)], [5])

    def test_steps_that_a_parent_has_not_told_are_not_told_by_its_child(self):
        for step in range(200):
            jm.report_step(step)

        def settle():
            from aimaster import _state
            _state._settle_at_exit()
            jm.report_checkpoint(1)

        self.child(settle)
        heard = self.agent.wait_until(lambda heard: heard[-1:] and heard[-1][0] == "/v1/checkpoint")
        self.assertNotIn(199, [body["step"] for _, body in heard])
        self.assertGreaterEqual(len(heard), 50)


if __name__ == "__main__":
    unittest.main()
