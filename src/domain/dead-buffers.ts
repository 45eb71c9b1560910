/**
 * What a file passes through are short-lived buffers outside of V8's heap, of which V8 lets 64 MiB lie before it looks. Whoever
 * passes bytes on says so, and every few MiB the young ones are looked through, which takes a millisecond.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const LOOK_EVERY_BYTES = 8 * 1024 * 1024

let collect: ((options: { type: 'minor' }) => void) | undefined
let passed = 0

export function passedOn(bytes: number): void {
  passed += bytes
  if (passed < LOOK_EVERY_BYTES) return
  passed = 0
  collect ??= exposed()
  collect({ type: 'minor' })
}

function exposed(): NonNullable<typeof collect> {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
