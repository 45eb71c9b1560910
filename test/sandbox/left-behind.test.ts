/**
 * Kills everything at once, at an arbitrary moment, with sandboxes open, warm and starting: after the next start no process,
 * control group, mount or scratch directory is left, and new sandboxes work.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openSandboxes } from '../../src/sandbox/open-sandboxes.ts'
import { figure, rounds, seeded } from '../support/prove.ts'
import { cgroupsOf, DRIVER, hostPid, LIMITS, never, processesWith, quiet, run, scratchOf, until } from './fixture.ts'

const ROUNDS = rounds(20, 1)

const OPTIONS = { ...DRIVER, limits: LIMITS, pool: 2, maxOpen: 20, log: quiet }

/** A server: opens six sandboxes of three interactions, each with a daemon, then more until it is killed. */
const server = (dataDir: string, mark: string) => `
import { openSandboxes } from ${JSON.stringify(join(import.meta.dirname, '../../src/sandbox/open-sandboxes.ts'))}
const limits = ${JSON.stringify(LIMITS)}, signal = new AbortController().signal
const log = { debug() {}, info() {}, warn() {}, error() {} }
const sandboxes = await openSandboxes({ ...${JSON.stringify(OPTIONS)}, dataDir: ${JSON.stringify(dataDir)}, log })
const open = async (interactionId, name) => {
  const sandbox = await sandboxes.open({ interactionId, name, epoch: 1, lifetimeMs: 600000, limits }, signal)
  await sandbox.exec({ key: '1', language: 'bash', code: '(setsid sleep ${mark} &); (trap "" TERM HUP; sleep ${mark} &)', timeoutMs: 60000 }, () => {}, signal)
  sandbox.spawn({ argv: ['sleep', '${mark}'], pipes: 'stdio' }).stream.on('error', () => {})
}
for (const id of ['a', 'b', 'c']) await Promise.all([open(id, 'main'), open(id, 'mcp-files')])
console.log('ready')
for (let i = 0; ; i++) {
  await Promise.all([open('more' + i, 'main'), open('more' + i, 'browser')])
  await sandboxes.destroy('more' + i)
}`

test('kill -9 of server and host leaves nothing behind after the next start', {
  timeout: ROUNDS * 60_000,
}, async () => {
  const random = seeded('R12')
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-test-'))
  for (let round = 0; round < ROUNDS; round++) {
    const mark = `${8000 + round}.${process.pid}`
    const child = spawn(process.execPath, ['--input-type=module', '-e', server(dataDir, mark)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await new Promise((resolve) => child.stdout.once('data', resolve))
    await until(() => processesWith(mark).length > 18) // three a sandbox, and the server itself
    await sleep(random.whole(0, 400))
    const killed = hostPid(dataDir)
    process.kill(killed, 'SIGKILL')
    child.kill('SIGKILL')

    const sandboxes = await openSandboxes({ ...OPTIONS, dataDir })
    expect(hostPid(dataDir)).not.toBe(killed)
    await until(() => processesWith(mark).length === 0)
    expect(await sandboxes.living()).toEqual([])
    const fresh = await sandboxes.open({ interactionId: 'a', epoch: 1, lifetimeMs: 60_000, limits: LIMITS }, never)
    expect((await run(fresh, 'bash', 'ls')).output).toBe('outputs\n')
    await fresh.destroy()
    await sandboxes.close()
    expect(cgroupsOf(dataDir) ?? []).toEqual([])
    const scratch = scratchOf(dataDir)
    expect(existsSync(scratch)).toBe(false)
    expect(mountsBelow(scratch)).toEqual([])
  }
  figure('R12', `kill -9 of server and host on ${DRIVER.driver}, each with nothing left behind`, ROUNDS)
  rmSync(dataDir, { recursive: true })
})

/** Mounts in every visible mount namespace of this machine. */
function mountsBelow(directory: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n')
      } catch {
        return []
      }
    })
    .filter((line) => line.includes(` ${directory}/`) || line.includes(basename(directory)))
}
