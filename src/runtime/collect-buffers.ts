/**
 * Bounds the memory of short-lived buffers. File transfers allocate buffers outside V8's heap, and V8 lets 64 MiB of dead
 * ones accumulate before it collects. Code that transfers bytes reports them here, and every 8 MiB a minor collection
 * runs. It takes about a millisecond.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const COLLECT_EVERY_BYTES = 8 * 1024 * 1024

let collect: ((options: { type: 'minor' }) => void) | undefined
let transferred = 0

export function noteTransferred(bytes: number): void {
  transferred += bytes
  if (transferred < COLLECT_EVERY_BYTES) return
  transferred = 0
  collect ??= exposeCollector()
  collect({ type: 'minor' })
}

function exposeCollector(): NonNullable<typeof collect> {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
