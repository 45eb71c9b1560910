/**
 * Loaded into a server by `node --import`. Appends the CPU time of each turn of the event loop, in milliseconds, to the file
 * that TURNS_FILE names. Measures the CPU time of this thread only, so the load of the machine does not matter.
 */
import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const file = process.env.TURNS_FILE
/** Shorter turns are not written. */
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
