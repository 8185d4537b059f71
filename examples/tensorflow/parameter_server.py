#!/usr/bin/env python3
"""Training with parameter servers on the CPU: a chief hands out steps, workers compute them, servers hold the model.

Workers know nothing of each other. In an Async job a worker that dies is started again alone, on the address that the
others know, and the chief gives its steps to somebody else in between:

    aimaster run --framework tensorflow --chief 1 --workers 2 --ps 1 --job-execution-mode=Async -- \\
        python3 parameter_server.py --checkpoint-dir /tmp/run

Workers and servers serve for ever: the job is done when its chief is.
"""
import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import common
import tensorflow as tf


def serve(resolver):
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id,
                                  protocol="grpc", start=True)
    common.say(f"{resolver.task_type}:{resolver.task_id} serves at {server.target}")
    server.join()


def coordinate(resolver, arguments):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    workers = len(resolver.cluster_spec().as_dict()["worker"])
    images, labels = common.load_images(arguments.data, "train", arguments.limit)
    step, weights, bias = common.load_checkpoint(arguments.checkpoint_dir)
    with strategy.scope():
        model = tf.Variable(weights), tf.Variable(bias)
    common.say(f"resumed at step {step}" if step > 0 else "started at step 0")

    @tf.function
    def on_one_worker(inputs, targets):
        with tf.GradientTape() as tape:
            logits = tf.matmul(inputs, model[0]) + model[1]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
            loss = tf.reduce_mean(losses)
        for variable, gradient in zip(model, tape.gradient(loss, model)):
            variable.assign_sub(arguments.learning_rate * gradient)
        return loss

    while step < arguments.steps:
        common.die_once(arguments, "chief:0", step)
        losses = []
        for worker in range(workers):
            batch = common.batch_of(step, worker, workers, arguments.batch_size, arguments.seed, images, labels)
            losses.append(coordinator.schedule(on_one_worker, args=tuple(tf.constant(part) for part in batch)))
        coordinator.join()
        step += 1
        if arguments.step_seconds > 0:
            time.sleep(arguments.step_seconds)
        if step % 10 == 0:
            common.say(f"step {step}/{arguments.steps} loss={float(losses[0].fetch()):.4f}")
        if step % arguments.checkpoint_every == 0 or step == arguments.steps:
            common.save_checkpoint(arguments.checkpoint_dir, step, model[0].numpy(), model[1].numpy())

    test = common.load_images(arguments.data, "t10k", 1000)
    loss, accuracy = common.loss_and_accuracy(model[0].numpy(), model[1].numpy(), *test)
    common.say(f"final step={step} loss={loss:.4f} accuracy={accuracy:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common.add_arguments(parser)
    parser.add_argument("--step-seconds", type=float, default=0, help="rest so long after each step")
    arguments = parser.parse_args()
    os.makedirs(arguments.checkpoint_dir, exist_ok=True)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        coordinate(resolver, arguments)
    else:
        serve(resolver)


if __name__ == "__main__":
    sys.exit(main())
