/** A real S3-compatible server (s3rver) in its own process. Its `door` lets a test block, delay or break requests. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const S3RVER = resolve(import.meta.dirname, '../../node_modules/s3rver/bin/s3rver.js')

export interface ObjectStore {
  readonly url: string
  readonly port: number
  /** Received requests in order: `PUT /bucket/key?…`. */
  readonly asked: readonly string[]
  /** Called before each request. Returns true if it has handled the request itself. Undefined passes all requests. */
  door: ((request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>) | undefined
  close(): Promise<void>
}

/** The only key that s3rver accepts. */
export const STORE_KEYS = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' }

export async function openObjectStore(...buckets: readonly string[]): Promise<ObjectStore> {
  const directory = await mkdtemp(join(tmpdir(), 'errand-objects-'))
  const args = ['-d', directory, '-a', '127.0.0.1', '-p', '0', '--no-vhost-buckets']
  for (const bucket of buckets) args.push('--configure-bucket', bucket)
  // s3rver encrypts page tokens with DES, which needs this option.
  const child = spawn(process.execPath, ['--openssl-legacy-provider', S3RVER, ...args])
  const exited = new Promise((done) => child.once('exit', done))
  const behind = await new Promise<number>((found, failed) => {
    let said = ''
    const hear = (text: string) => {
      said += text
      const port = /listening on .*:(\d+)/.exec(said)?.[1]
      if (port) found(Number(port))
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', hear)
    child.once('exit', () => failed(new Error(`s3rver did not come up:\n${said}`)))
  })

  const asked: string[] = []
  const store: Pick<ObjectStore, 'door'> = { door: undefined }
  const server = createServer(async (request, response) => {
    asked.push(`${request.method} ${request.url}`)
    if (await store.door?.(request, response)) return
    const { method, url: path, headers } = request
    const onward = send({ host: '127.0.0.1', port: behind, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return Object.assign(store, {
    url: `http://127.0.0.1:${port}`,
    port,
    asked,
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      child.kill()
      await exited
      await rm(directory, { recursive: true, force: true })
    },
  })
}
