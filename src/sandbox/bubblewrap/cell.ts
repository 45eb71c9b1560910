/** A cell that was started whole: bubblewrap's own process, its stdio and its end. */
import type { ChildProcess } from 'node:child_process'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Group, NOTHING_COUNTED } from '../cgroups.ts'
import type { Cell } from '../driver.ts'
import { explainRefusal } from './causes.ts'
import { readFirstProcess, waitUntilGone } from './first-process.ts'

const STDERR_KEPT = 4096

export function createCell(child: ChildProcess, group: Group | undefined, onGone: () => void): Cell {
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT)
  })
  child.stdin!.on('error', () => {}) // The process has ended; `exited` reports it.
  const first = readFirstProcess(child.stdio[4] as Readable)
  const exited = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', () => resolve(explainRefusal(stderr.trim())))
  })
  let ending: Promise<void> | undefined
  async function end(): Promise<void> {
    child.kill('SIGKILL')
    child.stdin!.destroy()
    await Promise.race([exited, sleep(1000)])
    const pid = await Promise.race([first, sleep(1000, undefined)])
    if (pid) await waitUntilGone(pid)
    await group?.remove()
    onGone()
  }
  return {
    stdin: child.stdin!,
    stdout: child.stdout!,
    exited,
    counters: () => group?.counters() ?? NOTHING_COUNTED,
    end: () => (ending ??= end()),
  }
}
