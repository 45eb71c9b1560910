/**
 * A runner that hostile code controls, as a plain process connected to the host: after any invalid reply the request ends, the
 * sandbox is gone, and the host has kept little of the reply and goes on.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Connection, openConnection } from '../../src/sandbox/connection.ts'
import type { Cell, Driver } from '../../src/sandbox/driver.ts'
import { type Host, openHost } from '../../src/sandbox/host/host.ts'
import { openServer } from '../../src/sandbox/host/server.ts'
import { createRemoteSandbox } from '../../src/sandbox/remote-sandbox.ts'
import { LIMITS, never, quiet } from './fixture.ts'

const RUNNER = new URL('./hostile_runner.py', import.meta.url).pathname
const HOUR_MS = 3_600_000
const SETTINGS = { limits: LIMITS, pool: 0, maxOpen: 8, waitMs: 1000, graceMs: HOUR_MS }

/** Runs the runner as a plain process: these tests are not about isolation. */
function launch(): Cell {
  const child = spawn('python3', ['-S', RUNNER], { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => {})
  const exited = new Promise<string>((resolve) => child.once('exit', () => resolve('')))
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    exited,
    counters: () => ({ memoryKills: 0, forksRefused: 0, periods: 0, throttled: 0 }),
    async end() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

const driver: Driver = {
  name: 'plain process',
  selfTestExceptions: [],
  launch: async () => launch(),
  sweep: async () => {},
  describeLimits: () => ({ enforced: [], notEnforced: [] }),
  close: async () => {},
}

const directory = mkdtempSync(join(tmpdir(), 'errand-test-'))
let host: Host
let server: Server
let connection: Connection
beforeAll(async () => {
  host = openHost(driver, SETTINGS, quiet)
  const socketPath = join(directory, 'host.sock')
  const facts = { driver: '', enforced: [], notEnforced: [], probes: [], inside: '', browser: undefined }
  server = await openServer(host, { socketPath, fingerprint: '', facts, settings: SETTINGS, onDone() {} })
  connection = await openConnection(socketPath)
})
afterAll(async () => {
  connection?.close()
  server?.close()
  await host?.close()
  rmSync(directory, { recursive: true })
})

let count = 0

async function open() {
  const interactionId = `int_${++count}`
  await connection.start({ op: 'open', spec: { interactionId, epoch: 1, lifetimeMs: HOUR_MS, limits: LIMITS } }).done
  return createRemoteSandbox(connection, { sandbox: interactionId, name: 'main', epoch: 1 }, true)
}

const step = (code: string) => ({ key: 'step', language: 'python', code, timeoutMs: HOUR_MS }) as const

describe('a step ends as lost, long before its deadline, when the runner sends', () => {
  test.each([
    'done without an end',
    'done with an end of its own',
    'done with hits of its own',
    'done with a file of its own',
    'no object',
    'no JSON',
    'a frame of 60 MB',
    'output for ever',
    'empty output for ever',
    'live output for ever',
    'a chunk without a read',
    'an error of its own',
  ])('%s', async (breach) => {
    const sandbox = await open()
    let heard = 0
    const { output, end } = await sandbox.exec(step(breach), (text) => (heard += text.length), never)
    expect(end).toEqual({ kind: 'lost' })
    expect(output.length).toBeLessThanOrEqual(LIMITS.outputBytes + 1024)
    expect(heard).toBeLessThanOrEqual(5 * LIMITS.outputBytes + 4 * 1024 * 1024)
    expect(connection.alive()).toBe(true)
    await sandbox.destroy()
  })
})

describe('a request for a job ends as lost when the runner sends', () => {
  test.each([
    'done without an end',
    'done with a job of another name',
    'done with a range that ends before it starts',
    'done with a job without a file',
    'done with a refusal of its own',
    'no JSON',
    'output for ever',
    'live output for ever',
    'a chunk without a read',
    'an error of its own',
  ])('%s', async (breach) => {
    const sandbox = await open()
    const begin = { key: 'job', job: 'job', start: { language: 'bash', code: breach }, waitMs: HOUR_MS } as const
    await expect(sandbox.job(begin, never)).rejects.toMatchObject({ name: 'SandboxError', code: 'lost' })
    expect(connection.alive()).toBe(true)
    await sandbox.destroy()
  })

  test('a thousand jobs', async () => {
    const sandbox = await open()
    await expect(sandbox.jobs()).rejects.toMatchObject({ name: 'SandboxError', code: 'lost' })
    await sandbox.destroy()
  })
})

test('an endless list, file and listener are ended at their limits', async () => {
  const lost = { name: 'SandboxError', code: 'lost' }
  const [list, file, listener] = [await open(), await open(), await open()]
  await expect(list.list('.', { recursive: true, maxEntries: 10 })).rejects.toMatchObject(lost)
  await expect(file.readFile('x', 1024 * 1024 * 1024)).rejects.toMatchObject(lost)
  let connections = 0
  const gone = Promise.withResolvers<void>()
  await listener.listen(1, (stream) => {
    connections++
    stream.once('error', () => gone.resolve())
  })
  await gone.promise
  expect(connections).toBeLessThanOrEqual(512)
  expect(connection.alive()).toBe(true)
  await Promise.all([list, file, listener].map((sandbox) => sandbox.destroy()))
})
