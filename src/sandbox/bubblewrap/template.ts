/**
 * One template (template/main.py) and its children: starts the outer bubblewrap with a range of host uids mapped into its user
 * namespace, sends requests one at a time, and finds each child's process on the host. Its children end with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { INOTIFY } from '../inside.ts'
import type { Profile } from '../port.ts'
import { LAUNCH_SCRIPT } from './command.ts'
import { type FirstProcess, firstProcess, readFirstProcess, waitUntilGone } from './first-process.ts'
import type { RootPlan } from './mounts.ts'

export interface ForkRequest {
  /** First line that the child sends to the door, by which it is recognized. */
  readonly nonce: string
  /** Uid in the template's user namespace. */
  readonly uid: number
  readonly profile: Profile
  /** Writable paths with the options of their tmpfs. */
  readonly places: readonly (readonly [path: string, options: string])[]
  readonly rlimits: Readonly<Record<string, number>>
  readonly cpus: number
}

export interface Template {
  /** Forks a child, which connects to the door. Rejects if the template cannot fork or has ended. */
  fork(request: ForkRequest): Promise<FirstProcess>
  readonly process: FirstProcess
  /** Resolves when the template has ended. */
  readonly gone: Promise<void>
  /** Ends it with all its children. Idempotent. */
  end(): Promise<void>
}

export interface TemplateOptions {
  /** Command of the outer sandbox: mounts and uid, then bubblewrap with its arguments. */
  readonly command: readonly string[]
  /** Host uids from `first`, mapped to 0, 1, … inside. */
  readonly uids: { readonly first: number; readonly count: number }
  readonly filters: Readonly<Record<Profile, Buffer>>
  readonly plan: RootPlan
}

const READY_WITHIN_MS = 20_000
const ANSWER_WITHIN_MS = 10_000
const STDERR_KEPT = 4096
const LOOKS = 50

/** File descriptors of the outer bubblewrap after stdin, stdout and stderr. */
export const TEMPLATE_FDS = { info: 3, block: 4 }

/** Throws an Error with a sentence if no template can be started here. */
export async function openTemplate({ command, uids, filters, plan }: TemplateOptions): Promise<Template> {
  const child = spawn('/bin/sh', ['-c', LAUNCH_SCRIPT, 'errand', '--', ...command], {
    stdio: ['pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    detached: true,
  })
  const stderr = collectStderr(child)
  const gone = new Promise<void>((resolve) => child.once('error', () => resolve()).once('close', () => resolve()))
  child.stdin!.on('error', () => {}) // `gone` follows
  const answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()

  async function answer(withinMs: number): Promise<Record<string, unknown>> {
    const next = await Promise.race([answers.next(), sleep(withinMs, undefined, { ref: false })])
    if (!next) throw new Error('the template does not answer')
    if (next.done) {
      await gone // after it, stderr is complete
      throw new Error(stderr() || 'the template has ended')
    }
    return JSON.parse(next.value) as Record<string, unknown>
  }

  try {
    const first = await Promise.race([
      readFirstProcess(child.stdio[TEMPLATE_FDS.info] as Readable),
      sleep(READY_WITHIN_MS, undefined, { ref: false }),
    ])
    if (!first) throw new Error(stderr() || 'the template did not start')
    for (const map of ['uid_map', 'gid_map']) {
      writeFileSync(`/proc/${first.pid}/${map}`, `0 ${uids.first} ${uids.count}\n`)
    }
    ;(child.stdio[TEMPLATE_FDS.block] as Writable).on('error', () => {}).end('\n')
    const programs = Object.entries(filters).map(([profile, program]) => [profile, program.toString('base64')])
    child.stdin!.write(`${JSON.stringify({ filters: Object.fromEntries(programs), root: plan, inotify: INOTIFY })}\n`)
    const { threads, shares } = await answer(READY_WITHIN_MS)
    if (threads !== 1) throw new Error(`the template has ${threads} threads`)
    if (shares !== 0) throw new Error('the template has memory that its children would share')
    return createTemplate(child, first, gone, answer)
  } catch (error) {
    child.kill('SIGKILL')
    await gone
    throw error
  }
}

function createTemplate(
  child: ChildProcess,
  first: FirstProcess,
  gone: Promise<void>,
  answer: (withinMs: number) => Promise<Record<string, unknown>>,
): Template {
  let turn: Promise<unknown> = Promise.resolve()
  let count = 0
  let ending: Promise<void> | undefined

  /** Asks one at a time, so that a child never inherits another's request. */
  async function ask(request: ForkRequest): Promise<FirstProcess> {
    const id = ++count
    child.stdin!.write(`${JSON.stringify({ ...request, id })}\n`)
    const reply = await answer(ANSWER_WITHIN_MS)
    if (reply.id !== id || typeof reply.pid !== 'number')
      throw new Error(String(reply.error ?? 'the template is out of step'))
    for (let looks = 0; looks < LOOKS; looks++) {
      const found = childOf(first.pid, reply.pid)
      if (found) return found
      await sleep(1)
    }
    throw new Error('the forked process was not found')
  }

  async function end(): Promise<void> {
    child.kill('SIGKILL')
    child.stdin!.destroy()
    await waitUntilGone(first)
    await gone
  }

  return {
    process: first,
    gone,
    fork(request) {
      const asked = turn.then(() => ask(request))
      turn = asked.catch(() => {})
      return asked
    },
    end: () => (ending ??= end()),
  }
}

/** The child process whose pid in its parent's namespace is `inner`. The newest child is last in the list. */
function childOf(parent: number, inner: number): FirstProcess | undefined {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ')
  for (const pid of children.reverse()) {
    try {
      const numbers = /^NSpid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.split('\t')
      if (Number(numbers?.at(-2)) === inner) return firstProcess(Number(pid))
    } catch {
      // It has just ended.
    }
  }
  return undefined
}

function collectStderr(child: ChildProcess): () => string {
  let stderr = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-STDERR_KEPT)
  })
  return () => stderr.trim()
}
