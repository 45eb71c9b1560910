/** The first process of a cell, by the host's number: its end is everybody's in the cell. */
import { readFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export interface FirstProcess {
  readonly pid: number
  readonly started: string
}

/** Undefined where it is gone. */
export function firstProcess(pid: number): FirstProcess | undefined {
  const started = startTime(pid)
  return started === undefined ? undefined : { pid, started }
}

/** bubblewrap tells the host's number of the cell's PID 1. Undefined when it came to no process. */
export async function readFirstProcess(info: Readable): Promise<FirstProcess | undefined> {
  let text = ''
  try {
    for await (const piece of info.setEncoding('utf8')) {
      text += piece
      if (text.includes('}')) break // the cell inherits the other end: it closes with the cell
    }
    return firstProcess((JSON.parse(text) as { 'child-pid': number })['child-pid'])
  } catch {
    return undefined
  }
}

/**
 * Ticks at which the process began: tells it from a later one of the same number. Undefined when it is gone or a zombie:
 * orphaned by the end of bubblewrap, it may wait long for the machine's init to reap it.
 */
function startTime(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

/** The kernel lets the first process of a pid namespace go only after every other one in it: its end is everybody's. */
export async function waitUntilGone({ pid, started }: FirstProcess): Promise<void> {
  for (let waited = 0; startTime(pid) === started; waited++) {
    if (waited > 2000) throw new Error(`Process ${pid}, the first of a sandbox, could not be killed in 10 s.`)
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      return
    }
    await sleep(waited < 50 ? 1 : 5)
  }
}
