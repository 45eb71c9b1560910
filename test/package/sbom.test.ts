/** The SBOM is valid CycloneDX, and no production dependency has an install script or a license that is not listed. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { npmPackages } from '../support/packages.ts'
import { ROOT } from './install.ts'

const run = promisify(execFile)
const SCRIPT = join(ROOT, 'script/sbom.ts')

let scratch: string
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'errand-sbom-'))
})
afterAll(() => rm(scratch, { recursive: true, force: true }))

function sbom(directory = ROOT): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...process.env, SOURCE_DATE_EPOCH: '1750000000' }
  return run(process.execPath, [SCRIPT, directory], { env, maxBuffer: 64 * 1024 * 1024 }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
}

/** A copy of the manifests with one more dependency, which the lock file describes like that. */
async function withDependency(kind: 'dependencies' | 'devDependencies', locked: object): Promise<string> {
  const directory = await mkdtemp(join(scratch, 'with-'))
  for (const name of ['package.json', 'package-lock.json', 'console/package.json', 'script/node/package.json']) {
    await cp(join(ROOT, name), join(directory, name))
  }
  const edit = async (name: string, change: (content: Record<string, Record<string, object | string>>) => void) => {
    const content = JSON.parse(await readFile(join(directory, name), 'utf8'))
    change(content)
    await writeFile(join(directory, name), JSON.stringify(content))
  }
  await edit('package.json', (manifest) => {
    manifest[kind]!.newcomer = '1.0.0'
  })
  await edit('package-lock.json', ({ packages }) => {
    const root = packages![''] as Record<string, Record<string, string>>
    root[kind]!.newcomer = '1.0.0'
    packages!['node_modules/newcomer'] = {
      version: '1.0.0',
      ...(kind === 'devDependencies' && { dev: true }),
      ...locked,
    }
  })
  return directory
}

test('is valid CycloneDX, lists only production dependencies, and is reproducible', {
  timeout: 300_000,
}, async () => {
  const { code, stdout, stderr } = await sbom()
  expect(code, stderr).toBe(0)
  const { components, metadata } = JSON.parse(stdout)
  expect(metadata.component).toMatchObject({ name: 'errand', licenses: [{ license: { id: 'Apache-2.0' } }] })
  const names = components.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['fastify', 'react', 'console']))
  for (const name of ['vitest', '@biomejs/biome', 'vite']) expect(names).not.toContain(name)
  expect((await sbom()).stdout).toBe(stdout)

  const validators = ['ajv@8.20.0', 'ajv-formats@3.0.1', 'ajv-formats-draft2019@1.6.1']
  const place = await npmPackages('@cyclonedx/cyclonedx-library@10.3.0', ...validators)
  const { Validation, Spec } = createRequire(join(place, 'node_modules/'))('@cyclonedx/cyclonedx-library')
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot5)
  expect(await validator.validate(stdout)).toBeNull()
  expect(await validator.validate(stdout.replace('"version": 1', '"version": "one"'))).not.toBeNull()
})

test.each([
  ['dependencies', { license: '(GPL-2.0-only OR MIT)' }, undefined],
  ['dependencies', { license: 'GPL-3.0-only' }, 'newcomer@1.0.0: GPL-3.0-only is not an allowed license.'],
  [
    'dependencies',
    { license: '(MIT AND CC-BY-4.0)' },
    'newcomer@1.0.0: (MIT AND CC-BY-4.0) is not an allowed license.',
  ],
  ['dependencies', {}, 'newcomer@1.0.0: has no license.'],
  ['dependencies', { license: 'MIT', hasInstallScript: true }, 'newcomer@1.0.0: has an install script.'],
  ['devDependencies', { license: 'GPL-3.0-only', hasInstallScript: true }, undefined],
] as const)('of %s, one with %j is refused or not', { timeout: 300_000 }, async (kind, locked, problem) => {
  const { code, stderr } = await sbom(await withDependency(kind, locked))
  expect([code, stderr.trim()]).toEqual(problem ? [1, problem] : [0, ''])
})
