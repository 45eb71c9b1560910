/**
 * Loaded into a server (`node --import`): writes how much processor time the event loop took in one turn, in milliseconds,
 * one line each, to the file that TURNS_FILE names. Processor time of this thread alone: what else the machine does, and
 * how fast its clock runs meanwhile, does not count. A timer that is due at each turn looks at it.
 */
import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const file = process.env.TURNS_FILE
/** Shorter turns are of no interest. */
const LEAST_MS = 10

function processorTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

if (isMainThread && file !== undefined) {
  let before = processorTime()
  setInterval(() => {
    const ms = processorTime() - before
    if (ms > LEAST_MS) appendFileSync(file, `${ms.toFixed(1)}\n`)
    before = processorTime()
  }, 1).unref()
}
