import { workerData } from 'node:worker_threads'
import { type Change, Changes } from './changes.ts'
import { openDatabase } from './database.ts'
import { answerQuestions } from './thread.ts'

// The one thread that changes the catalog: it waits for the disk, and nobody else has to.

const db = openDatabase(String(workerData))
const changes = new Changes(db)

const tasks = {
  ready: (_input: null) => Number(db.pragma('synchronous', { simple: true })),
  commit: (input: Change[]) => changes.commit(input),
}

export type WriterTasks = typeof tasks

answerQuestions(tasks, () => db.close())
