"""What each call tells the agent, and what its status says, whatever the agent does."""
import itertools
import math
import os
import socket
import subprocess
import sys
import time
import unittest

from fake_agent import WithAgent

from aimaster import _agent, _state
from aimaster import job_monitor as jm


class Tensor(object):
    """On an accelerator: whoever wants its value waits for all that was asked before."""

    is_cuda = True

    def __float__(self):
        raise AssertionError("this would have waited")

    __int__ = __repr__ = __float__


class CallsTest(WithAgent):
    def test_a_message_is_told_with_who_speaks(self):
        status = jm.Monitor().send_custom_message(content="loss is NaN \u00fc\n")
        self.assertTrue(status.ok())
        self.assertEqual(status.to_string(), "OK")
        (target, body), = self.agent.wait_for(1)
        self.assertEqual(target, "/v1/message")
        self.assertLessEqual(abs(body.pop("at_ns") - time.monotonic() * 1e9), 60e9)
        self.assertEqual(body, {"content": "loss is NaN \u00fc\n", "round": 2, "attempt": 1,
                                "instance": "dlc0123456789abc-worker-0"})

    def test_what_is_no_text_is_told_as_far_as_it_is(self):
        self.assertTrue(jm.Monitor().send_custom_message(content="file caf\udce9.txt").ok())
        self.assertTrue(jm.Monitor().send_custom_message(content=ValueError("bad")).ok())
        self.assertEqual([body["content"] for _, body in self.agent.wait_for(2)], ["file caf?.txt", "bad"])

    def test_of_a_message_of_any_length_the_beginning_is_told_at_once(self):
        self.assertTrue(jm.Monitor().send_custom_message(content="a" * 10000000).ok())
        self.assertEqual(jm.Monitor().set_retryable_errors(str(i) for i in itertools.count()).code, "invalid")
        (_, body), = self.agent.wait_for(1)
        self.assertEqual(body["content"], "a" * 16384)

    def test_errors_are_a_list_of_texts(self):
        monitor = jm.Monitor()
        self.assertTrue(monitor.set_retryable_errors(["connect timeout", "error_yyy"]).ok())
        self.assertTrue(monitor.set_retryable_errors(text for text in ("one",)).ok())
        # "\udcff" is a byte that is no text: with another sign in its place lines would match that nobody meant.
        for nonsense in ("connect timeout", ["good", 5], None, 7, ["\udcff"], ["x"] * 65):
            self.assertFalse(monitor.set_retryable_errors(nonsense).ok(), nonsense)
        self.assertEqual([body["errors"] for _, body in self.agent.wait_for(2)],
                         [["connect timeout", "error_yyy"], ["one"]])

    def test_a_refusal_says_why(self):
        self.agent.answer = (400, {"error": "the message is empty"})
        status = jm.Monitor().send_custom_message(content="")
        self.assertFalse(status.ok())
        self.assertEqual(status.to_string(), "the message is empty")

    def test_answers_of_any_kind_are_a_status(self):
        _agent.WAIT_SECONDS = 0.5
        for answer in ((200, b""), (200, b"[1]"), (500, b"\xff"), (400, {"error": 5}), None, "never"):
            self.agent.answer = answer
            status = jm.Monitor().send_custom_message(content="x")
            self.assertEqual(status.ok(), bool(answer) and answer[0] == 200, (answer, status))

    def test_an_agent_that_keeps_silent_holds_nobody_up(self):
        _agent.WAIT_SECONDS = 0.05
        self.agent.answer = "never"
        began = time.monotonic()
        status = jm.Monitor().send_custom_message(content="x")
        self.assertFalse(status.ok())
        self.assertIn("has not confirmed within 50 ms", status.to_string())
        self.assertLess(time.monotonic() - began, 5.0)

    def test_steps_and_checkpoints_do_not_wait_for_an_answer(self):
        self.agent.answer = "never"
        self.assertTrue(jm.report_step(7, loss=0.5).ok())
        self.assertTrue(jm.Monitor().report_step(8).ok())
        self.assertTrue(jm.report_checkpoint(8).ok())
        told = [(target, body["step"], body.get("loss")) for target, body in self.agent.wait_for(3)]
        self.assertEqual(told, [("/v1/step", 7, 0.5), ("/v1/step", 8, None), ("/v1/checkpoint", 8, None)])

    def test_a_loss_may_be_no_number_and_is_never_fetched_from_an_accelerator(self):
        jm.report_step(1, loss=math.nan)
        jm.report_step(2, loss=-math.inf)
        self.assertFalse(jm.report_step(3, loss=Tensor()).ok())
        self.assertFalse(jm.report_step(3, loss="low").ok())
        self.assertEqual([body["loss"] for _, body in self.agent.wait_for(2)], ["nan", "-inf"])

    def test_a_step_is_a_whole_number(self):
        for nonsense in (-1, 1.5, None, "x", True, 1 << 53, float("nan"), [1]):
            self.assertFalse(jm.report_step(nonsense).ok(), nonsense)
            self.assertFalse(jm.report_checkpoint(nonsense).ok(), nonsense)
        self.assertTrue(jm.report_step(3.0).ok())
        self.assertEqual(len(self.agent.wait_for(1)), 1)

    def test_a_step_is_never_fetched_from_an_accelerator(self):
        for call in (jm.report_step, jm.report_checkpoint):
            status = call(Tensor())
            self.assertEqual(status.code, "invalid")
            self.assertIn("step.item()", status.to_string())

    def test_of_very_many_steps_some_are_told_and_the_last_one_before_the_exit(self):
        code = ("from aimaster import job_monitor as jm\n"
                "for step in range(5000): jm.report_step(step)\n")
        subprocess.check_call([sys.executable, "-c", code])
        heard = self.agent.wait_until(lambda heard: heard and heard[-1][1]["step"] == 4999)
        steps = [body["step"] for _, body in heard]
        self.assertEqual(steps[0], 0)
        self.assertEqual(steps, sorted(steps))
        self.assertLess(len(steps), 5000)

    def test_a_program_that_ends_right_after_a_call_has_told_it(self):
        code = ("import os\nfrom aimaster import job_monitor as jm\n"
                "jm.report_step(7); jm.report_checkpoint(7); os._exit(1)")
        subprocess.call([sys.executable, "-c", code])
        self.assertEqual([target for target, _ in self.agent.wait_for(2)], ["/v1/step", "/v1/checkpoint"])

    def test_the_configuration_of_a_monitor_sets_the_interval(self):
        for config in (jm.PyTorchConfig, jm.TFConfig, jm.MPIConfig, jm.ElasticBatchConfig):
            monitor = jm.Monitor(config=config(job_hang_interval=1800))
            self.assertTrue(monitor.status.ok())
        self.assertTrue(jm.Monitor(config=jm.PyTorchConfig()).status.ok())
        self.assertTrue(monitor.reset_config(job_hang_interval=10).ok())
        self.assertTrue(monitor.reset_config({"job_hang_interval": -1}).ok())
        self.assertTrue(monitor.reset_config(jm.TFConfig(job_hang_interval=2.5)).ok())
        self.assertTrue(monitor.reset_config(job_hang_interval=None).ok())
        self.assertEqual(self.agent.intervals(8), [1800.0] * 4 + [10.0, -1.0, 2.5, None])

    def test_what_a_running_job_can_not_change_is_named(self):
        monitor = jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=5, enable_job_restart=True))
        self.assertFalse(monitor.status.ok())
        self.assertIn("enable_job_restart", monitor.status.to_string())
        self.assertEqual(self.agent.intervals(1), [5.0])
        for nonsense in (0, -2, "soon", float("nan"), True, 1e10, [5]):
            self.assertFalse(monitor.reset_config(job_hang_interval=nonsense).ok(), nonsense)
        self.assertFalse(monitor.reset_config(5).ok())
        self.assertEqual(len(self.agent.wait_for(1)), 1)


class NoAgentTest(WithAgent):
    def every_call(self):
        monitor = jm.Monitor(config=jm.PyTorchConfig(job_hang_interval=1800))
        yield monitor.status
        yield monitor.send_custom_message(content="x")
        yield monitor.set_retryable_errors(["x"])
        yield monitor.reset_config(job_hang_interval=10)
        yield monitor.report_step(1, loss=0.5)
        yield monitor.report_checkpoint(1)
        with monitor.hang_detect(180) as status:
            yield status

    def test_outside_a_job_every_call_says_so(self):
        del os.environ["AIMASTER_SOCKET"]
        for status in self.every_call():
            self.assertFalse(status.ok())
            self.assertIn("AIMASTER_SOCKET is not set", status.to_string())

    def test_without_an_agent_every_call_says_so_and_the_newest_is_told_when_one_is_back(self):
        self.without_agent()
        for status in self.every_call():
            self.assertEqual(status.code, "no_agent")
            self.assertIn(self.socket, status.to_string())
        from fake_agent import FakeAgent
        self.agent = FakeAgent(self.socket)
        told = dict(self.agent.wait_for(3))
        self.assertEqual(told["/v1/hang_interval"]["seconds"], 10.0, "the section has ended")
        self.assertEqual((told["/v1/step"]["step"], told["/v1/checkpoint"]["step"]), (1, 1))
        self.assertNotIn("/v1/message", told, "its caller knows that it was not told")

    def test_a_full_backlog_is_no_reason_to_wait(self):
        self.without_agent()
        asleep = socket.socket(socket.AF_UNIX)
        asleep.bind(self.socket)
        asleep.listen(1)
        began = time.monotonic()
        codes = [jm.report_step(step).code for step in range(20)]
        self.assertEqual(codes[0], "ok")
        self.assertEqual(codes[-1], "busy")
        self.assertLess(time.monotonic() - began, 5.0)
        asleep.close()

    def test_a_strange_socket_is_a_status_too(self):
        self.without_agent()
        for path in ("/", "x" * 200, self.folder, "\0"):
            try:
                os.environ["AIMASTER_SOCKET"] = path
            except ValueError:
                continue
            _state.STATES._states.clear()  # the environment is read once
            for status in self.every_call():
                self.assertFalse(status.ok(), path)

    def test_without_descriptors_a_call_is_a_status_too(self):
        code = ("import resource\nfrom aimaster import job_monitor as jm\n"
                "resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n"
                "status = jm.Monitor().send_custom_message(content='x')\n"
                "assert not status.ok() and 'Too many open files' in status.to_string(), status\n")
        subprocess.check_call([sys.executable, "-c", code])


if __name__ == "__main__":
    unittest.main()
