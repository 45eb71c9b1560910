/** The public reference server, `@modelcontextprotocol/server-everything`, on a loopback port. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'

const EVERYTHING = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json')),
  'dist/index.js',
)

export interface Everything {
  readonly url: string
  /** `127.0.0.1:port`, for egress.allowPrivate. */
  readonly address: string
  stop(): void
}

export async function startEverything(): Promise<Everything> {
  const port = await freePort()
  const child: ChildProcess = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr!.setEncoding('utf8').on('data', (text) => {
      said += text
      if (/listening on port/i.test(said)) resolve()
    })
    child.once('exit', (code) => reject(new Error(`server-everything ended (${code}):\n${said}`)))
  })
  return { url: `http://127.0.0.1:${port}/mcp`, address: `127.0.0.1:${port}`, stop: () => child.kill() }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
