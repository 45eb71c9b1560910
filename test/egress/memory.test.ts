/** Attacks that try to exhaust the guard's memory, measured in a separate process (row S6 of docs/proof.md). */
import { execFile } from 'node:child_process'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'

const CHILD = new URL('memory-child.ts', import.meta.url).pathname
const MOST_BYTES = 100 * 1024 * 1024
const ZEROS = Buffer.alloc(1024 * 1024)
/** A gzip of 1 GiB unpacked: 16 members of 64 MiB. */
const BOMB = Buffer.concat(Array<Buffer>(16).fill(gzipSync(Buffer.alloc(64 * 1024 * 1024))))

let server: Server
let port: number
beforeAll(async () => {
  server = createServer(({ url }, response) => {
    if (url === '/endless') pour(response)
    else if (url === '/bomb') response.writeHead(200, { 'content-encoding': 'gzip' }).end(BOMB)
    else if (url === '/stall') response.write('x')
    else if (url === '/drip') {
      const timer = setInterval(() => response.write('x'), 50)
      response.on('close', () => clearInterval(timer))
    } else response.end('small')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  server.close()
  server.closeAllConnections()
})

function pour(response: ServerResponse): void {
  while (!response.destroyed && response.write(ZEROS));
  if (!response.destroyed) response.once('drain', () => pour(response))
}

it.each([
  { 'an endless download': 'too_large' },
  { 'an endless answer for a library': 'too_large' },
  { 'an endless download by a sandbox': 'cut' },
  {
    'a download that drips for ever': 'too_slow',
    'a download that stops': 'too_slow',
    'a hundred that stall, at once': 'too_slow',
    'a gzip bomb as a file': `${BOMB.length} bytes`,
    'a gzip bomb for a library': 'unreachable',
  },
])('stops an attack within little memory: %j', async (expected) => {
  const attacks = Object.keys(expected)
  // V8 frees dead buffers at its own pace, which can add tens of megabytes to a run. Memory that the guard itself holds
  // would be in every run, so the test takes the least of three runs.
  const grown: number[] = []
  while (grown.length < 3 && !grown.some((bytes) => bytes < MOST_BYTES)) {
    const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', CHILD, `${port}`, ...attacks])
    const { outcomes, grownBytes } = JSON.parse(stdout)
    expect(outcomes).toEqual(expected)
    grown.push(grownBytes)
  }
  expect(Math.min(...grown)).toBeLessThan(MOST_BYTES)
})
