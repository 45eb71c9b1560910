/**
 * The attacks a driver makes on itself before it serves: a real sandbox, one script (probe/), canaries that the host and
 * a second sandbox opened for it. What was not refused closes the driver, in a sentence that names the attack.
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
 * Throws an Error with a sentence for the operator. `secrets`: paths of the host that must not be seen inside; `browsers`:
 * whether it is to make cells for them.
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

/** What Chromium's own sandbox is made with, and so what code that took Chromium over could do, inside its cell. */
const CONCEDED_TO_BROWSERS = ['a new user namespace (unshare)', 'a new user namespace (clone)']

async function attackBrowser(driver: Driver, limits: SandboxLimits, targets: object): Promise<Findings['attacks']> {
  const { attacks } = await attack(driver, { limits, profile: 'browser', mounts: [] }, targets)
  const tried = attacks.filter(({ name }) => !CONCEDED_TO_BROWSERS.includes(name))
  refuseOpen(`The ${driver.name} sandbox of the browser`, tried, driver.selfTestExceptions)
  return tried.map((found) => ({ ...found, name: `${found.name}, by a browser` }))
}

function refuseOpen(what: string, attacks: Findings['attacks'], conceded: readonly string[]): void {
  const open = attacks.filter(({ name, refused }) => !refused && !conceded.includes(name))
  if (open.length === 0) return
  const named = open.map(({ name, detail }) => `${name} (${detail})`).join(', ')
  throw new Error(`${what} does not hold on this host, so it is not used: not refused were ${named}.`)
}

/** A second sandbox stands beside the one that attacks, with something of every kind that could be found from outside. */
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
    if (!Number.isInteger(port)) throw new Error("The sandbox's self-test could not begin: no step could be run in it.")
    const told = JSON.stringify(JSON.stringify({ ...targets, neighbour: { name, port, key, locked: LOCKED } }))
    const script = bundlePython(join(import.meta.dirname, 'probe/main.py'))
    return readFindings(await attacker!.run(`TARGETS = ${told}\n${script}`))
  } finally {
    await Promise.all(cells.map((cell) => cell.status === 'fulfilled' && cell.value.end()))
  }
}

/** Everything in a sandbox that might be the same inode in another. */
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
    except OSError: pass  # not there, or locked under its other name
tcp, unix = socket.create_server(('127.0.0.1', 0)), socket.socket(socket.AF_UNIX)
unix.bind('\\0' + name)
unix.listen()
ctypes.CDLL(None).shmget(key, 4096, 0o1666)
for place in ('/workspace', '/tmp', '/dev/shm'):
    with open(place + '/' + name, 'w') as file: file.write(name)
print(tcp.getsockname()[1])
`

interface Trial {
  /** Runs Python and says what it printed. */
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
      const request = { key: code, language: 'python', timeoutMs: TIMEOUT_MS, outputBytes: 64 * 1024 } as const
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
      `The sandbox's self-test did not come to its end, so the sandbox is not used. It said: ${text.trim().slice(-500) || 'nothing'}`,
    )
  }
}

function listen(where: { host: string; port: number } | { path: string }): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  return new Promise((resolve, reject) => server.once('error', reject).listen(where, () => resolve(server)))
}
