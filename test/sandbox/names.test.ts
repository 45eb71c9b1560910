/**
 * File names that try to lead elsewhere, in the file tools and in output files. Every path that must not be read through them,
 * on the host and in the sandbox, has a canary: no byte of it may come out, and nothing may hang.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDiskBlobs } from '../../src/blobs/disk.ts'
import { DEFAULT_LIMITS } from '../../src/domain/limits.ts'
import { collectOutputs } from '../../src/engine/run/outputs.ts'
import { type Sandbox, SandboxError } from '../../src/sandbox/port.ts'
import { createTools } from '../../src/tools/tools.ts'
import { contextOn } from '../tools/memory-sandbox.ts'
import { never, openWorld, run, type World } from './fixture.ts'

const CANARY = `canary-${randomBytes(12).toString('hex')}`
const MAX_BYTES = 100_000

let world: World
/** A canary on the host, readable by every user. */
let host: string
beforeAll(async () => {
  host = mkdtempSync(join(tmpdir(), 'errand-test-canary-'))
  writeFileSync(join(host, 'secret'), CANARY, { mode: 0o644 })
  world = await openWorld()
})
afterAll(async () => {
  await world.close()
  rmSync(host, { recursive: true })
})

async function openTrapped(): Promise<Sandbox> {
  const sandbox = await world.sandbox()
  const { end, output } = await run(sandbox, 'python', hostile(host, CANARY))
  expect(end, output).toEqual({ kind: 'exit', code: 0 })
  return sandbox
}

/** Creates links below traps/ and outputs/ that lead to a canary or to endless data. */
const hostile = (hostDirectory: string, canary: string) => `
import os, socket, threading
for place in ('/tmp/secret', '/dev/shm/secret', '/run/errand/secret'):
    with open(place, 'w') as file: file.write('${canary}')
os.makedirs('/tmp/elsewhere', exist_ok=True)
for name in ('secret', '${canary}'):
    with open('/tmp/elsewhere/' + name, 'w') as file: file.write('${canary}')
for folder in ('traps', 'outputs'):
    os.makedirs(folder, exist_ok=True)
    for name, target in (
        ('link', '/tmp/secret'), ('shm', '/dev/shm/secret'), ('private', '/run/errand/secret'), ('host', '${hostDirectory}/secret'),
        ('up', '../../tmp/secret'), ('dir', '/tmp/elsewhere'), ('root', '/'), ('self', '/proc/self'), ('runner', '/proc/1/root/tmp/secret'),
        ('cwd', '/proc/self/cwd/../tmp/secret'), ('zero', '/dev/zero'), ('loop', 'loop'), ('chain', 'link'), ('fd', '/proc/self/fd/0'),
    ):
        os.symlink(target, f'{folder}/{name}')
    os.mkfifo(f'{folder}/fifo')
    socket.socket(socket.AF_UNIX).bind(f'{folder}/socket')
    for name in ('new\\nline', 'tab\\tname', ' ', '-rf', '\\x1b[31mred', 'ü', '\\u202egnp.exe', '%2e%2e%2fsecret', '..\\\\..\\\\secret', '~', '*', 'nul\\u2400'):
        with open(f'{folder}/{name}', 'w') as file: file.write('plain')
    with open(os.fsencode(folder) + b'/bad\\xff\\xfe', 'w') as file: file.write('plain')
    refused = []
    for source in ('/usr/bin/python3', '/errand/runner.py', '/tmp/secret', '/etc/passwd'):
        try: os.link(source, f'{folder}/hard')
        except OSError: refused.append(source)
    assert len(refused) == 4, refused
    try: os.mknod(f'{folder}/device', 0o666 | 0o020000, os.makedev(1, 5)); raise SystemExit('a device was made')
    except OSError: pass

# What is swapped under the reader's eyes: a file for a link, a directory for a link, between any two looks.
def swap():
    for folder in ('traps', 'outputs'):
        with open(f'{folder}/plain', 'w') as file: file.write('plain')
        os.makedirs(f'{folder}/folder', exist_ok=True)
        with open(f'{folder}/folder/secret', 'w') as file: file.write('plain')
    while True:
        for folder in ('traps', 'outputs'):
            os.symlink('/tmp/secret', f'{folder}/.next'); os.rename(f'{folder}/.next', f'{folder}/swapped')
            with open(f'{folder}/.next', 'w') as file: file.write('plain')
            os.rename(f'{folder}/.next', f'{folder}/swapped')
            os.rename(f'{folder}/folder', f'{folder}/.folder'); os.symlink('/tmp/elsewhere', f'{folder}/folder')
            os.unlink(f'{folder}/folder'); os.rename(f'{folder}/.folder', f'{folder}/folder')
if os.fork() == 0:
    try: swap()
    finally: os._exit(0)`

/** mulberry32: the same names for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

const PIECES = [
  ...[
    '..',
    '.',
    '',
    '/',
    '//',
    '...',
    '~',
    '-',
    ' ',
    '\n',
    '\t',
    '\0',
    '\\',
    '%2e%2e',
    '%00',
    '\ud800',
    '\u202e',
    'ü',
    '\ufeff',
  ],
  ...[
    'traps',
    'outputs',
    'link',
    'shm',
    'private',
    'host',
    'up',
    'dir',
    'root',
    'self',
    'runner',
    'cwd',
    'zero',
    'loop',
  ],
  ...[
    'chain',
    'fd',
    'fifo',
    'socket',
    'swapped',
    'folder',
    'secret',
    'hard',
    'bad\ufffd',
    'plain',
    'x'.repeat(255),
    'x'.repeat(256),
  ],
  ...[
    'workspace',
    'tmp',
    'elsewhere',
    'dev',
    'stdin',
    'proc',
    '1',
    'environ',
    'run',
    'errand',
    'etc',
    'shadow',
    'sys',
    'home',
  ],
]

function fuzzedName(pick: (below: number) => number): string {
  const lead = ['', '', '/', '/workspace/', '/tmp/../', './', 'traps/', 'outputs/', '/proc/1/root/', 'file://'][
    pick(10)
  ]!
  const parts = Array.from({ length: 1 + pick(5) }, () => PIECES[pick(PIECES.length)]!)
  return lead + parts.join(pick(8) === 0 ? '' : '/')
}

/** The content that was read, as text; empty if the request was refused with a SandboxError. Throws on any other error. */
async function outcome(action: Promise<unknown>): Promise<string> {
  try {
    const value = await action
    return value instanceof Uint8Array ? Buffer.from(value).toString() : JSON.stringify(value ?? '')
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    expect(['lost', 'unavailable', 'stale']).not.toContain(error.code)
    return error.message
  }
}

test('500 names made of hostile parts read no byte of a canary, through the sandbox and the file tools', async () => {
  const sandbox = await openTrapped()
  const seed = randomInt(2 ** 31)
  console.info(`names: seed ${seed}`)
  const pick = randomOf(seed)
  const tools = createTools()
  const call = async (tool: 'file_read' | 'file_write', args: object) => {
    return (await tools.get(tool)!.run({ ...args }, contextOn(sandbox))).output
  }
  const context = (name: string) => `seed ${seed}, name ${JSON.stringify(name)}`
  // A canary that its own path may read is no leak: code may read and write these two directories.
  const own = (name: string) =>
    /^\/?\/*(?:\.\/+)*tmp(?:\/|$)/.test(name.replaceAll(/\/+(\.\/+)*/g, '/').replace(/^\.\//, ''))
  for (let i = 0; i < 500; i++) {
    const name = fuzzedName(pick)
    const outcomes = await Promise.all([
      outcome(sandbox.readFile(name, MAX_BYTES)),
      outcome(sandbox.list(name, { recursive: true, maxEntries: 50 })),
      call('file_read', { path: name }),
      call('file_write', { path: `${name}`, content: 'written', mode: i % 2 === 0 ? 'write' : 'append' }),
      outcome(sandbox.writeFile(name, Buffer.from('written'), i % 2 === 0 ? 'append' : 'write')),
    ])
    if (!own(name)) expect(outcomes.join('\n'), context(name)).not.toContain(CANARY)
  }
  expect(readdirSync(host)).toEqual(['secret'])
})

test('a file that is replaced by a link during a read or write never yields the link’s target', async () => {
  const sandbox = await openTrapped()
  const seen = new Set<string>()
  for (let i = 0; i < 150; i++) {
    for (const folder of ['traps', 'outputs']) {
      const [read, through] = await Promise.all([
        outcome(sandbox.readFile(`${folder}/swapped`, MAX_BYTES)),
        outcome(sandbox.readFile(`${folder}/folder/secret`, MAX_BYTES)),
        outcome(sandbox.writeFile(`${folder}/folder/written`, Buffer.from('mine'), 'write')),
        outcome(sandbox.writeFile(`${folder}/swapped`, Buffer.from('plain'), 'append')),
      ])
      for (const text of [read, through]) {
        expect(text).not.toContain(CANARY)
        seen.add(text)
      }
      const listed = await outcome(sandbox.list(folder, { recursive: true, maxEntries: 200 }))
      expect(listed).not.toContain(CANARY)
    }
  }
  // Both outcomes of the race must have occurred.
  expect(seen.size).toBeGreaterThan(1)
  expect((await run(sandbox, 'bash', 'cat /tmp/secret; ls -A /tmp/elsewhere')).output).toBe(
    `${CANARY}${CANARY}\nsecret\n`,
  )
})

test('only plain files among the traps become output files, even while they are replaced', async () => {
  const sandbox = await openTrapped()
  const directory = mkdtempSync(join(tmpdir(), 'errand-test-'))
  const blobs = await openDiskBlobs(directory)
  for (let i = 0; i < 5; i++) {
    const { files, problems } = await collectOutputs(
      { blobs, interactionId: `int_${i}`, limits: DEFAULT_LIMITS },
      sandbox,
      never,
    )
    const names = files.map(({ name }) => name)
    for (const trap of [
      'link',
      'shm',
      'private',
      'host',
      'up',
      'root',
      'self',
      'runner',
      'zero',
      'loop',
      'fifo',
      'socket',
    ]) {
      expect(names.filter((name) => name === trap || name.startsWith(`${trap}/`))).toEqual([])
      expect(problems.join('\n')).toContain(`${trap} is no regular file`)
    }
    expect(names).toEqual(expect.arrayContaining(['-rf', 'ü', '%2e%2e%2fsecret']))
    for (const file of files) {
      expect(Buffer.from((await blobs.get(file.blob))!).toString()).not.toContain(CANARY)
    }
  }
  await blobs.close()
  rmSync(directory, { recursive: true })
})
