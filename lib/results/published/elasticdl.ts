// ElasticDL's all-reduce on CPUs: seconds of a task of 50 batches of 64 CIFAR-10 images, and its communication.

export interface PublishedTask {
  readonly workers: number;
  readonly taskSeconds: number;
  /** All batches of the task, including communication. */
  readonly batchSeconds: number;
  readonly exchangeSeconds: number;
}

export interface PublishedTasks {
  readonly source: string;
  readonly machine: string;
  readonly models: readonly { readonly name: string; readonly tasks: readonly PublishedTask[] }[];
}

export const elasticdl: PublishedTasks = {
  source:
    'sql-machine-learning/elasticdl at 0cbc361 (January 2024), docs/benchmark/ftlib_benchmark.md',
  machine: 'Minikube, workers of 0.3 cores',
  models: [
    {
      name: 'ResNet50',
      tasks: [
        { workers: 1, taskSeconds: 1033.2, batchSeconds: 1032.73, exchangeSeconds: 0.000983 },
        { workers: 2, taskSeconds: 1131.8, batchSeconds: 1127.86, exchangeSeconds: 101.069 },
      ],
    },
    {
      name: 'MobileNetV2',
      tasks: [
        { workers: 1, taskSeconds: 110.909, batchSeconds: 110.655, exchangeSeconds: 0.000884056 },
        { workers: 2, taskSeconds: 143.789, batchSeconds: 143.148, exchangeSeconds: 33.6484 },
        { workers: 3, taskSeconds: 167.943, batchSeconds: 167.395, exchangeSeconds: 60.0891 },
      ],
    },
  ],
};
