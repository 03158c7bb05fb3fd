"""One worker of run.js: TensorFlow, gradients averaged by MultiWorkerMirroredStrategy. TF_CONFIG names the cluster."""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

STEPS = int(sys.argv[1])
BATCH = 128
SIZES = [784, 1024, 1024, 10]

strategy = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
)
rank = strategy.cluster_resolver.task_id

random = np.random.default_rng(0)
with strategy.scope():
    variables = []
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        initial = random.uniform(-0.03, 0.03, (inputs, outputs)).astype(np.float32)
        variables.append(tf.Variable(initial))
        variables.append(tf.Variable(tf.zeros([outputs])))

x = tf.constant((((np.arange(BATCH * 784) * 7919 + rank) % 1000) / 1000).astype(np.float32).reshape(BATCH, 784))
y = tf.one_hot(np.arange(BATCH) % 10, 10)


def replica_step():
    with tf.GradientTape() as tape:
        out = x
        for i in range(0, len(variables), 2):
            out = tf.matmul(out, variables[i]) + variables[i + 1]
            if i + 2 < len(variables):
                out = tf.nn.relu(out)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=out))
    gradients = tape.gradient(loss, variables)
    gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
    for variable, gradient in zip(variables, gradients):
        variable.assign_sub(0.05 * gradient)
    return loss


@tf.function
def train_step():
    return strategy.run(replica_step)


seconds = []
for step in range(-10, STEPS):
    begin = time.perf_counter()
    loss = float(strategy.experimental_local_results(train_step())[0])
    if step >= 0:
        seconds.append(time.perf_counter() - begin)
print(json.dumps({"rank": rank, "seconds": seconds, "loss": loss}), flush=True)
# The cluster's threads abort the process when Python ends it in its own way.
os._exit(0)
