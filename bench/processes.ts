/** The processes that a bench starts and measures: each side is a process with all that it starts itself. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { openSync, readdirSync, readFileSync } from 'node:fs'

/** `getconf CLK_TCK` on every Linux that Node runs on. */
const MS_A_TICK = 10

const launched = new Set<ChildProcess>()
/** Ends all child processes when the benchmark is interrupted. */
process.once('exit', () => {
  for (const child of launched) child.kill('SIGTERM')
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

/** Runs it with what it prints on stderr shown here (a side that fails says why), or written to the file `log`. */
export function launch(
  command: string,
  args: readonly string[],
  { env = {}, cwd, log }: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string; readonly log?: string } = {},
): ChildProcess {
  const { PATH, HOME, LANG, TMPDIR, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE } = process.env
  const child = spawn(command, args, {
    env: {
      ...{ PATH, HOME, LANG, TMPDIR, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE },
      NO_COLOR: '1',
      NODE_ENV: 'production',
      ...env,
    },
    cwd,
    stdio: ['ignore', 'pipe', log === undefined ? 'inherit' : openSync(log, 'a')],
  })
  launched.add(child)
  child.once('exit', () => launched.delete(child))
  return child
}

/** Text that the pattern's group matches in the output. Later output is read and dropped. */
export async function said(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  let text = ''
  const { promise, resolve, reject } = Promise.withResolvers<RegExpExecArray>()
  child.stdout!.setEncoding('utf8').on('data', (more: string) => {
    if (text === '' || text.length < 100_000) text += more
    const found = pattern.exec(text)
    if (found) resolve(found)
  })
  child.once('error', reject)
  child.once('exit', () => reject(new Error(`It ended before it was ready: ${text}`)))
  return promise
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill()
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await gone
  clearTimeout(late)
}

/** A process and all that descend from it. */
export function family(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const parent = Number(stat(Number(name))?.[1] ?? 0)
    children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const found: number[] = []
  for (const open = [pid]; open.length > 0; ) {
    const next = open.pop()!
    found.push(next)
    open.push(...(children.get(next) ?? []))
  }
  return found
}

/** Processor time of a side so far, milliseconds: its processes', all their threads', and of those that ended and were waited for. */
export function processorMs(pid: number): number {
  const ticks = family(pid).flatMap((member) => stat(member)?.slice(11, 15).map(Number) ?? [])
  return ticks.reduce((sum, more) => sum + more, 0) * MS_A_TICK
}

/** Memory of all processes of a side, bytes: the sum of their PSS, in which a page that n processes share counts 1/n in each. */
export function memoryBytes(pid: number): number {
  return family(pid).reduce((sum, member) => sum + proportionalKib(member), 0) * 1024
}

/** 0 where the process is gone. */
function proportionalKib(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0)
  } catch {
    return 0
  }
}

/** The fields behind the name, from its state on; undefined where the process is gone. */
function stat(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
  } catch {
    return undefined
  }
}
