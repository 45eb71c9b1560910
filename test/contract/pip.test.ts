/** Checks pip in a sandbox, with the real pip and a package index on this machine. */
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, python, type ToolRunner, toolRunner } from '../support/tool-run.ts'
import { zip } from '../support/zip.ts'

const WHEEL = 'errand_probe-1.0-py3-none-any.whl'

/** A package with one module, and a newer version of a system package (six). */
function wheel(): Buffer {
  const info = 'errand_probe-1.0.dist-info'
  const files = [
    { name: 'errand_probe.py', data: 'ANSWER = 42\ndef main():\n    print(ANSWER)\n' },
    { name: 'six.py', data: "__version__ = '99'\n" },
    { name: `${info}/METADATA`, data: 'Metadata-Version: 2.1\nName: errand-probe\nVersion: 1.0\n' },
    { name: `${info}/entry_points.txt`, data: '[console_scripts]\nerrand-probe = errand_probe:main\n' },
    { name: `${info}/WHEEL`, data: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n' },
  ]
  const record = [...files.map(({ name }) => `${name},,`), `${info}/RECORD,,`].join('\n')
  return zip([...files, { name: `${info}/RECORD`, data: `${record}\n` }])
}

let index: HttpServer
let provider: FakeProvider
let server: Server
let run: ToolRunner
let install: string
let network: object
beforeAll(async () => {
  index = createServer(({ url }, response) => {
    if (url === '/simple/errand-probe/') {
      response.setHeader('content-type', 'text/html').end(`<!doctype html><a href="/${WHEEL}">${WHEEL}</a>`)
    } else if (url === `/${WHEEL}`) response.end(wheel())
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => index.listen(0, '127.0.0.1', resolve))
  const { port } = index.address() as AddressInfo
  const host = `pypi.site.localhost`
  // NO_PROXY is cleared because pip would bypass the proxy for `*.localhost`, which is this machine.
  install = `NO_PROXY= no_proxy= pip install -q --index-url http://${host}:${port}/simple --trusted-host ${host} errand-probe`
  network = { network: { allow: [`${host}:${port}`] } }
  provider = await openFakeProvider()
  server = await startServer({
    provider,
    config: {
      sandbox: { pool: 1, network: [`${host}:${port}`] },
      egress: { allowPrivate: [`127.0.0.1:${port}`] },
    },
  })
  run = toolRunner(
    () => server,
    () => provider,
  )
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  index.close()
})

it('installs from an index that the network allows, for sessions that already run too', async () => {
  const { outputs } = await run(
    [
      python('import sys; print(sys.prefix)'),
      bash(install),
      python('import errand_probe; print(errand_probe.ANSWER)'),
      bash('python3 -c "import errand_probe; print(errand_probe.ANSWER)"; errand-probe'),
    ],
    network,
  )
  expect(outputs[1]).toBe('[It printed nothing.]')
  expect(outputs.slice(2)).toEqual(['42', '42\n42'])
})

it('installs within a Python step, which can import the package, and prefers it to system packages', async () => {
  const code = `import subprocess
print(subprocess.run(${JSON.stringify(install)}, shell=True, capture_output=True, text=True).stderr)
import errand_probe, six
print(errand_probe.ANSWER, six.__version__)`
  const { outputs } = await run([python(code)], network)
  expect(outputs[0]!.trim()).toBe('42 99')
})

it('fails immediately without a network and gives the model the reason', async () => {
  const { outputs } = await run([bash('pip install errand-probe')])
  expect(outputs[0]).toContain('[pip found no package because this run has no network; retrying will not help.')
  const installed = /\[Installed Python packages: (.+)\.\]/.exec(outputs[0]!)![1]!.split(', ')
  expect(installed).toContain('pandas')
  expect(outputs[0]!.length).toBeLessThan(2_000)
  expect(outputs[0]).not.toContain('externally-managed-environment')
})

it('installs a wheel from an input file without a network', async () => {
  const files = [{ name: WHEEL, content: wheel().toString('base64'), encoding: 'base64' }]
  const { outputs } = await run(
    [bash(`pip install -q ./${WHEEL}`), python('import errand_probe\nerrand_probe.ANSWER')],
    {
      files,
    },
  )
  expect(outputs).toEqual(['[It printed nothing.]', '42'])
})
