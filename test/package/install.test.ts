/** The tests' own package managers work on a machine that reaches its registry by settings of its environment alone. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { npmInstall, npmPack } from './install.ts'

let scratch: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'errand-install-'))
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(scratch, { recursive: true, force: true })
})

async function packageIn(name: string, fields: object): Promise<string> {
  const directory = join(scratch, name)
  await mkdir(directory)
  await writeFile(join(directory, 'package.json'), JSON.stringify({ name, version: '1.0.0', ...fields }))
  return directory
}

/** An npm registry with one package, whose certificate no authority of the system has signed. */
async function openRegistry(tarball: Buffer, certificate: { cert: Buffer; key: Buffer }) {
  const asked: string[] = []
  const server = createServer(certificate, (request, response) => {
    asked.push(request.url!)
    if (request.url!.endsWith('.tgz')) return response.end(tarball)
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const dist = { tarball: `${url()}/dependency.tgz`, integrity }
    const version = { name: 'dependency', version: '1.0.0', dist }
    response.setHeader('content-type', 'application/json')
    return response.end(
      JSON.stringify({ name: 'dependency', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } }),
    )
  })
  const url = () => `https://localhost:${(server.address() as AddressInfo).port}`
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: url(), asked, close: () => server.close() }
}

test('npm installs from a registry whose address and certificate only the environment names', async () => {
  const [key, cert] = [join(scratch, 'key.pem'), join(scratch, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  const files = ['-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, ...files], {
    stdio: 'pipe',
  })
  const packed = await npmPack(await packageIn('dependency', {}), scratch)
  const tarball = await readFile(packed)
  await rm(packed)
  const program = await npmPack(await packageIn('program', { dependencies: { dependency: '1.0.0' } }), scratch)

  const registry = await openRegistry(tarball, { cert: await readFile(cert), key: await readFile(key) })
  vi.stubEnv('NODE_EXTRA_CA_CERTS', cert)
  vi.stubEnv('npm_config_registry', registry.url)
  vi.stubEnv('npm_config_cache', join(scratch, 'cache'))
  vi.stubEnv('npm_config_fetch_retries', '0')
  vi.stubEnv('no_proxy', 'localhost')
  const home = join(scratch, 'home')
  await mkdir(home)
  await npmInstall(home, program)
  registry.close()
  expect(registry.asked).toContain('/dependency.tgz')
  expect(JSON.parse(await readFile(join(home, 'node_modules/dependency/package.json'), 'utf8')).version).toBe('1.0.0')
})
