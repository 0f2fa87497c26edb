import { parentPort, Worker } from 'node:worker_threads'

/** What a thread can be asked: one plain value in, one out. */
type Tasks = Record<string, (input: never) => unknown>

interface Question {
  id: number
  task: string
  input: unknown
}

type Answer = { id: number; value: unknown } | { id: number; error: unknown; code: unknown }

interface Waiting {
  resolve: (value: never) => void
  reject: (error: unknown) => void
}

/** A thread of its own for what would hold up everybody else; it answers in the order it was asked. */
export class WorkerRpc<Known extends Tasks> {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #asked = 0
  #failure: unknown

  constructor(script: URL, workerData: unknown) {
    this.#worker = new Worker(script, { workerData })
    this.#worker.on('message', (answer: Answer) => this.#settle(answer))
    this.#worker.on('error', (error) => this.#fail(error))
    this.#worker.on('exit', () => this.#fail(new Error('a thread of the catalog has ended')))
  }

  ask<Task extends keyof Known & string>(
    task: Task,
    input: Parameters<Known[Task]>[0],
  ): Promise<ReturnType<Known[Task]>> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#asked += 1
    const question: Question = { id: this.#asked, task, input }
    const { promise, resolve, reject } = Promise.withResolvers<ReturnType<Known[Task]>>()
    this.#waiting.set(question.id, { resolve, reject })
    this.#worker.postMessage(question)
    return promise
  }

  /** Questions that are not answered yet. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Does nothing while the thread is alive. @throws what ended it. */
  check(): void {
    if (this.#failure) throw this.#failure
  }

  /** Ends the thread after what it was asked. */
  async close(): Promise<void> {
    if (this.#failure) return
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.postMessage(undefined)
    await ended
  }

  #settle(answer: Answer) {
    const waiting = this.#waiting.get(answer.id)
    this.#waiting.delete(answer.id)
    if ('value' in answer) {
      waiting?.resolve(answer.value as never) // The thread answered the task that was asked.
      return
    }
    // A copy between threads keeps an error's text and stack, not its code.
    const error = answer.error instanceof Error ? answer.error : new Error(String(answer.error))
    waiting?.reject(Object.assign(error, { code: answer.code }))
  }

  #fail(error: unknown) {
    this.#failure ??= error
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}

/** The other side, in the thread: answers each question by its task, and closes when it is told to. */
export function serveCalls(tasks: Tasks, close: () => void): void {
  const port = parentPort
  if (!port) throw new Error('this file is the inside of a thread')
  port.on('message', (question: Question | undefined) => {
    if (!question) {
      close()
      port.close()
      return
    }
    const { id, task, input } = question
    try {
      port.postMessage({ id, value: tasks[task]?.(input as never) } satisfies Answer) // As it was typed by `ask`.
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      port.postMessage({ id, error, code } satisfies Answer)
    }
  })
}
