/**
 * No file is held whole: a large file by URL into the sandbox, the same file out again, and down by its signed address;
 * by how much the processes grew at their peak meanwhile, with files kept on disk and kept in a bucket. Much of that is
 * V8's: some MiB of dead buffers gather before it looks. It is the same for 100 MiB as for 300.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FakeProvider, openFakeProvider } from '../test/fake-provider.ts'
import { openObjectStore, STORE_KEYS } from '../test/support/object-store.ts'
import { type Server, startServer } from '../test/support/server.ts'
import { bash, scripted } from '../test/support/tool-run.ts'

export interface Growth {
  /** Process, and location of the files. */
  readonly name: string
  /** At its peak, above what it was before. */
  readonly bytes: number
}

const MIB = 1024 * 1024
/** Goes into a bucket in two parts, as the large one does in twenty. */
const WARM = 6 * MIB
const BLOCK = Buffer.from(Uint8Array.from({ length: MIB }, (_, i) => (i * 31 + (i >> 8)) % 256))

export async function carryLargeFile(mebibytes: number): Promise<Growth[]> {
  const size = mebibytes * MIB
  const provider = await openFakeProvider()
  const store = await openObjectStore('bench')
  const source = createServer(async ({ url = '' }, response) => {
    const bytes = Number(url.slice(1))
    response.writeHead(200, { 'content-length': bytes })
    for (let sent = 0; sent < bytes; sent += MIB) {
      if (!response.write(BLOCK)) await new Promise((resolve) => response.once('drain', resolve))
    }
    response.end()
  })
  await new Promise<void>((resolve) => source.listen(0, '127.0.0.1', resolve))
  const { port } = source.address() as AddressInfo
  const growths: Growth[] = []
  const bucket = { ...STORE_KEYS, ERRAND_BLOBS_URL: `s3://bench/files?endpoint=${store.url}` }
  for (const [where, env] of Object.entries({ 'on disk': {}, 'in a bucket': bucket })) {
    const largest = Math.max(size, WARM)
    const config = {
      egress: { allowPrivate: [`127.0.0.1:${port}`] },
      limits: { fileBytes: largest, outputFilesBytes: largest },
      sandbox: { pool: 0, workspaceMiB: mebibytes * 2 + 50, memoryMiB: mebibytes * 2 + 300 },
    }
    const server = await startServer({ provider, config, env })
    const large = (size: number) => through(server, provider, `http://127.0.0.1:${port}`, size)
    // What is loaded on first use is no growth of the file's making.
    await large(WARM)
    const peak = await peaks(server, () => large(size))
    growths.push(...peak.map(({ name, bytes }) => ({ name: `${name}, files kept ${where}`, bytes })))
    await server.stop()
  }
  await provider.close()
  await store.close()
  source.close()
  return growths
}

/** One interaction that takes the file in and gives it out again, and the download of what it gave. */
async function through(server: Server, provider: FakeProvider, source: string, bytes: number): Promise<void> {
  const file = { name: 'big.bin', url: `${source}/${bytes}` }
  const instruction = scripted(provider, [bash('mkdir -p outputs && cp big.bin outputs/')])
  const { body, text } = await server.post('/v1beta/interactions', {
    instruction,
    tools: ['code_execution'],
    files: [file],
  })
  if (body.status !== 'completed' || body.files.length !== 1) throw new Error(text)
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of (await fetch(body.files[0].url)).body!) {
    hash.update(chunk)
    size += chunk.length
  }
  if (size !== body.files[0].size || hash.digest('hex') !== body.files[0].sha256) throw new Error('not what was stored')
  if (size !== bytes) throw new Error(`${size} bytes came back`)
}

/** By how much the server and its sandbox host grew at their peak while this went on. */
async function peaks(server: Server, action: () => Promise<void>): Promise<Growth[]> {
  const watched = [
    { name: 'the server', pid: server.process.pid! },
    { name: 'the sandbox host', pid: hostOf(server) },
  ]
  await sleep(500)
  const before = watched.map(({ pid }) => {
    writeFileSync(`/proc/${pid}/clear_refs`, '5') // the peak begins here
    return status(pid, 'VmRSS')
  })
  await action()
  return watched.map(({ name, pid }, i) => ({ name, bytes: status(pid, 'VmHWM') - before[i]! }))
}

function status(pid: number, field: string): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(found![1]) * 1024
}

function hostOf({ dataDir }: Server): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = pids.find((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return line.includes('host-main') && line.includes(dataDir)
    } catch {
      return false
    }
  })
  if (!found) throw new Error('no sandbox host was found')
  return Number(found)
}
