#!/usr/bin/env python3
"""Multi-worker training on the CPU: every worker holds the model, and gradients are summed over all of them.

When one worker dies the others can't go on, so the whole job restarts, from the last checkpoint, and ends where an
undisturbed run ends:

    aimaster run --framework tensorflow --workers 3 --enable-job-restart=True -- \\
        python3 multi_worker.py --checkpoint-dir /tmp/run
"""
import argparse
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import common
import tensorflow as tf


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    common.add_arguments(parser)
    arguments = parser.parse_args()
    os.makedirs(arguments.checkpoint_dir, exist_ok=True)

    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation.RING))
    resolver = strategy.cluster_resolver
    task = f"{resolver.task_type}:{resolver.task_id}"
    cluster = resolver.cluster_spec().as_dict()
    has_chief = "chief" in cluster
    workers = len(cluster.get("chief", [])) + len(cluster["worker"])
    worker = resolver.task_id + (has_chief and resolver.task_type == "worker")
    is_chief = worker == 0
    common.say(f"{task} is up: {workers} workers, restart {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}")

    images, labels = common.load_images(arguments.data, "train", arguments.limit)
    step, weights, bias = common.load_checkpoint(arguments.checkpoint_dir)
    with strategy.scope():
        model = tf.Variable(weights), tf.Variable(bias)
    if is_chief:
        common.say(f"resumed at step {step}" if step > 0 else "started at step 0")

    def on_one_worker(inputs, targets):
        with tf.GradientTape() as tape:
            logits = tf.matmul(inputs, model[0]) + model[1]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
            loss = tf.reduce_mean(losses)
        replicas = tf.distribute.get_replica_context()
        gradients = replicas.all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, model))
        for variable, gradient in zip(model, gradients):
            variable.assign_sub(arguments.learning_rate * gradient)
        return loss

    @tf.function
    def train_step(inputs, targets):
        return strategy.run(on_one_worker, args=(inputs, targets))

    while step < arguments.steps:
        common.die_once(arguments, task, step)
        inputs, targets = common.batch_of(step, worker, workers, arguments.batch_size, arguments.seed, images, labels)
        loss = train_step(tf.constant(inputs), tf.constant(targets))
        step += 1
        if is_chief and step % 10 == 0:
            common.say(f"step {step}/{arguments.steps} loss={float(loss):.4f}")
        if is_chief and (step % arguments.checkpoint_every == 0 or step == arguments.steps):
            common.save_checkpoint(arguments.checkpoint_dir, step, model[0].numpy(), model[1].numpy())

    if is_chief:
        test = common.load_images(arguments.data, "t10k", 1000)
        loss, accuracy = common.loss_and_accuracy(model[0].numpy(), model[1].numpy(), *test)
        common.say(f"final step={step} loss={loss:.6f} accuracy={accuracy:.4f}")
    common.say(f"{task} is done")


if __name__ == "__main__":
    sys.exit(main())
