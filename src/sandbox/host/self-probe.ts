/**
 * The self-test of a driver before it is used: a script of attacks (probe/) runs in a real sandbox, against canaries that the
 * host and a second sandbox have opened. An attack that is not refused keeps the driver from being used.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import type { CellShape, Driver } from '../driver.ts'
import { MASKED_PROC, NODE_INSIDE, RUNNER_INSIDE, TERMINALS } from '../inside.ts'
import type { SandboxFacts, SandboxLimits } from '../port.ts'
import { bundlePython } from '../python-bundle.ts'
import { createRunner } from './runner.ts'
import { createSteps } from './steps.ts'

const TIMEOUT_MS = 15_000

interface Findings {
  readonly attacks: { name: string; refused: boolean; detail: string }[]
  readonly inside: string
  readonly browser: string | null
}

/**
 * Throws an Error with a sentence for the operator that names the attacks. `secrets`: paths of the host that must not be
 * visible inside. `browsers`: whether to attack from a browser's cell too.
 */
export async function probeDriver(
  driver: Driver,
  limits: SandboxLimits,
  secrets: readonly string[],
  browsers = true,
): Promise<SandboxFacts> {
  const abstract = `errand-canary-${randomBytes(8).toString('hex')}`
  const canaries = await Promise.all([listen({ host: '127.0.0.1', port: 0 }), listen({ path: `\0${abstract}` })])
  try {
    const { port } = canaries[0]!.address() as AddressInfo
    const targets = { port, abstract, secrets, files: limits.files, terminals: TERMINALS, counters: MASKED_PROC.files }
    const { attacks, inside, browser } = await attack(driver, { limits, profile: 'code', mounts: [] }, targets)
    refuseOpen(`The ${driver.name} sandbox`, attacks, driver.selfTestExceptions)
    const ofBrowser = browser === null || !browsers ? [] : await attackBrowser(driver, limits, targets)
    const probes = [...attacks, ...ofBrowser]
    return { driver: driver.name, ...driver.describeLimits(limits), probes, inside, browser: browser ?? undefined }
  } finally {
    for (const canary of canaries) canary.close()
  }
}

/** Attacks that succeed in a browser's cell, because Chromium's own sandbox needs these calls. */
const ALLOWED_TO_BROWSERS = ['a new user namespace (unshare)', 'a new user namespace (clone)']

async function attackBrowser(driver: Driver, limits: SandboxLimits, targets: object): Promise<Findings['attacks']> {
  const { attacks } = await attack(driver, { limits, profile: 'browser', mounts: [] }, targets)
  const tried = attacks.filter(({ name }) => !ALLOWED_TO_BROWSERS.includes(name))
  refuseOpen(`The ${driver.name} sandbox of the browser`, tried, driver.selfTestExceptions)
  return tried.map((found) => ({ ...found, name: `${found.name}, by a browser` }))
}

function refuseOpen(what: string, attacks: Findings['attacks'], allowed: readonly string[]): void {
  const open = attacks.filter(({ name, refused }) => !refused && !allowed.includes(name))
  if (open.length === 0) return
  const named = open.map(({ name, detail }) => `${name} (${detail})`).join(', ')
  throw new Error(`${what} does not hold on this host, so it is not used: not refused were ${named}.`)
}

/** Attacks from one sandbox, beside a second one with a canary of every kind that could be reached from outside. */
async function attack(driver: Driver, shape: CellShape, targets: object): Promise<Findings> {
  const cells = await Promise.allSettled([launch(driver, shape), launch(driver, shape)])
  try {
    const [neighbour, attacker] = cells.map((cell) => {
      if (cell.status === 'rejected') throw cell.reason
      return cell.value
    })
    const name = `errand-canary-${randomBytes(8).toString('hex')}`
    const key = randomInt(1, 2 ** 31)
    const port = Number(
      await neighbour!.run(`name, key, locked = '${name}', ${key}, ${JSON.stringify(LOCKED)}\n${NEIGHBOUR}`),
    )
    if (!Number.isInteger(port)) throw new Error("The sandbox's self-test could not begin: no step ran in it.")
    const literal = JSON.stringify(JSON.stringify({ ...targets, neighbour: { name, port, key, locked: LOCKED } }))
    const script = bundlePython(join(import.meta.dirname, 'probe/main.py'))
    return readFindings(await attacker!.run(`TARGETS = ${literal}\n${script}`))
  } finally {
    await Promise.all(cells.map((cell) => cell.status === 'fulfilled' && cell.value.end()))
  }
}

/** Paths that might be the same inode in two sandboxes. */
const LOCKED = {
  files: [
    '/',
    '/usr',
    '/usr/bin',
    '/usr/bin/python3',
    '/etc',
    '/etc/passwd',
    RUNNER_INSIDE,
    NODE_INSIDE,
    '/proc/self/exe',
  ],
  devices: ['/dev', ...['null', 'zero', 'full', 'random', 'urandom'].map((name) => `/dev/${name}`)],
}

const NEIGHBOUR = `
import ctypes, fcntl, os, socket
held = []
for path in locked['files'] + locked['devices']:
    try:
        held.append(os.open(path, os.O_RDONLY))
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: pass  # absent, or already locked under another name
tcp, unix = socket.create_server(('127.0.0.1', 0)), socket.socket(socket.AF_UNIX)
unix.bind('\\0' + name)
unix.listen()
ctypes.CDLL(None).shmget(key, 4096, 0o1666)
for place in ('/workspace', '/tmp', '/dev/shm'):
    with open(place + '/' + name, 'w') as file: file.write(name)
print(tcp.getsockname()[1])
`

/** Its output is short. */
const NO_FILE = { saveAs: '', saveBytes: 0 }

interface Trial {
  /** Runs Python and returns its output. */
  run(code: string): Promise<string>
  end(): Promise<void>
}

async function launch(driver: Driver, shape: CellShape): Promise<Trial> {
  const cell = await driver.launch(shape)
  const runner = createRunner(cell)
  await runner.ready.catch(async (error) => {
    await cell.end()
    throw error
  })
  const steps = createSteps(runner, shape.limits, () => void cell.end())
  return {
    async run(code) {
      const request = {
        key: code,
        language: 'python',
        timeoutMs: TIMEOUT_MS,
        outputBytes: 64 * 1024,
        ...NO_FILE,
      } as const
      const output: Uint8Array[] = []
      await new Promise<void>((resolve) => {
        steps.run(request, Buffer.from(code), (reply, bytes) => {
          if (reply.op === 'out') output.push(bytes!)
          else if (reply.op === 'done') resolve()
        })
      })
      return Buffer.concat(output).toString()
    },
    end: () => cell.end(),
  }
}

function readFindings(text: string): Findings {
  try {
    return JSON.parse(text.slice(text.indexOf('{'))) as Findings
  } catch {
    throw new Error(
      `The sandbox's self-test did not finish, so the sandbox is not used. Its output: ${text.trim().slice(-500) || 'nothing'}`,
    )
  }
}

function listen(where: { host: string; port: number } | { path: string }): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => server.once('error', reject).listen(where, () => resolve(server)))
}
